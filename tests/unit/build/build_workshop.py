"""A contract, plans for it, and a way to build sources and look into what came out."""

import dataclasses
from typing import Any

from kerneltrial.build.builder import Builder
from kerneltrial.records.build import Built, Cubin, NotBuilt
from kerneltrial.records.candidate import Candidate
from kerneltrial.records.contract import Array, Contract, DimensionArgument, Range
from kerneltrial.records.plan import Launch, LaunchPlan, Scratch, Variant
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


def plan(*entries: str, args: tuple[str, ...] = ("x", "y", "n"), scratch: tuple[Scratch, ...] = ()) -> LaunchPlan:
    launches = tuple(
        Launch(entry=entry, grid=("ceil_div(n, 128)", "1", "1"), block=("128", "1", "1"), args=args)
        for entry in entries or ("k",)
    )
    return LaunchPlan(variants=(Variant(launches=launches),), scratch=scratch)


@dataclasses.dataclass
class Workshop:
    """Builds sources of one contract and looks into what came out."""

    builder: Builder
    objects: Objects

    def plan(self, *entries: str, **parts: Any) -> LaunchPlan:
        return plan(*entries, **parts)

    def candidate(self, source: bytes, language: str, launch_plan: LaunchPlan) -> tuple[Candidate, bytes]:
        name = digest(source)
        return Candidate(id=name, language=language, source=name, plan=launch_plan), source

    def cuda(self, source: str | bytes, launch_plan: LaunchPlan | None = None) -> Built | NotBuilt:
        content = source.encode() if isinstance(source, str) else source
        return self.builder.build(*self.candidate(content, "cuda_cpp", launch_plan or plan()), self.objects)

    def numba(self, source: str, launch_plan: LaunchPlan | None = None) -> Built | NotBuilt:
        return self.builder.build(*self.candidate(source.encode(), "numba_cuda", launch_plan or plan()), self.objects)

    def log(self, outcome: Built | NotBuilt) -> str:
        return self.objects.get(outcome.log).decode()

    def ptx(self, outcome: Built | NotBuilt) -> str:
        assert isinstance(outcome, Built), (outcome, self.log(outcome))
        return self.objects.get(outcome.ptx).decode()

    def cubin(self, outcome: Built | NotBuilt) -> bytes:
        assert isinstance(outcome, Built), (outcome, self.log(outcome))
        assert isinstance(outcome.cubin, Cubin)
        return self.objects.get(outcome.cubin.digest)
