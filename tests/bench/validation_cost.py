"""What the validation of a candidate costs: seconds by the wall clock and of the processor, in all and by parts.

    PYTHONPATH=workflow python tests/bench/validation_cost.py [matmul_f32] [--configurations N] [--device cuda]
        [--sanitizers] [--to FILE]

Candidates are N configurations spread over the family's space. Processor seconds are those of the judge (oracle, nulls
are not among them, comparison) and of the candidate's runner; answers and the baseline's errors are there before, as
they are in a trial, whose qualification works them out once. `opening` is the child's start until its device is open,
`runs` the calls in it; the rest is the judge's. With --sanitizers compute-sanitizer looks too.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from mutation import ROOT, Family

from kerneltrial.devices.cuda.sanitizer import Sanitizer
from kerneltrial.devices.device import Binary, Conditions, Run, Values
from kerneltrial.devices.runner import Runner
from kerneltrial.inputs.calls import Call
from kerneltrial.judge.validation import Further
from kerneltrial.propose.search.space import read_space
from kerneltrial.records.build import Built
from kerneltrial.records.protocol import Protocol
from kerneltrial.records.sanitizer import Sanitized

COLUMNS = ("wall", "judge_cpu", "runner_cpu", "opening", "runs", "sanitizers")


class Watched:
    """A runner whose calls are timed."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self.runs_s = 0.0
        self.calls = 0

    def load(self, binary: Binary) -> None:
        self._runner.load(binary)

    def run(self, call: Call, values: Values, conditions: Conditions) -> Run:
        start = time.perf_counter()
        try:
            return self._runner.run(call, values, conditions)
        finally:
            self.runs_s += time.perf_counter() - start
            self.calls += 1


class Looks:
    """The sanitizers, timed; says once what came of them."""

    def __init__(self, sanitizer: Sanitizer) -> None:
        self._sanitizer = sanitizer
        self.seconds = 0.0

    def __call__(self, binary: Binary, asked: Sequence[tuple[str, Call, Values]]) -> Sanitized:
        start = time.perf_counter()
        cases = tuple(case for case, _, _ in asked)
        told = self._sanitizer.look(self._sanitizer.request(binary, asked), cases)
        self.seconds = time.perf_counter() - start
        print("   ", "; ".join(str(tool)[:300] for tool in told.tools))
        return told


def measured(family: Family, sanitizers: bool, built: Built, plan: object) -> tuple[dict[str, float], str]:
    """Seconds of one candidate by `COLUMNS`, and the outcome."""
    wall, own = time.perf_counter(), time.process_time()
    looks = Looks(Sanitizer(family.runners, family.arch, 60.0)) if sanitizers else None
    runner = Runner(family.runners, family.kind, arch=family.arch)
    with runner:
        runner.device()
        opened = time.perf_counter() - wall
        watched = Watched(runner)
        outcome = family.judge.judge_candidate(built, family.binary(built), plan, watched, Further(sanitizes=looks))
    whole, judge = time.perf_counter() - wall, time.process_time() - own
    looked = looks.seconds if looks else 0.0
    seconds = (whole, judge, runner.used.cpu_s, opened, watched.runs_s, looked)
    return dict(zip(COLUMNS, seconds, strict=True)), f"{type(outcome).__name__}, {watched.calls} calls"


def main() -> None:
    parser = argparse.ArgumentParser(description="What the validation of a candidate costs.")
    parser.add_argument("family", nargs="?", default="matmul_f32")
    parser.add_argument("--configurations", type=int, default=6)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--sanitizers", action="store_true")
    parser.add_argument("--to", type=Path)
    asked = parser.parse_args()
    rows: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        family = Family(asked.family, Path(folder), stack, Protocol(), asked.device)
        judge = family.judge
        start = time.perf_counter()
        for case in judge.cases:
            for draw in range(judge.draws(case)):
                judge.answers.baseline(case, draw)
        print(f"{len(judge.cases)} cases; answers and the baseline's errors {time.perf_counter() - start:.2f} s")
        space = read_space(ROOT / "kernels" / asked.family / "space.yaml")
        chosen = space.configurations[:: max(1, len(space.configurations) // asked.configurations)]
        print("  ".join(f"{name:>10}" for name in COLUMNS))
        for parameters in chosen[: asked.configurations]:
            plan = space.plan(parameters)
            built = family.build(space.source(parameters), plan)
            if not isinstance(built, Built):
                print(f"{parameters}: not built")
                continue
            seconds, outcome = measured(family, asked.sanitizers, built, plan)
            rows.append(seconds)
            told = "  ".join(f"{seconds[name]:10.2f}" for name in COLUMNS)
            print(f"{told}  {outcome}  {parameters}", flush=True)
    middle = {name: round(median(row[name] for row in rows), 3) for name in COLUMNS}
    print(f"median on {asked.device}: {middle}", file=sys.stdout)
    if asked.to:
        asked.to.write_text(json.dumps({"device": asked.device, "median": middle, "candidates": rows}, indent=1))


if __name__ == "__main__":
    main()
