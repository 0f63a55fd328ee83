"""How close `search` comes to the best of a space whose full table was measured by space_on_gpu.py.

    PYTHONPATH=workflow python tests/bench/search_regret.py space_matmul_f32.json [--iterations 7] [--count 4]

Regret is the best latency found over the best in the table, less one (geometric mean over the cases). Beside it: as
many random draws, the search without the experts' seeds, and how well the prior alone orders the table.
"""

import argparse
import json
import math
import random
import statistics
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np

from kerneltrial.propose.history import Failed, Fate, History, Measured, NoResources, Tried
from kerneltrial.propose.proposer import Draft, candidate_of
from kerneltrial.propose.search.search import Search
from kerneltrial.propose.search.space import Space, read_space
from kerneltrial.records.device import Device
from kerneltrial.records.reason import Reason

ROOT = Path(__file__).resolve().parents[2]
CARD = Device(kind="cuda", arch="sm_90a", name="H200", fingerprint={"multiprocessors": "132"})
Table = dict[tuple[int, ...], float]


def mean(values: list[float]) -> float:
    return math.exp(statistics.mean(math.log(v) for v in values))


def latencies(rows: list[dict[str, dict[str, int]]], space: Space) -> Table:
    """Return microseconds by configuration; those that the table lacks were wrong."""
    names = list(space.file.parameters)
    return {
        tuple(row["parameters"][n] for n in names): mean(row["coarse_us"])  # type: ignore[arg-type]
        for row in rows
        if row["parameters"]
    }


def fate(us: float | None) -> Fate:
    if us is None:
        return Failed(stage="validate", reason=Reason.WRONG_VALUES, detail="wrong in the table")
    return Measured(ratio=1.0 / us)


def best_found(search: Search, table: Table, iterations: int, count: int) -> list[float]:
    """Return the best latency after each iteration."""
    history, best, course = History(0, 0, ()), math.inf, []
    for number in range(1, iterations + 1):
        drafts = [d for d in search.propose(history, count) if isinstance(d, Draft)]
        results = [table.get(tuple(d.origin.parameters.values())) for d in drafts]
        best = min([best, *(us for us in results if us is not None)])
        course.append(best)
        tried = tuple(
            Tried(
                iteration=number,
                candidate=candidate_of(draft).id,
                origin=draft.origin,
                resources=NoResources(),
                fate=fate(us),
            )
            for draft, us in zip(drafts, results, strict=True)
        )
        history = History(number, history.attempts + len(drafts), history.tried + tried)
    return course


def rank_correlation(x: list[float], y: list[float]) -> float:
    """Spearman's coefficient."""
    return float(np.corrcoef(np.argsort(np.argsort(x)), np.argsort(np.argsort(y)))[0, 1])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("table", type=Path)
    options.add_argument("--problem", default="matmul_f32")
    options.add_argument("--iterations", type=int, default=7)
    options.add_argument("--count", type=int, default=4)
    chosen = options.parse_args()
    content = json.loads(chosen.table.read_text())
    space = read_space(ROOT / "kernels" / chosen.problem / "space.yaml")
    table = latencies(content["rows"], space)
    cases = content["cases"]
    search = Search(space, cases, CARD, seed=0)
    known = [row for row, c in enumerate(space.configurations) if tuple(c.values()) in table]
    times = [table[tuple(space.configurations[row].values())] for row in known]
    best = min(times)
    guess = [-float(search.points.guess[row]) for row in known]
    order = sorted(zip(guess, times, strict=True))
    print(
        f"{len(known)} of {len(space.configurations)} in the table, "
        f"best {best:.2f} us, median {statistics.median(times):.2f} us"
    )
    print(
        f"prior: rank correlation {rank_correlation(guess, times):.2f}, best of its first 10: "
        f"{100 * (min(t for _, t in order[:10]) / best - 1):.1f} % above the best"
    )
    for seed in space.file.seeds:
        us = table.get(tuple(seed.parameters.values()))
        print(f"seed {seed.parameters}: {'wrong' if us is None else f'{100 * (us / best - 1):.1f} % above the best'}")

    def show(name: str, course: list[float]) -> None:
        print(f"{name:24s}", *[f"{100 * (us / best - 1):6.1f}" for us in course], "% after each iteration")

    show("search", best_found(search, table, chosen.iterations, chosen.count))
    bare = replace(space, file=msgspec.structs.replace(space.file, seeds=()))
    show("search without seeds", best_found(Search(bare, cases, CARD, 0), table, chosen.iterations, chosen.count))
    draws = [random.Random(n).sample(times, chosen.iterations * chosen.count) for n in range(200)]
    sizes = [chosen.count * n for n in range(1, chosen.iterations + 1)]
    show("random (median of 200)", [statistics.median(min(d[:size]) for d in draws) for size in sizes])


if __name__ == "__main__":
    main()
