"""How close `search` comes to the best of spaces whose full tables were measured by space_on_gpu.py.

    PYTHONPATH=workflow python tests/bench/search_regret.py [TABLE ...] [--iterations 7] [--count 4] [--seeds 20]

Without tables, those of `tests/tables/`. Prints, for each space, the median regret over the seeds after each iteration
(see regret.py): the search, the same without the compiler's reports and without the experts' seeds, Optuna's TPE and
random draws; then how well the prior alone orders the table, with and without the reports of all configurations.
Needs optuna for the row of TPE (pip install 'kerneltrial[bench]'; the row is left out where there is none).
"""

import argparse
import importlib.util
import statistics
from pathlib import Path

import numpy as np
from regret import CARD, PROPOSERS, ROOT, Measurement, opened
from space_tables import read_table

from kerneltrial.propose.search.card import card_of
from kerneltrial.propose.search.prior import Reports
from kerneltrial.propose.search.reports import Terms

TABLES = ROOT / "tests" / "tables"


def rank_correlation(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's coefficient."""
    return float(np.corrcoef(np.argsort(np.argsort(x)), np.argsort(np.argsort(y)))[0, 1])


def prior_line(measured: Measurement, reports: bool) -> str:
    """How the prior orders the table: rank correlation, and the regret of the best of its first ten."""
    space, rows = measured.space, measured.table.reports()
    keys = [tuple(c.values()) for c in space.configurations]
    known = np.array([i for i, key in enumerate(keys) if key in measured.truth])
    told = None
    if reports:
        kept = [rows[keys[i]] for i in known]
        told = Reports(
            np.array([row.registers for row in kept]),
            np.array([row.shared_bytes for row in kept]),
            np.array([row.spilled_bytes for row in kept]),
        )
    guess = -Terms(space, [dict(case) for case in measured.table.cases], card_of(CARD)).guess(known, told)
    us = np.array([measured.truth[keys[i]] for i in known])
    first = us[np.argsort(guess, kind="stable")[:10]].min()
    name = "prior with all reports" if reports else "prior"
    correlation = rank_correlation(guess, us)
    return f"  {name:24s} rank correlation {correlation:.2f}, best of its first ten {measured.regret(first):.1f} %"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("tables", type=Path, nargs="*")
    options.add_argument("--iterations", type=int, default=7)
    options.add_argument("--count", type=int, default=4)
    options.add_argument("--seeds", type=int, default=20)
    options.add_argument("--only", default="", help="rows whose names hold this")
    chosen = options.parse_args()
    for path in chosen.tables or sorted(TABLES.glob("*.json.gz")):
        measured = opened(read_table(path))
        middle = statistics.median(measured.truth.values())
        print(
            f"{measured.table.problem}: {len(measured.truth)} of {len(measured.table.rows)} right, "
            f"best {measured.best:.2f} us, median configuration {measured.regret(middle):.0f} % above it"
        )
        for name, proposer in PROPOSERS.items():
            if chosen.only not in name or (name == "plain TPE" and importlib.util.find_spec("optuna") is None):
                continue
            courses = [proposer(measured, seed, chosen.iterations, chosen.count) for seed in range(chosen.seeds)]
            medians = [statistics.median(map(measured.regret, column)) for column in zip(*courses, strict=True)]
            worst = max(measured.regret(course[-1]) for course in courses)
            print(
                f"  {name:24s}",
                *[f"{m:6.1f}" for m in medians],
                f" % after each iteration; worst {worst:.1f}",
                flush=True,
            )
        for reports in (False, True):
            print(prior_line(measured, reports))
        for seed in measured.space.file.seeds:
            us = measured.truth.get(tuple(seed.parameters.values()))
            print(f"  seed {seed.parameters}: {'wrong' if us is None else f'{measured.regret(us):.1f} %'}")


if __name__ == "__main__":
    main()
