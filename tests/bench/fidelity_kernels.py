"""The kernels whose times are compared: from 1 us to 10 ms, one plan of two launches with scratch among them."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "gpu"))

from own_process import KERNELS, buffer, compile_cuda, integer, launch, numbers
from test_gpu_run import factors, product

from kerneltrial.devices.device import Binary
from kerneltrial.inputs.calls import Call, Scalar

_PARTS = 528


@dataclass(frozen=True)
class Subject:
    """One plan at one size; `make` gives its inputs from a seed."""

    name: str
    source: str
    call: Call
    make: Callable[[int], dict[str, Any]]

    def values(self, seed: int) -> dict[str, Any]:
        """Inputs, made once a seed."""
        key = (self.name, seed)
        if key not in _MADE:
            _MADE[key] = self.make(seed)
        return _MADE[key]


_MADE: dict[tuple[str, int], dict[str, Any]] = {}


def subjects() -> list[Subject]:
    """All of them, by length."""
    return [
        _axpy(100_000),
        _matmul("tiled", 31, 37, 29),
        _matmul("tiled", 256, 256, 256),
        _matmul("blocked", 384, 256, 320),
        _sum(1 << 22),
        _transpose(2048, 2048),
        _matmul("blocked", 512, 512, 512),
        _axpy(1 << 24),
        _matmul("blocked", 1024, 1024, 1024),
        _matmul("tiled", 2048, 2048, 2048),
        _chain(400_000),
        _chain(4_000_000),
    ]


def binaries(arch: str) -> dict[str, Binary]:
    """Machine code by the name of the source file."""
    return {name: compile_cuda((KERNELS / name).read_text(), arch) for name in ("matmul.cu", "streams.cu")}


def _matmul(entry: str, m: int, n: int, k: int) -> Subject:
    return Subject(
        f"matmul {entry} {m}x{n}x{k}", "matmul.cu", product(entry, m, n, k), lambda s: factors(m, n, k, 2 * s)
    )


def _axpy(n: int) -> Subject:
    a = Scalar(bytes=4, bits=int(np.float32(1.5).view(np.uint32)))
    one = launch("axpy", (-(-n // 256),), (256,), ["x", "y", "z", integer(n), a])
    buffers = (buffer("x", "input", n), buffer("y", "input", n), buffer("z", "output", n))
    return Subject(
        f"axpy {n}",
        "streams.cu",
        Call(buffers=buffers, launches=(one,)),
        lambda s: {"x": numbers(n, s), "y": numbers(n, s + 100)},
    )


def _transpose(rows: int, cols: int) -> Subject:
    one = launch("transpose", (-(-cols // 32), -(-rows // 32)), (32, 8), ["x", "y", integer(rows), integer(cols)])
    buffers = (buffer("x", "input", rows, cols), buffer("y", "output", cols, rows))
    return Subject(
        f"transpose {rows}x{cols}",
        "streams.cu",
        Call(buffers=buffers, launches=(one,)),
        lambda s: {"x": numbers(rows * cols, s).reshape(rows, cols)},
    )


def _sum(n: int) -> Subject:
    """Two launches; the first leaves partial sums in scratch."""
    launches = (
        launch("partial_sums", (_PARTS,), (256,), ["x", "partial", integer(n)]),
        launch("final_sum", (1,), (256,), ["partial", "y", integer(_PARTS)]),
    )
    buffers = (buffer("x", "input", n), buffer("y", "output", 1), buffer("partial", "scratch", _PARTS))
    call = Call(buffers=buffers, launches=launches)
    return Subject(f"sum in two launches {n}", "streams.cu", call, lambda s: {"x": numbers(n, s)})


def _chain(steps: int) -> Subject:
    n = 132 * 256
    one = launch("chain", (132,), (256,), ["x", "y", integer(n), integer(steps)])
    buffers = (buffer("x", "input", n), buffer("y", "output", n))
    return Subject(
        f"chain of {steps}", "streams.cu", Call(buffers=buffers, launches=(one,)), lambda s: {"x": numbers(n, s)}
    )
