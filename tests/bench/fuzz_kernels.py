"""Kernels that the fuzzer mutates beside the corpus: printf, tickets, look-back, barriers of a grid and of some."""

from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray
from ptx_runner import Argument, array, call_of, scratch
from ptx_sources import ptx_of

from kerneltrial.inputs.calls import Call

ROOT = Path(__file__).resolve().parents[2]
X = np.arange(256, dtype=np.float32)
_PRELUDE = "__device__ unsigned counter; __device__ int flags[8]; "
_INDEX = "int i = threadIdx.x, b = blockIdx.x; "
BODIES = {
    "prints": r"""printf("%d %f %s %lld %*d", i, x[i], "text", (long long)b, 5, i); y[b * 64 + i] = x[i];""",
    "ticket": """__shared__ bool last; s[b * 64 + i] = x[i]; __threadfence(); __syncthreads();
        if (i == 0) last = atomicAdd(&counter, 1u) == gridDim.x - 1; __syncthreads();
        if (last) y[i] = s[i] + s[i + 64];""",
    "looks back": """if (i == 0) { int there = 1; if (b) do asm volatile("ld.acquire.gpu.global.s32 %0, [%1];"
        : "=r"(there) : "l"(flags + b - 1) : "memory"); while (!there);
        s[b] = x[b] + (b ? s[b - 1] : 0.f); asm volatile("st.release.gpu.global.s32 [%0], 1;" :: "l"(flags + b)
        : "memory"); y[b] = s[b]; }""",
    "some meet": """s += b * 64; s[i] = 0.f; if (i < 32) { asm volatile("bar.arrive 1, 64;"); y[i] = 1.f; }
        else { asm volatile("bar.sync 1, 64;"); y[i] = x[i]; } __syncwarp(); atomicAdd(s + (i & 3), 1.f);""",
    "fences": """s += b * 64; for (int k = 0; k < 9; ++k) { s[i] = x[k]; __threadfence(); __threadfence_block();
        atomicExch(&counter, k); atomicMax(flags + (i & 7), k); __syncwarp(); } y[i] = s[i];""",
}


@dataclass(frozen=True)
class Further:
    """One of them, called as a kernel of the corpus is."""

    name: str
    of: Call

    def call(self, entry: str = "") -> Call:
        """The call, of the entry by this name."""
        (launch,) = self.of.launches
        return msgspec.structs.replace(self.of, launches=(msgspec.structs.replace(launch, entry=entry),))

    def values(self) -> dict[str, NDArray[np.generic]]:
        """Inputs."""
        return {"x": X}


def _call(together: bool, steps: int | None = None) -> Call:
    arguments: list[Argument | int | float] = [array("x", X), scratch("y", "float32", 256, initial="zeroed")]
    arguments.append(scratch("s", "float32", 256, initial="zeroed") if steps is None else steps)
    made = call_of(arguments, (4,), (64,))
    (launch,) = made.launches
    return msgspec.structs.replace(made, launches=(msgspec.structs.replace(launch, cooperative=together),))


def further() -> list[tuple[Further, str, str]]:
    """Kernels with the entry and the whole text, compiled here for sm_80."""
    found = []
    for name, body in BODIES.items():
        head = f'{_PRELUDE}extern "C" __global__ void kern(const float* x, float* y, float* s) {{ {_INDEX}'
        found.append((Further(name, _call(together=False)), "kern", ptx_of(f"{head}{body} }}")))
    whole = ptx_of((ROOT / "tests" / "gpu" / "kernels" / "cooperative.cu").read_text())
    found += [(Further(entry, _call(True, steps=2)), entry, whole) for entry in ("rotate", "total", "one_missing")]
    return found
