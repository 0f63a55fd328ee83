"""What lies in memory before a call: the three kinds of poison, the same on every device.

`nan` and `huge` are one byte repeated, so that what was not written shows at a glance; a kernel can know them for what
they are. `plain` is made to look like numbers that a call might have left there.
"""

import hashlib
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kerneltrial.devices.device import Conditions, Poison
from kerneltrial.inputs.dtypes import item_bytes
from kerneltrial.records.plan import DType

POISON_BYTE: Final[dict[Poison, int]] = {"nan": 0xFF, "huge": 0x7B}
"""0xFF..: a NaN in every float type, -1 in integers. 0x7B7B..: large and finite in every float type (61,280 in f16,
1.3e36 in f32, 1.1e286 in f64)."""
_PLAIN_BYTES: Final = (0x3E, 0x3F, 0x40)  # repeated: 0.19, 0.75, 3.0 in f32; 1.6, 1.8, 2.1 in f16
_FLOATS: Final = {"float16": (10, 15), "bfloat16": (7, 127), "float32": (23, 127), "float64": (52, 1023)}
_INTEGER_BITS: Final = 0x3FF
REPEAT_BYTES: Final = 64 << 20
MARGIN_DTYPE: Final[DType] = "float32"
"""What the memory around buffers looks like."""


def poison_byte(conditions: Conditions) -> int:
    """The byte for memory that can only be filled with one byte (shared and local memory)."""
    if conditions.poison == "plain":
        return _PLAIN_BYTES[conditions.seed % len(_PLAIN_BYTES)]
    return POISON_BYTE[conditions.poison]


def poison_into(memory: NDArray[np.uint8], conditions: Conditions, name: str, dtype: DType) -> None:
    """Fill `memory`, which is called `name` and holds elements of `dtype`.

    `plain`: each element is drawn from a PCG64 stream seeded by the conditions' seed and `name`, and again from the
    start after REPEAT_BYTES. Floats are finite, of both signs, with absolute values from 1/16 to 16 (exponents evenly,
    mantissas at random); integers lie from 0 to 1023 (to 127 in 8 bits).
    """
    if conditions.poison != "plain":
        memory[:] = POISON_BYTE[conditions.poison]
        return
    block = _plain_block(conditions.seed, name, dtype, min(memory.size, REPEAT_BYTES))
    for start in range(0, memory.size, REPEAT_BYTES):
        part = memory[start : start + REPEAT_BYTES]
        part[:] = block[: part.size]


def _plain_block(seed: int, name: str, dtype: DType, count: int) -> NDArray[np.uint8]:
    size = item_bytes(dtype)
    entropy = hashlib.sha256(f"{seed}\0{name}".encode()).digest()
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(int.from_bytes(entropy, "little"))))
    bits = np.frombuffer(rng.bytes(-(-count // size) * size), f"<u{size}")
    return _plain(bits, dtype).view(np.uint8)[:count]


def _plain(bits: NDArray[Any], dtype: DType) -> NDArray[Any]:
    kind = bits.dtype.type
    words = bits.copy()
    if dtype not in _FLOATS:
        words &= kind(_INTEGER_BITS if bits.itemsize > 1 else 0x7F)
        return words
    mantissa, bias = _FLOATS[dtype]
    top = 8 * bits.itemsize - 1
    words &= kind(1 << top | (1 << mantissa) - 1)
    words |= ((bits >> kind(mantissa) & kind(7)) + kind(bias - 4)) << kind(mantissa)
    return words
