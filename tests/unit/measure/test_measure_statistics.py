"""Intervals and ratios: against tables, against scipy where it is there, and against simulation."""

from math import comb, exp, log
from random import Random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerneltrial.devices.device import Samples
from kerneltrial.measure import quantile, statistics
from kerneltrial.measure.quantile import incomplete_beta, student_t, student_t_below

# NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2, and Abramowitz and Stegun, table 26.10.
TABLE = {
    (0.975, 1): 12.706, (0.975, 4): 2.776, (0.975, 9): 2.262, (0.95, 4): 2.132, (0.995, 4): 4.604,
    (0.9, 30): 1.310, (0.975, 60): 2.000, (0.9995, 4): 8.610,
}  # fmt: skip


def samples(warm: dict[str, tuple[float, ...]], cold: dict[str, tuple[float, ...]] | None = None) -> Samples:
    return Samples(
        clock="graph",
        resolution_us=0.01,
        calls_per_sample=50,
        warm_us=warm,
        cold_us=cold or warm,
        outputs=(),
        device_state={},
        discarded=0,
    )


@pytest.mark.parametrize(("key", "value"), TABLE.items())
def test_t_quantiles_agree_with_printed_tables(key, value):
    assert student_t(*key) == pytest.approx(value, abs=6e-4)


def test_t_quantiles_agree_with_scipy_to_1e_9():
    scipy_stats = pytest.importorskip("scipy.stats", reason="scipy is not installed")
    for probability in (0.55, 0.9, 0.975, 0.995, 0.9995):
        for freedom in (1, 2, 3, 4, 5, 9, 19, 49, 199, 5000):
            assert student_t(probability, freedom) == pytest.approx(scipy_stats.t.ppf(probability, freedom), rel=1e-9)


def test_t_quantiles_are_exact_where_a_closed_form_exists():
    # one degree of freedom is the Cauchy distribution, two have t = (2p - 1) / sqrt(2 p (1 - p))
    assert student_t(0.75, 1) == pytest.approx(1.0, rel=1e-11)
    assert student_t(0.975, 2) == pytest.approx(0.95 / (2 * 0.975 * 0.025) ** 0.5, rel=1e-11)
    assert student_t(0.025, 7) == -student_t(0.975, 7)
    assert student_t(0.5, 7) == 0.0


def test_where_bisection_starts_changes_no_bit_of_a_quantile_and_saves_more_than_half_of_it(monkeypatch):
    dice, calls = Random(3), []
    asked = [(dice.uniform(0.5, 0.9999), dice.choice((1, 2, 4, 5, 9, 19, 199, 5000))) for _ in range(300)]
    asked += [(1 - 10 ** dice.uniform(-12, -4), freedom) for _, freedom in asked[:100]]
    counted = quantile.incomplete_beta
    monkeypatch.setattr(quantile, "incomplete_beta", lambda *given: calls.append(given) or counted(*given))
    near = [student_t.__wrapped__(*one) for one in asked]
    few = len(calls)
    monkeypatch.setattr(quantile, "_cell", lambda a, tail: (0.0, 1.0))
    assert near == [student_t.__wrapped__(*one) for one in asked]
    assert few < 0.5 * (len(calls) - few)


def test_the_incomplete_beta_function_has_its_closed_forms():
    assert incomplete_beta(1, 1, 0.3) == pytest.approx(0.3, rel=1e-13)
    assert incomplete_beta(3, 1, 0.7) == pytest.approx(0.7**3, rel=1e-13)
    assert (incomplete_beta(2, 5, 0.0), incomplete_beta(2, 5, 1.0)) == (0.0, 1.0)


@pytest.mark.parametrize(("probability", "freedom"), [(0, 4), (1, 4), (0.9, 0)])
def test_a_quantile_that_does_not_exist_is_refused(probability, freedom):
    with pytest.raises(ValueError, match="no t quantile"):
        student_t(probability, freedom)


