"""From source to outputs: the real compiler, the real `cpu` device, each in its own child of one nursery."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from kerneltrial.build.builder import Builder
from kerneltrial.build.preloading import preload as build_preload
from kerneltrial.devices.device import Binary, Conditions
from kerneltrial.devices.preloading import preload as runner_preload
from kerneltrial.devices.runner import Runner
from kerneltrial.inputs.resolve import resolve
from kerneltrial.records.build import Built
from kerneltrial.records.candidate import Candidate
from kerneltrial.records.contract import Array, Contract, DimensionArgument, Range
from kerneltrial.records.plan import Launch, LaunchPlan, Variant
from kerneltrial.records.reason import Reason
from kerneltrial.sandbox.nursery import Nursery
from kerneltrial.store.canonical import digest
from kerneltrial.store.objects import Objects

CONTRACT = Contract(
    name="scale",
    description="y = 2 x",
    arguments=(
        Array(name="x", role="input", dtype="float32", shape=("n",)),
        Array(name="y", role="output", dtype="float32", shape=("n",)),
        DimensionArgument(name="n"),
    ),
    dimensions={"n": Range(minimum=1, maximum=1000)},
    tolerances={},
    operations="n",
    bytes="8*n",
)
LAUNCH = Launch(entry="k", grid=("ceil_div(n, 64)", "1", "1"), block=("64", "1", "1"), args=("x", "y", "n"))
PLAN = LaunchPlan(variants=(Variant(launches=(LAUNCH,)),))
CUDA = """\
extern "C" __global__ void k(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}
"""
NUMBA = """\
from numba import cuda

def k(x, y, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = x[i] * 2
"""


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery([*build_preload(["cuda_cpp", "numba_cuda"]), *runner_preload("cpu")]) as opened:
        yield opened


def run(nursery: Nursery, folder: Path, language: str, source: str, call_s: float = 60.0):
    objects, content = Objects(folder), source.encode()
    candidate = Candidate(id=digest(content), language=language, source=digest(content), plan=PLAN)
    built = Builder(nursery, CONTRACT, "sm_80").build(candidate, content, objects)
    assert isinstance(built, Built), built
    call = resolve(PLAN, CONTRACT, {"n": 100}, built.abi)
    with Runner(nursery, "cpu", call_s=call_s) as runner:
        runner.load(Binary(ptx=objects.get(built.ptx).decode(), cubin=objects.get(built.cubin.digest)))
        return runner.run(call, {"x": np.arange(100, dtype=np.float32)}, Conditions(poison="nan"))


@pytest.mark.parametrize(("language", "source"), [("cuda_cpp", CUDA), ("numba_cuda", NUMBA)])
def test_a_kernel_in_either_language_gives_its_answer(nursery, tmp_path: Path, language: str, source: str) -> None:
    outcome = run(nursery, tmp_path, language, source)
    assert outcome.completed, outcome.findings
    assert not outcome.findings
    assert np.frombuffer(outcome.outputs["y"], np.float32).tolist() == [2.0 * i for i in range(100)]


def test_a_kernel_without_end_is_ended(nursery, tmp_path: Path) -> None:
    source = CUDA.replace("if (i < n)", "volatile int go = 1; while (go) { go = 1 + go * go; } if (i < n)")
    outcome = run(nursery, tmp_path, "cuda_cpp", source, call_s=5.0)
    assert not outcome.completed
    assert outcome.findings[0].reason in (Reason.ENDLESS_LOOP, Reason.HANG)


def test_a_write_outside_is_a_finding_and_no_crash(nursery, tmp_path: Path) -> None:
    outcome = run(nursery, tmp_path, "cuda_cpp", CUDA.replace("y[i] =", "y[i + (1 << 28)] ="))
    assert not outcome.completed
    assert [finding.reason for finding in outcome.findings] == [Reason.OUT_OF_BOUNDS]
