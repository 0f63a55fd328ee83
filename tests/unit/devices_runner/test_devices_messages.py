"""Arrays over the wire keep bytes, shape and the name of their dtype."""

import msgspec
import numpy as np
import pytest

from kerneltrial.devices import messages
from kerneltrial.inputs.calls import Buffer, Call


def call(dtype: str, shape: tuple[int, ...]) -> Call:
    return Call(buffers=(Buffer(name="x", role="input", dtype=dtype, shape=shape, initial="given"),), launches=())


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "int8", "uint8", "int16", "uint32", "int64", "uint64"]
)
@pytest.mark.parametrize("shape", [(1,), (2, 3), (3, 1, 5)])
def test_every_dtype_survives(dtype: str, shape: tuple[int, ...]) -> None:
    array = (np.arange(np.prod(shape)) - 1).astype(dtype).reshape(shape)
    packed = messages.pack(call(dtype, shape), {"x": array})
    wire = msgspec.msgpack.encode(packed)
    back = messages.unpack(msgspec.msgpack.decode(wire, type=messages.Packed))["x"]
    assert back.dtype == array.dtype
    assert back.tobytes() == array.tobytes()
    assert back.shape == shape


def test_bfloat16_is_named_on_the_wire_and_uint16_in_numpy() -> None:
    packed = messages.pack(call("bfloat16", (2,)), {"x": np.array([0x3F80, 0xFFC0], np.uint16)})
    wire = msgspec.msgpack.encode(packed)
    assert b"bfloat16" in wire
    back = messages.unpack(msgspec.msgpack.decode(wire, type=messages.Packed))["x"]
    assert back.tolist() == [0x3F80, 0xFFC0]


def test_nan_payloads_are_not_touched() -> None:
    bits = np.array([0x7FC00001, 0xFFFFFFFF, 0x7F800001], np.uint32)
    packed = messages.pack(call("float32", (3,)), {"x": bits.view(np.float32)})
    back = messages.unpack(packed)["x"]
    assert back.view(np.uint32).tolist() == bits.tolist()


def test_received_arrays_cannot_be_written() -> None:
    wire = msgspec.msgpack.encode(messages.pack(call("float32", (2,)), {"x": np.zeros(2, np.float32)}))
    back = messages.unpack(msgspec.msgpack.decode(wire, type=messages.Packed))["x"]
    with pytest.raises(ValueError, match="read-only"):
        back[0] = 1.0


def test_a_big_endian_array_is_refused() -> None:
    with pytest.raises(ValueError, match="value is >f4"):
        messages.pack(call("float32", (2,)), {"x": np.zeros(2, ">f4")})
