"""What the bench of throughput says of the records that the stages left."""

import pytest
from throughput_on_gpu import judged


def found(valid: int = 32, timed: int = 32, other: int = 0, kind: str = "cuda") -> dict:
    cases = [{"case": "square_256"}, {"case": "rect_384"}]
    return {
        "lock": {"device": {"name": "a card", "kind": kind, "fingerprint": {"driver": "580"}}},
        "validation": {"candidates": [{"state": "valid"}] * valid + [{"state": "invalid"}] * other},
        "timing": {"candidates": [{"state": "timed", "cases": cases}] * timed + [{"state": "skipped"}] * other},
    }


@pytest.mark.parametrize(
    ("records", "time_s", "bad", "says"),
    [
        (found(), 30.0, 0, "validate and time: 55.0 s (1.72 a candidate)"),
        (found(valid=30, timed=30, other=2), 30.0, 0, "performance cases: 2"),
        (found(), 36.0, 1, "! not reached"),
        (found(kind="cpu"), 36.0, 0, "61.0 s"),
        (found(valid=31, timed=31), 30.0, 1, "! 31 candidates came of 32"),
        (found(timed=31), 30.0, 1, "! 1 valid ones have no figure"),
        (found(valid=0, timed=0, other=32), 30.0, 1, "! no candidate is valid"),
    ],
)
def test_a_figure_counts_only_where_every_candidate_was_judged_and_timed(records, time_s, bad, says):
    text, status = judged(records, {"lock": 2.0, "validate": 25.0, "time": time_s}, 32)
    assert status == bad
    assert says in text
    assert ("!" in text) is bool(bad)
