"""Judge every configuration of every kernel family's space on the `cpu` device, on every case, as a trial would.

    PYTHONPATH=workflow python tests/bench/families.py [NAME ...] [--step N] [--small] [--boundary N]

Without names, all families of `trials/`. First each family is qualified (null candidates, baseline, reference), then
each configuration is validated. `--step N` takes every N-th configuration and the seeds; `--small` leaves out the cases
that are there to be timed. Prints one line for each configuration that is not valid, and one with the sum for each
family; exits 1 where there was any. No GPU is used and nothing is timed.
"""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit" / "families"))

from family_court import Family, names

from kerneltrial.devices.device import Refused
from kerneltrial.records.problem import Problem
from kerneltrial.records.validation import Validated


def main() -> int:
    arguments = _arguments()
    return 1 if sum(_family(Family(name), arguments) for name in arguments.names or names()) else 0


def _family(family: Family, arguments: argparse.Namespace) -> int:
    began = time.process_time()
    judge = family.judge(family.small if arguments.small else family.cases, arguments.boundary)
    try:
        family.qualified(judge)
    except (Problem, Refused) as problem:
        print(f"{family.name}: {problem}", flush=True)
        return 1
    qualified = time.process_time() - began
    space = family.space
    chosen = [seed.parameters for seed in space.file.seeds]
    chosen += [c for c in space.configurations[:: arguments.step] if c not in chosen]
    bad = 0
    for parameters in chosen:
        outcome = family.verdict(judge, parameters)
        if not isinstance(outcome, Validated):
            bad += 1
            print(f"{family.name} {parameters}: {outcome.reason.value}: {outcome.detail}", flush=True)
    spent = time.process_time() - began
    print(
        f"{family.name}: qualified in {qualified:.1f} s; {len(chosen) - bad} of {len(chosen)} configurations are valid "
        f"(of {len(space.configurations)}); {spent:.1f} s of CPU",
        flush=True,
    )
    return bad


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a family, such as transpose_f32")
    parser.add_argument("--step", type=int, default=1, help="take every N-th configuration, and the seeds")
    parser.add_argument("--small", action="store_true", help="leave out the cases that are there to be timed")
    parser.add_argument("--boundary", type=int, default=6, help="boundary shapes beside the cases")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
