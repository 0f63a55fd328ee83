"""Compile, call and run kernels for the tests on a card; as a script, run one kernel in a process of its own.

python own_process.py ENTRY     prints the findings of `behaviour.cu`'s ENTRY, and of a second run after it
"""

import json
import sys
from pathlib import Path

import numpy as np

from kerneltrial.build.nvrtc import received
from kerneltrial.devices.cuda.device import open_cuda
from kerneltrial.devices.cuda.probe import probe
from kerneltrial.devices.device import Binary, Conditions
from kerneltrial.inputs.calls import Buffer, Call, Pointer, ResolvedLaunch, Scalar

KERNELS = Path(__file__).parent / "kernels"


def compile_cuda(source: str, arch: str) -> Binary:
    """Machine code for `arch` by NVRTC; raise AssertionError with the compiler's log."""
    from cuda.bindings import nvrtc

    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"test.cu", 0, [], [])
    options = [f"--gpu-architecture={arch}".encode(), b"--std=c++17"]
    (code,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    log = received(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
    assert int(code) == 0, log.decode()
    return Binary(ptx="", cubin=received(program, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN))


def integer(value: int) -> Scalar:
    return Scalar(bytes=4, bits=value)


def buffer(name: str, role: str, *shape: int, dtype: str = "float32", initial: str = "") -> Buffer:
    usual = {"input": "given", "inout": "given", "output": "poisoned", "scratch": "poisoned"}
    return Buffer(name=name, role=role, dtype=dtype, shape=shape, initial=initial or usual[role])


def launch(entry: str, grid: tuple[int, ...], block: tuple[int, ...], parameters: list, **more) -> ResolvedLaunch:
    pad = (1, 1, 1)
    cells = tuple(Pointer(buffer=p) if isinstance(p, str) else p for p in parameters)
    fixed = {"cluster": pad, "cooperative": False, "shared_bytes": 0} | more
    return ResolvedLaunch(entry=entry, grid=(*grid, *pad)[:3], block=(*block, *pad)[:3], parameters=cells, **fixed)


def simple_call(entry: str, n: int, **more) -> Call:
    """x in, y out, n elements, 128 threads a block."""
    one = launch(entry, ((n + 127) // 128,), (128,), ["x", "y", integer(n)], **more)
    return Call(buffers=(buffer("x", "input", n), buffer("y", "output", n)), launches=(one,))


def numbers(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(n).astype(np.float32)


def main(entry: str) -> None:
    arch = probe().arch
    card = open_cuda(arch)
    loaded = card.load(compile_cuda((KERNELS / "behaviour.cu").read_text(), arch))
    values = {"x": numbers(1000)}
    print("started", flush=True)
    first = loaded.run(simple_call(entry, 1000), values, Conditions(poison="nan"))
    second = loaded.run(simple_call("copy", 1000), values, Conditions(poison="nan"))
    told = [
        {
            "completed": run.completed,
            "findings": [[found.reason.value, found.detail] for found in run.findings],
            "unchecked": [[found.reason.value, found.detail] for found in run.unchecked],
        }
        for run in (first, second)
    ]
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
