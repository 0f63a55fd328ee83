"""Mutation testing of the validator: how many small mistakes in shipped kernels does it refuse, and which not?

    PYTHONPATH=workflow python tests/bench/mutation.py kernels/matmul_f32/baseline.cu ... [--every N] [--to FILE]

Each mutant is built by the real compiler and judged on the `cpu` device by the shipped contract, cases and protocol.
One line of JSON a mutant goes to FILE: its fate is `stillborn` (does not compile, or not to a kernel that the plan can
launch), `equal` (the same PTX but for line numbers), `killed` (with the reason), `unchecked` or `survived`. What
survived must be looked at by a person: `mutants_known.py` holds what was found.
"""

import argparse
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from mutants import Mutant, mutants, plan_mutants

from kerneltrial.build.builder import Builder
from kerneltrial.build.preloading import preload as build_preload
from kerneltrial.devices.device import Binary
from kerneltrial.devices.opening import CPU_ARCH, detect
from kerneltrial.devices.preloading import preload as runner_preload
from kerneltrial.devices.runner import Runner
from kerneltrial.inputs.cases import read_cases
from kerneltrial.inputs.contracts import read_contract
from kerneltrial.inputs.documents import parse, to_record, with_text_expressions
from kerneltrial.inputs.oracle import load
from kerneltrial.inputs.plans import plan_path, read_plan
from kerneltrial.judge.setup import JudgeSetup, Subject
from kerneltrial.judge.validation import Judge
from kerneltrial.records.build import Built, Cubin
from kerneltrial.records.candidate import Candidate
from kerneltrial.records.device import DeviceKind
from kerneltrial.records.plan import LaunchPlan
from kerneltrial.records.protocol import Protocol
from kerneltrial.records.validation import Invalid, Validated
from kerneltrial.sandbox.nursery import Nursery
from kerneltrial.store.canonical import digest
from kerneltrial.store.objects import Objects

ROOT = Path(__file__).resolve().parents[2]
PROTOCOL = Protocol(budget_instructions=1_000_000_000)  # an endless loop is one after fewer steps too


class Family:
    """A contract with its cases, oracle and baseline, and a judge that is kept between mutants."""

    def __init__(
        self, name: str, folder: Path, stack: ExitStack, protocol: Protocol = PROTOCOL, device: DeviceKind = "cpu"
    ) -> None:
        self.kind, self.arch = device, CPU_ARCH if device == "cpu" else detect("cuda").arch
        self.kernels, self.cases = ROOT / "kernels" / name, ROOT / "cases" / name
        self.contract = read_contract(self.kernels / "contract.yaml")
        self._objects = Objects(folder / "objects")
        self.runners = stack.enter_context(Nursery(runner_preload(device)))
        compilers = stack.enter_context(Nursery(build_preload(("cuda_cpp",))))
        self._builder = Builder(compilers, self.contract, self.arch)
        baseline = self.kernels / "baseline.cu"
        plan = read_plan(plan_path(baseline))
        built = self.build(baseline.read_bytes(), plan)
        assert isinstance(built, Built), built
        runner = stack.enter_context(Runner(self.runners, device, arch=self.arch))
        self.judge = Judge(
            JudgeSetup(
                contract=self.contract,
                cases=read_cases(self.cases / "cases.yaml"),
                protocol=protocol,
                oracle=load(self.cases / "oracle.py"),
                baseline=Subject(binary=self.binary(built), plan=plan, abi="pointer", runner=runner),
                folder=self.cases,
                seed=1,
            )
        )

    def build(self, source: bytes, plan: LaunchPlan) -> object:
        """What came of compiling."""
        candidate = Candidate(id=digest(source), language="cuda_cpp", source=digest(source), plan=plan)
        return self._builder.build(candidate, source, self._objects)

    def binary(self, built: Built) -> Binary:
        machine = (
            self._objects.get(built.cubin.digest) if self.kind == "cuda" and isinstance(built.cubin, Cubin) else b""
        )
        return Binary(ptx=self._objects.get(built.ptx).decode(), cubin=machine)

    def fate(self, source: str, plan: LaunchPlan, original: str) -> tuple[str, str]:
        """The fate of a mutant and, in words, why."""
        built = self.build(source.encode(), plan)
        if not isinstance(built, Built):
            return "stillborn", ""
        binary = self.binary(built)
        if _bare(binary.ptx) == original:
            return "equal", ""
        with Runner(self.runners, self.kind, arch=self.arch, call_s=120.0) as runner:
            outcome = self.judge.judge_candidate(built, binary, plan, runner)
        if isinstance(outcome, Validated):
            return "survived", ""
        fate = "killed" if isinstance(outcome, Invalid) else "unchecked"
        return fate, f"{outcome.reason.value}: {outcome.detail}"


def _bare(ptx: str) -> str:
    """PTX without line numbers, of which mutants have others."""
    return re.sub(r"^\s*(\.loc|//|\.file)[^\n]*$", "", ptx, flags=re.MULTILINE)


def fates(
    family: Family, path: Path, every: int, only: frozenset[str] = frozenset()
) -> Iterator[tuple[Mutant, str, str]]:
    """Mutants of a source and of its plan (or those named in `only`), each with its fate."""
    source, plan_file = path.read_text(), plan_path(path)
    plan = read_plan(plan_file)
    built = family.build(source.encode(), plan)
    assert isinstance(built, Built), built
    original = _bare(family.binary(built).ptx)
    for mutant in list(mutants(source))[::every]:
        if not only or mutant.name in only:
            yield mutant, *family.fate(mutant.source, plan, original)
    for mutant in plan_mutants(plan_file.read_text()):
        if only and mutant.name not in only:
            continue
        changed = to_record(with_text_expressions(parse(mutant.source)), LaunchPlan, "mutant")
        yield mutant, *family.fate(source, changed, "")


def _left(path: Path) -> dict[str, list[str]]:
    """Names of mutants that were not refused, by kernel."""
    found: dict[str, list[str]] = {}
    for line in path.read_text().splitlines():
        told = json.loads(line)
        if told["fate"] in ("survived", "unchecked"):
            found.setdefault(told["kernel"].removeprefix("kernels/"), []).append(told["mutant"])
    return found


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description="Mutation testing of the validator.")
    parser.add_argument("sources", nargs="+", type=Path)
    parser.add_argument("--every", type=int, default=1, help="take every Nth mutant")
    parser.add_argument("--to", type=Path, default=Path("mutation.jsonl"))
    parser.add_argument("--again", type=Path, help="take those only that survived, or were unchecked, in this FILE")
    asked = parser.parse_args(arguments)
    left = _left(asked.again) if asked.again else {}
    counts: Counter[str] = Counter()
    with asked.to.open("a", encoding="utf-8") as out:
        for path in asked.sources:
            path = path.resolve()
            with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
                name = path.relative_to(ROOT / "kernels").parts[0]
                family = Family(name, Path(folder), stack)
                only = frozenset(left.get(f"{name}/{path.name}", ("none",))) if asked.again else frozenset()
                for mutant, fate, why in fates(family, path, asked.every, only):
                    counts[fate] += 1
                    told = {
                        "kernel": str(path.relative_to(ROOT)),
                        "mutant": mutant.name,
                        "fate": fate,
                        "why": why[:300],
                    }
                    print(json.dumps(told), file=out, flush=True)
            print(time.strftime("%H:%M:%S"), path.relative_to(ROOT), dict(counts), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
