"""A line a family out of what `families_on_gpu.py` left, for the README: its largest shape, warm, in Markdown.

    python tests/bench/families_short.py families_rows_products_others.json [...]

A family of several files is taken from the last of them. Needs no card.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from families_table import NAN, TORCH_NAMES, floors, least, ours
from families_torch import MODES

_HEAD = ("family", "shape", "best, µs", "over the baseline", "over torch", "over torch.compile", "of the limit")


def times(ratio: float) -> str:
    """How a ratio is written: two digits behind the point below 10, none above, a dash where there is none."""
    return "–" if ratio != ratio else f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def line(report: dict[str, Any], limits: dict[str, float]) -> str | None:
    """The row of a family, or nothing where no shape of it was timed."""
    timed = {at: found for at, found in report["shapes"].items() if "us" in found and ours(found)}
    if not timed:
        return None
    at = max(timed, key=lambda one: least(timed[one], ours(timed[one]), "warm_us"))
    found = timed[at]
    best = least(found, ours(found), "warm_us")
    others = [least(found, names, "warm_us") for names in (("baseline",), TORCH_NAMES, MODES)]
    limit, floor, _ = floors(found, report["family"], limits | report.get("rates", {}))
    cells = [f"`{report['family']}`", at.replace("x", "×"), f"{best:.1f}", *(times(us / best) for us in others)]
    share = floor / best if best else NAN
    return "| " + " | ".join([*cells, f"{share:.0%} ({limit})"]) + " |"


def short(files: Sequence[Path]) -> list[str]:
    """The table's lines; families in the order in which they first come."""
    found: dict[str, str] = {}
    for file in files:
        written = json.loads(file.read_text())
        rows = {r["family"]: line(r, written["limits"]) for r in written["families"]}
        found |= {name: row for name, row in rows.items() if row is not None}
    return ["| " + " | ".join(_HEAD) + " |", "|" + " --- |" * len(_HEAD), *found.values()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    print("\n".join(short(parser.parse_args().files)))


if __name__ == "__main__":
    main()
