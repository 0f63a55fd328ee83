"""Counters of launches become those of a plan, and these one sentence."""

import pytest

from kerneltrial.measure.counters import (
    CONFLICTS,
    DRAM_BYTES,
    DURATION,
    ISSUE,
    METRICS,
    OCCUPANCY,
    SHARES,
    merged,
    sentence,
)

SM, L1, L2, DRAM = SHARES


def launch(**changes: float) -> dict[str, float]:
    usual = {DURATION: 2000.0, SM: 30.0, L1: 20.0, L2: 10.0, DRAM: 40.0, OCCUPANCY: 50.0, ISSUE: 25.0, CONFLICTS: 0.0}
    return {**usual, DRAM_BYTES[0]: 3e6, DRAM_BYTES[1]: 1e6, **changes}


def test_sums_are_added_and_shares_weighted_by_how_long_a_launch_takes():
    whole = merged([launch(), launch(**{DURATION: 6000.0, SM: 70.0, CONFLICTS: 9.0})])
    assert whole[DURATION] == 8000.0
    assert whole[SM] == pytest.approx(60.0)  # a quarter of the time 30, three quarters 70
    assert whole[CONFLICTS] == 9.0
    assert whole[DRAM_BYTES[0]] == 6e6
    assert set(whole) == set(METRICS)


@pytest.mark.parametrize("launches", [[], [{}], [launch(), {DURATION: 1.0}]])
def test_counters_that_lack_something_are_none(launches):
    with pytest.raises(ValueError, match="the profiler"):
        merged(launches)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({SM: 85.0}, "bound by the SMs' arithmetic and issue at 85 % of the peak"),
        ({DRAM: 91.4}, "bound by DRAM at 91 % of the peak"),
        ({L1: 60.0}, "bound by L1 and shared memory at 60 % of the peak"),
        ({}, "bound by latency: the busiest unit is DRAM at 40 % of the peak"),
    ],
)
def test_the_sentence_names_what_holds_a_kernel_up(changes, said):
    words = sentence(launch(**changes))
    assert words.startswith(said)
    assert "50 % of the warps' places" in words
    assert "4 MB move to and from DRAM" in words
    assert "conflicts" not in words
    assert "\n" not in words


def test_conflicts_are_told_where_there_are_some():
    assert "1.2e+04 cycles go to conflicts" in sentence(launch(**{CONFLICTS: 12_000.0}))