def test_a_t_interval_by_hand():
    # mean 2, standard deviation 1, n = 3: half width 4.302653 / sqrt(3)
    interval = statistics.t_interval([1.0, 2.0, 3.0], 0.95)
    assert interval.middle == 2.0
    assert interval.high - 2.0 == pytest.approx(4.30265272991 / 3**0.5, rel=1e-9)
    assert interval.low == pytest.approx(4.0 - interval.high)


def test_a_t_interval_covers_as_often_as_it_says():
    random = Random(5)
    covered = 0
    for _ in range(2000):
        interval = statistics.t_interval([random.gauss(0.3, 2.0) for _ in range(5)], 0.95)
        covered += interval.low <= 0.3 <= interval.high
    assert 0.93 < covered / 2000 < 0.97


def test_values_that_lie_close_together_by_luck_get_the_deviation_that_is_known():
    close = [0.1, 0.1001, 0.0999, 0.1, 0.1]
    wide = statistics.t_interval(close, 0.95, least_deviation=0.02)
    assert wide.high - wide.middle == pytest.approx(2.776445105 * 0.02 / 5**0.5)
    assert wide.middle == statistics.t_interval(close, 0.95).middle
    assert statistics.t_interval(close, 0.95, least_deviation=1e-6) == statistics.t_interval(close, 0.95)


def test_one_kernels_own_deviation_is_that_of_a_over_a2_less_the_second_place():
    assert statistics.place_deviation([0.03, -0.03, 0.03]) == pytest.approx(0.03 / 2**0.5)
    random = Random(3)
    apart = [random.gauss(0, 0.5) - random.gauss(0, 0.5) for _ in range(20_000)]
    assert statistics.place_deviation(apart) == pytest.approx(0.5, rel=0.02)


def test_one_process_gives_no_interval():
    with pytest.raises(ValueError, match="at least two"):
        statistics.t_interval([0.1], 0.95)


def test_a_median_interval_by_hand():
    # n = 10: the 2nd smallest and the 2nd largest enclose the median with probability 1 - 2 * 11 / 1024 = 0.9785
    interval = statistics.median_interval([float(x) for x in range(1, 11)], 0.95)
    assert (interval.low, interval.middle, interval.high, interval.confidence) == (2.0, 5.5, 9.0, 0.95)
    # the 3rd ones only with 1 - 2 * 56 / 1024 = 0.8906
    assert statistics.median_interval([float(x) for x in range(1, 11)], 0.89).low == 3.0


def test_a_median_interval_says_when_it_cannot_reach_the_confidence():
    interval = statistics.median_interval([1.0, 2.0, 3.0, 4.0], 0.95)
    assert (interval.low, interval.high) == (1.0, 4.0)
    assert interval.confidence == 1 - 2 / 16


@pytest.mark.parametrize("count", [6, 10, 25, 60])
def test_a_median_interval_is_the_narrowest_that_reaches_the_confidence(count):
    values = [float(x) for x in range(count)]
    interval = statistics.median_interval(values, 0.95)
    rank = values.index(interval.low) + 1

    def reached(r: int) -> float:
        return 1 - 2 * sum(comb(count, i) for i in range(r)) / 2**count

    assert reached(rank) >= 0.95 > reached(rank + 1)
    assert interval.high == values[-rank]


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=80))
def test_a_median_interval_encloses_the_median(values):
    interval = statistics.median_interval(values, 0.95)
    assert interval.low <= interval.middle <= interval.high
    assert interval.middle == median(values)


def test_log_ratios_pair_within_rounds():
    drawn = samples({"a": (2.0, 20.0), "a2": (2.0, 20.0), "b": (1.0, 10.0)})
    assert statistics.round_log_ratios(drawn) == pytest.approx((log(2), log(2)))
    assert statistics.noise_log_ratios(drawn) == (0.0, 0.0)


