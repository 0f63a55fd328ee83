"""Approximate instructions beside an H200's own results, within what PTX documents of them."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from corpus_results import both, units_away
from instruction_cases import Case, cases

CARD = json.loads((Path(__file__).parents[2] / "golden" / "corpus_h200.json").read_text())["approximate"]
ABSOLUTE = {"sin": 2.0**-20.5, "cos": 2.0**-20.5}
"""In [-pi, pi]; PTX promises nothing beyond."""
RELATIVE = {"lg2": 2.0**-22, "tanh": 2.0**-10.987}
"""Of lg2 near 1 it is absolute."""
UNITS = 1
"""Of the last place, for all others: what the device and the card differ by, less than the documented 1 or 2 each."""


def _floats(words: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return words.astype(np.uint32).view(np.float32).astype(np.float64)


def _differences(case: Case, mine: np.ndarray, theirs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Operands, both results' difference and the card's result, where both are finite; elsewhere they must agree."""
    x = _floats(np.array(case.operands()[0][0], np.uint64))
    a, b = _floats(mine[:, 0]), _floats(theirs[:, 0])
    finite = np.isfinite(a) & np.isfinite(b)
    assert (finite | (a == b) | (np.isnan(a) & np.isnan(b))).all()
    return x[finite], np.abs(a[finite] - b[finite]), b[finite]


@pytest.mark.parametrize("case", [pytest.param(c, id=c.name.replace(" ", "-")) for c in cases(approximate=True)])
def test_within_what_is_documented(case: Case) -> None:
    seen = 0
    for key, mine, theirs in both(case, CARD):
        seen += 1
        head = key.split(".")[0]
        if case.results[0] != "f32" or head not in ABSOLUTE | RELATIVE:
            upper = 32 if case.results[0] == "f64" else 0  # of doubles, PTX has the upper half of the result
            assert units_away(case, mine, theirs) <= UNITS << upper, key
            continue
        x, away, result = _differences(case, mine, theirs)
        if head in ABSOLUTE:
            inside = np.abs(x) <= math.pi
            assert inside.sum() > 20
            assert (away[inside] <= ABSOLUTE[head]).all(), key
        else:
            scale = np.maximum(np.abs(result), 1.0) if head == "lg2" else np.abs(result)
            assert (away <= RELATIVE[head] * scale).all(), key
    assert seen or not any(key.endswith(case.name) for key in CARD)
