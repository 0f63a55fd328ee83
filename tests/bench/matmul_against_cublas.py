"""Time a float32 matmul beside the shipped baseline and cuBLAS: one run, one clock, interleaved rounds, warm and cold.

    PYTHONPATH=workflow python tests/bench/matmul_against_cublas.py SOURCE.cu PLAN.yaml [--shapes 512x512x512]

The clock is the trial's own (`graph`). cuBLAS is SGEMM in its default math mode, which is float32 without TF32, with
its own heuristic. Outputs of all are compared with float64 first. Prints one table; ratios are of medians.
Needs an NVIDIA card; to try the script alone, give it the baseline's own files.
"""

import argparse
import ctypes
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "gpu"))

from own_process import compile_cuda

from kerneltrial.devices.cuda import timing
from kerneltrial.devices.cuda.clocks import call_each_set
from kerneltrial.devices.cuda.context import Context
from kerneltrial.devices.cuda.interleaved import Schedule
from kerneltrial.devices.cuda.launches import Module
from kerneltrial.devices.cuda.memory import Guarded
from kerneltrial.devices.cuda.probe import probe
from kerneltrial.devices.cuda.subjects import PlanSubject, SharedBuffers
from kerneltrial.devices.device import Samples
from kerneltrial.inputs.calls import Buffer, Call
from kerneltrial.inputs.contracts import read_contract
from kerneltrial.inputs.plans import read_plan
from kerneltrial.inputs.resolve import resolve

KERNEL = ROOT / "kernels" / "matmul_f32"
WORKSPACE_BYTES = 32 << 20  # what NVIDIA's documentation recommends on Hopper
SETS = 2


class Cublas:
    """SGEMM as a subject of timing, on the trial's stream."""

    nodes = 2  # split-K heuristics launch a second kernel

    def __init__(self, call: Call, shared: SharedBuffers, context: Context) -> None:
        from cuda.pathfinder import load_nvidia_dynamic_lib

        (self._m, self._k), (_, self._n) = (b.shape for b in call.buffers[:2])
        self._library = ctypes.CDLL(load_nvidia_dynamic_lib("cublas").abs_path)
        self._handle = ctypes.c_void_p()
        self._check("cublasCreate_v2", ctypes.byref(self._handle))
        self._check("cublasSetStream_v2", self._handle, ctypes.c_void_p(int(context.queue.stream)))
        workspace = Buffer(name="w", role="scratch", dtype="uint8", shape=(WORKSPACE_BYTES,), initial="poisoned")
        self._workspace = Guarded(workspace, 0)
        address, size = ctypes.c_void_p(self._workspace.address), ctypes.c_size_t(WORKSPACE_BYTES)
        self._check("cublasSetWorkspace_v2", self._handle, address, size)
        self._shared = shared

    def grow(self, calls: int) -> None:
        """Calls on one input set share a slot."""

    def renew(self) -> None:
        """The library is trusted."""

    def enqueue(self, index: int) -> None:
        """Row-major C = A B is column-major C' = B' A'."""
        placed = self._shared.placed(index)
        one, zero = ctypes.c_float(1), ctypes.c_float(0)
        a, b, c = (ctypes.c_void_p(placed[name].address) for name in ("a", "b", "c"))
        m, n, k = self._m, self._n, self._k
        scalars = (ctypes.byref(one), b, n, a, k, ctypes.byref(zero), c, n)
        self._check("cublasSgemm_v2", self._handle, 0, 0, n, m, k, *scalars)

    def _check(self, function: str, *arguments: Any) -> None:
        status = getattr(self._library, function)(*arguments)
        if status:
            raise RuntimeError(f"{function} returned {status}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("plan", type=Path)
    parser.add_argument("--shapes", default="256x256x256,384x256x320,512x512x512,1024x1024x1024")
    parser.add_argument("--rounds", type=int, default=60)
    arguments = parser.parse_args()
    context = Context(probe().arch)
    modules = [
        Module(compile_cuda(path.read_text(), context.device.arch).cubin)
        for path in (KERNEL / "baseline.cu", arguments.source)
    ]
    print(f"{context.device.name}, driver {context.device.fingerprint.get('driver', 'unknown')}; microseconds")
    print(
        "m x n x k          batch  baseline  candidate  cublas  | over baseline  over cublas | cold: base  cand  cublas"
    )
    for text in arguments.shapes.split(","):
        m, n, k = (int(part) for part in text.split("x"))
        samples = measure(context, modules, {"m": m, "n": n, "k": k}, arguments)
        print(row(text, samples))


def measure(
    context: Context, modules: Sequence[Module], dims: dict[str, int], arguments: argparse.Namespace
) -> Samples:
    """Samples of one shape; raises AssertionError where an output is wrong."""
    contract = read_contract(KERNEL / "contract.yaml")
    plans = [read_plan(KERNEL / "baseline.plan.yaml"), read_plan(arguments.plan)]
    base, candidate = (resolve(plan, contract, dims, "pointer") for plan in plans)
    values = [_values(dims, seed) for seed in range(SETS)]
    shared = SharedBuffers((base, candidate), values, context.queue.stream)
    subjects: dict[str, Any] = {
        "a": PlanSubject(modules[0], base, shared, context.queue),
        "a2": PlanSubject(modules[0], base, shared, context.queue),
        "b": PlanSubject(modules[1], candidate, shared, context.queue),
        "cublas": Cublas(base, shared, context),
    }
    for name, subject in subjects.items():
        subject.grow(shared.cycle)
        call_each_set(context.queue, subject, shared)
        for one, left in zip(values, shared.outputs(), strict=True):
            got = np.frombuffer(left["c"], np.float32).reshape(dims["m"], dims["n"])
            want = one["a"].astype(np.float64) @ one["b"].astype(np.float64)
            error = np.linalg.norm(got - want) / np.linalg.norm(want)
            assert error < 1e-6, f"{name}: relative error {error:.1e}"
    schedule = Schedule(rounds=arguments.rounds, order="random", seed=0)
    return timing.rounds(context, subjects, shared, schedule, "graph")


def row(shape: str, samples: Samples) -> str:
    warm = {key: median(values) for key, values in samples.warm_us.items()}
    cold = {key: median(values) for key, values in samples.cold_us.items()}
    return (
        f"{shape:18s} {samples.calls_per_sample:5d} {warm['a']:9.2f} {warm['b']:10.2f} {warm['cublas']:7.2f}  "
        f"| {warm['a'] / warm['b']:13.3f} {warm['cublas'] / warm['b']:12.3f} "
        f"| {cold['a']:10.2f} {cold['b']:5.2f} {cold['cublas']:7.2f}   A/A' {warm['a'] / warm['a2']:.4f}"
    )


def _values(dims: dict[str, int], seed: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    shapes = {"a": (dims["m"], dims["k"]), "b": (dims["k"], dims["n"])}
    return {name: random.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()}


if __name__ == "__main__":
    main()
