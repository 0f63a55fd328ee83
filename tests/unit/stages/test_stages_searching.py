"""The search's compiler: real compilers in limited children, both languages, each configuration once."""

import contextlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kerneltrial.build.compilers import Compilers
from kerneltrial.inputs.toolchain import toolchain
from kerneltrial.propose.proposer import Draft, candidate_of
from kerneltrial.propose.search.reports import Compiles, DoesNot, Silent
from kerneltrial.records.build import Built, NotBuilt
from kerneltrial.records.contract import Array, Contract, DimensionArgument, Range
from kerneltrial.records.plan import Launch, LaunchPlan, Variant
from kerneltrial.records.proposal import Origin
from kerneltrial.records.reason import Reason
from kerneltrial.stages import build
from kerneltrial.stages.compiling import open_builder
from kerneltrial.stages.searching import Reporting
from kerneltrial.store.measurements import Measurements
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
LAUNCH = Launch(entry="k", grid=("ceil_div(n, 128)", "1", "1"), block=("128", "1", "1"), args=("x", "y", "n"))
CUDA = """extern "C" __global__ void k(const float* x, float* y, int n) {
  __shared__ float s[64];
  s[threadIdx.x % 64] = x[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < n) y[threadIdx.x] = s[n % 64];
}
"""
NUMBA = """from numba import cuda
import numba

@cuda.jit
def k(x, y, n):
    s = cuda.shared.array(32, numba.float32)
    i = cuda.grid(1)
    s[cuda.threadIdx.x % 32] = x[i % n]
    cuda.syncthreads()
    if i < n:
        y[i] = s[0]
"""


def draft(source: str, language: str = "cuda_cpp") -> Draft:
    origin = Origin(hypothesis="h", pattern="none", parents=(), parameters={})
    plan = LaunchPlan(variants=(Variant(launches=(LAUNCH,)),))
    return Draft(language=language, source=source.encode(), plan=plan, origin=origin)


@pytest.fixture
def reporting(tmp_path: Path) -> Any:
    lock = SimpleNamespace(contract=CONTRACT, device=SimpleNamespace(arch="sm_90a", kind="cuda"), toolchain=toolchain())
    job = SimpleNamespace(
        nursery=None,
        folder=tmp_path,
        private=tmp_path / "private",
        measurements=Measurements(tmp_path / "measurements"),
        source=lambda group: tmp_path / "contract.yaml",
    )
    with contextlib.ExitStack() as opened:
        yield Reporting(job, lock, opened)


def test_both_languages_are_reported_and_what_does_not_compile_is_a_value(reporting: Reporting) -> None:
    found = reporting.reports([draft(CUDA), draft("no C++"), draft(CUDA + "\n// the same again")])
    assert isinstance(found[0], Compiles)
    assert 1 < found[0].registers < 64
    assert (found[0].shared_bytes, found[0].spilled_bytes) == (256, 0)
    assert isinstance(found[1], DoesNot)
    assert found[1].reason is Reason.DOES_NOT_COMPILE
    assert found[2] == found[0]


def test_numba_is_reported_too(reporting: Reporting) -> None:
    found = reporting.reports([draft(NUMBA, "numba_cuda"), draft("def k(: pass", "numba_cuda")])
    assert isinstance(found[0], Compiles), found[0]
    assert found[0].registers > 1
    assert found[0].shared_bytes == 128
    assert isinstance(found[1], DoesNot)


def test_a_configuration_is_compiled_once(reporting: Reporting, monkeypatch: pytest.MonkeyPatch) -> None:
    first = reporting.reports([draft(CUDA)])
    monkeypatch.setattr(Reporting, "_built", lambda self, pairs: () if not pairs else pytest.fail("compiled again"))
    assert reporting.reports([draft(CUDA)]) == first


def test_a_fault_that_is_not_the_sources_says_nothing_and_is_not_kept(
    reporting: Reporting, monkeypatch: pytest.MonkeyPatch
) -> None:
    def died(self: Reporting, pairs: Any) -> tuple[NotBuilt, ...]:
        return tuple(
            NotBuilt(candidate=c.id, reason=Reason.COMPILER_DIED, detail="killed", log="0" * 64) for c, _ in pairs
        )

    with monkeypatch.context() as patch:
        patch.setattr(Reporting, "_built", died)
        assert reporting.reports([draft(CUDA)]) == [Silent()]
    assert isinstance(reporting.reports([draft(CUDA)])[0], Compiles)


def test_what_was_compiled_for_a_report_is_not_compiled_again_to_be_built(
    reporting: Reporting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reporting.reports([draft(CUDA)])
    assert reporting._nursery is not None
    candidate, objects = candidate_of(draft(CUDA)), Objects(tmp_path / "objects")

    def built(shelved: bool) -> Built | NotBuilt:
        builder = open_builder(reporting._job, reporting._lock, reporting._nursery, shelved=shelved)
        return builder.build(candidate, CUDA.encode(), objects)

    anew = built(shelved=False)
    monkeypatch.setattr(Compilers, "nvrtc", lambda *_: pytest.fail("compiled again"))
    assert isinstance(anew, Built)
    assert built(shelved=True) == anew
    reads = {"lock": reporting._lock, "propose": SimpleNamespace(candidates=(candidate,))}
    job = SimpleNamespace(
        **vars(reporting._job) | {"objects": objects, "nursery": reporting._nursery},
        record=lambda stage, _: reads[stage],
        records=lambda *_: (),
    )
    objects.put(CUDA.encode())
    assert build.run(job).candidates == (anew,)
    (kept,) = (tmp_path / "cache" / "compiled").iterdir()
    kept.write_bytes(kept.read_bytes()[:-1] + b"!")
    with pytest.raises(pytest.fail.Exception, match="compiled again"):
        built(shelved=True)
