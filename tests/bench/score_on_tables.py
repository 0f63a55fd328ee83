"""How well the score of counts on `cpu` ranks a space whose times a card measured: rank correlation.

    PYTHONPATH=workflow python tests/bench/score_on_tables.py [matmul_f32 softmax_f32 ...] [--configurations N]

N configurations spread evenly over a table of `tests/tables/` are compiled, one call of each of the table's cases is
counted, and Spearman's coefficient of the geometric means of scores and of an H200's times is printed, with how much
slower than the fastest of them the one of the best score is. The score's constants were fitted to eleven other kernels.
"""

import argparse
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import geometric_mean

import numpy as np
from mutation import ROOT, Family
from search_regret import TABLES, rank_correlation
from space_tables import read_table

from kerneltrial.devices.device import Conditions, Refused
from kerneltrial.devices.runner import Runner
from kerneltrial.inputs.resolve import resolve
from kerneltrial.inputs.values import generate
from kerneltrial.measure.score import score
from kerneltrial.propose.search.space import read_space
from kerneltrial.records.build import Built
from kerneltrial.records.case import Case


def ranked(name: str, wanted: int) -> str:
    """One line of figures for a family's table."""
    table = read_table(TABLES / f"{name}.json.gz")
    space = read_space(ROOT / "kernels" / name / "space.yaml")
    truth = table.latencies()
    known = [c for c in space.configurations if tuple(c.values()) in truth]
    chosen = known[:: max(1, len(known) // wanted)][:wanted]
    scores, times = [], []
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        family = Family(name, Path(folder), stack)
        conditions = Conditions(poison="nan", checks="bounds")
        for parameters in chosen:
            plan = space.plan(parameters)
            built = family.build(space.source(parameters), plan)
            if not isinstance(built, Built):
                continue
            costs = []
            try:
                with Runner(family.runners, "cpu", arch=family.arch) as runner:
                    runner.load(family.binary(built))
                    for number, dimensions in enumerate(table.cases):
                        case = Case(name=f"c{number}", kind="performance", dimensions=dict(dimensions), seed=1)
                        call = resolve(plan, family.contract, case.dimensions, built.abi)
                        values = generate(family.contract, case, 0, family.cases)
                        costs.append(score(runner.count(call, values, conditions)))
            except Refused as refused:
                print(f"  {parameters}: {refused}")
                continue
            scores.append(geometric_mean(costs))
            times.append(truth[tuple(parameters.values())])
    best = times[int(np.argmin(scores))] / min(times) - 1
    correlation = rank_correlation(np.array(scores), np.array(times))
    spent = time.perf_counter() - started
    return (
        f"{name}: {len(times)} of {len(known)} configurations, rank correlation {correlation:.2f}; the best by score "
        f"is {100 * best:.1f} % slower than the fastest of them ({spent:.0f} s)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", default=["matmul_f32"])
    parser.add_argument("--configurations", type=int, default=60)
    asked = parser.parse_args()
    for name in asked.families:
        print(ranked(name, asked.configurations), flush=True)


if __name__ == "__main__":
    main()
