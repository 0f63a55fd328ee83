"""What the validation of a candidate costs on the `cpu` device: seconds by the wall clock and of the processor.

    PYTHONPATH=workflow python tests/bench/validation_cost.py [matmul_f32] [--configurations N]

Candidates are N configurations spread over the family's space. Processor seconds are those of the judge (oracle, nulls
are not among them, comparison) and of the candidate's runner; answers and the baseline's errors are there before, as
they are in a trial, whose qualification works them out once.
"""

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from mutation import ROOT, Family

from kerneltrial.devices.opening import CPU_ARCH
from kerneltrial.devices.runner import Runner
from kerneltrial.propose.search.space import read_space
from kerneltrial.records.build import Built
from kerneltrial.records.protocol import Protocol


def main() -> None:
    parser = argparse.ArgumentParser(description="What the validation of a candidate costs on the cpu device.")
    parser.add_argument("family", nargs="?", default="matmul_f32")
    parser.add_argument("--configurations", type=int, default=6)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        family = Family(asked.family, Path(folder), stack, Protocol())
        judge = family.judge
        for case in judge.cases:
            for draw in range(judge.draws(case)):
                judge.answers.baseline(case, draw)
        space = read_space(ROOT / "kernels" / asked.family / "space.yaml")
        chosen = space.configurations[:: max(1, len(space.configurations) // asked.configurations)]
        rows = []
        for parameters in chosen[: asked.configurations]:
            plan = space.plan(parameters)
            built = family.build(space.source(parameters), plan)
            if not isinstance(built, Built):
                print(f"{parameters}: not built")
                continue
            wall, own = time.perf_counter(), time.process_time()
            runner = Runner(family.runners, "cpu", arch=CPU_ARCH)
            with runner:
                outcome = judge.judge_candidate(built, family.binary(built), plan, runner)
            rows.append((time.perf_counter() - wall, time.process_time() - own, runner.used.cpu_s))
            told = "  ".join(f"{seconds:6.2f}" for seconds in rows[-1])
            print(
                f"wall, judge, runner: {told}  {type(outcome).__name__}  {parameters}",
                flush=True,
            )
    middle = [median(column) for column in zip(*rows, strict=True)]
    print("median: wall {:.2f} s, processor: judge {:.2f} s, runner {:.2f} s".format(*middle), file=sys.stdout)


if __name__ == "__main__":
    main()