def test_a_steady_drift_falls_out_of_an_abba_round():
    # the card slows by 1 % a reading; A B B A' and B A A' B
    slow = [1.01**i for i in range(4)]
    rows = {
        "a": (3.0 * slow[0], 3.0 * slow[1]),
        "b": (2.0 * slow[1], 2.0 * slow[0]),
        "b2": (2.0 * slow[2], 2.0 * slow[3]),
        "a2": (3.0 * slow[3], 3.0 * slow[2]),
    }
    assert statistics.round_log_ratios(samples(rows)) == pytest.approx((log(1.5), log(1.5)), rel=1e-12)


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=20), st.floats(0.1, 10))
def test_the_geometric_mean_scales_and_lies_within(ratios, factor):
    mean = statistics.geometric_mean(ratios)
    assert min(ratios) * (1 - 1e-9) <= mean <= max(ratios) * (1 + 1e-9)
    assert statistics.geometric_mean([factor * r for r in ratios]) == pytest.approx(factor * mean)


def test_the_interval_of_a_ratio_comes_from_logs():
    interval = statistics.from_logs(statistics.t_interval([log(1.2), log(1.25), log(1.3)], 0.9))
    assert interval.middle == pytest.approx(exp((log(1.2) + log(1.25) + log(1.3)) / 3))
    assert interval.low < interval.middle < interval.high
    assert interval.confidence == 0.9


def test_t_probabilities_undo_quantiles_and_agree_with_scipy():
    scipy_stats = pytest.importorskip("scipy.stats", reason="scipy is not installed")
    for freedom in (1, 4, 9, 49):
        for value in (-40.0, -2.5, -0.1, 0.0, 0.3, 2.0, 30.0):
            wanted = scipy_stats.t.cdf(value, freedom)
            assert student_t_below(value, freedom) == pytest.approx(wanted, rel=1e-9)


def test_holm_by_hand():
    # 0.01 <= 0.05 / 3, 0.02 <= 0.05 / 2, 0.06 > 0.05
    assert statistics.holm([0.06, 0.01, 0.02], 0.05) == (False, True, True)
    # the first fails, so none falls, though 0.03 alone would
    assert statistics.holm([0.03, 0.04], 0.05) == (False, False)
    assert statistics.holm([0.03], 0.05) == (True,)
    assert statistics.holm([], 0.05) == ()


def test_holm_is_wrong_at_most_as_often_as_asked_over_many_cases():
    random = Random(11)
    wrong, trials = 0, 2000
    for _ in range(trials):
        p_values = [statistics.below_p([random.gauss(0.0, 1.0) for _ in range(5)], 0.0) for _ in range(6)]
        wrong += any(statistics.holm(p_values, 0.05))
    assert 0.03 < wrong / trials < 0.067


def test_a_p_value_agrees_with_scipys_t_test():
    scipy_stats = pytest.importorskip("scipy.stats", reason="scipy is not installed")
    values = [0.01, -0.02, -0.015, 0.004, -0.03]
    wanted = scipy_stats.ttest_1samp(values, 0.002, alternative="less").pvalue
    assert statistics.below_p(values, 0.002) == pytest.approx(wanted, rel=1e-9)
    assert statistics.below_p([0.5, 0.5, 0.5], 0.75) == 0.0
    assert statistics.below_p([0.5, 0.5, 0.5], 0.5) == 1.0


def test_the_saving_of_a_workload_is_weighted_within_each_process():
    # 10 us called 3 times at 2x saves 15 of 30; 20 us called once at 0.5x loses 20 of 20
    logs = [[log(2.0), log(1.0)], [log(0.5), log(1.0)]]
    assert statistics.saved_share([10.0, 20.0], [3, 1], logs) == pytest.approx([-5 / 50, 0.0])
    assert statistics.saved_share([10.0, 20.0], [0, 0], logs) == [0.0, 0.0]


def test_drift_is_what_the_ratio_moves_within_a_process():
    a = tuple(10.0 for _ in range(30))
    steady = samples({"a": a, "a2": a, "b": tuple(9.0 for _ in a)})
    moving = samples({"a": a, "a2": a, "b": tuple(9.0 * exp(-0.001 * i) for i in range(30))})
    first, second = statistics.drift_logs([steady, moving])
    assert first == pytest.approx(0.0, abs=1e-12)
    assert second == pytest.approx(0.020)
