"""The sequential plan: against printed constants, against simulation, and what makes it stop."""

from random import Random
from statistics import NormalDist

import pytest

from kerneltrial.measure import statistics
from kerneltrial.measure.sequential import looks, narrow, nominal_confidence
from kerneltrial.records.record import Interval

# Pocock's constants for two-sided tests at 0.05 and 0.01 (Jennison and Turnbull 2000, table 2.1), equal groups.
POCOCK = {(2, 0.05): 2.178, (3, 0.05): 2.289, (4, 0.05): 2.361, (5, 0.05): 2.413, (3, 0.01): 2.873}


@pytest.mark.parametrize(("key", "constant"), POCOCK.items())
def test_levels_are_pococks_for_equal_groups(key, constant):
    count, alpha = key
    nominal = nominal_confidence(tuple(range(5, 5 * count + 1, 5)), 1 - alpha)
    assert NormalDist().inv_cdf((1 + nominal) / 2) == pytest.approx(constant, abs=1.5e-3)


def test_one_look_is_held_at_the_level_that_was_asked():
    assert nominal_confidence((5,), 0.95) == 0.95


def test_the_looks_double_up_to_the_most():
    assert looks(5, 20) == (5, 10, 20)
    assert looks(5, 5) == (5,)
    assert looks(6, 20) == (6, 12, 20)


def test_all_looks_together_are_wrong_as_seldom_as_was_asked():
    """Intervals by t over normal medians at 5, 10 and 20 processes: any of the three misses the truth."""
    at = looks(5, 20)
    nominal, random = nominal_confidence(at, 0.95), Random(3)
    missed = 0
    trials = 3000
    for _ in range(trials):
        medians = [random.gauss(0.01, 0.002) for _ in range(at[-1])]
        intervals = [statistics.t_interval(medians[:count], nominal) for count in at]
        missed += any(not one.low <= 0.01 <= one.high for one in intervals)
    assert 0.035 < missed / trials < 0.065  # 0.05, standard error 0.004; the t approximation adds a little


@pytest.mark.parametrize(("half", "stops"), [(0.002, True), (0.003, False)])
def test_a_look_stops_on_the_widest_interval(half, stops):
    sharp = Interval(low=1.2, middle=1.2, high=1.2, confidence=0.95)
    other = Interval(low=1.1 / (1 + half), middle=1.1, high=1.1 * (1 + half), confidence=0.95)
    assert narrow([sharp, other], 0.0025) is stops
