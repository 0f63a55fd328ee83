"""The payback by Monte Carlo: against closed forms, reproducible, and honest where the saving may be nothing."""

from decimal import Decimal
from math import sqrt

import msgspec
import pytest
import scipy.stats
from test_decide_money import confirmation
from trial_pieces import SQUARE, WIDE, agreed

from kerneltrial.decide.cost import people_usd
from kerneltrial.decide.forecast import DRAWS, Pilot, forecast, latin_hypercube, t_share, triangle
from kerneltrial.decide.payback import payback
from kerneltrial.records.decision import Payback, PaybackNever, PaybackUnknown, Saving
from kerneltrial.records.terms import Uncertainty

SURE = {"calls": Decimal(0), "gpu_hour": Decimal(0), "hours": Decimal(0)}
HOURS = Decimal(500)


def saving(half=Decimal(0)):
    return Saving(low=HOURS - half, middle=HOURS, high=HOURS + half)


def terms_with(**spread):
    now = agreed(False, gpu_hour_usd="4")
    workload = msgspec.structs.replace(now.workload, uncertainty=Uncertainty(**{**SURE, **spread}))
    return msgspec.structs.replace(now, workload=workload)


def drawn(half=Decimal(0), people="1000", machines="3000", freedom=4, **spread):
    pilot = Pilot(Decimal(people), Decimal(machines), saving(half), freedom, 0.95)
    return forecast(pilot, terms_with(**spread), seed=1)


def test_nothing_uncertain_gives_the_closed_form_to_the_cent():
    found = drawn()  # 4000 USD over 500 h x 4 USD a month
    assert found.p5 == found.p50 == found.p95 == Decimal("2")
    assert (found.within_horizon, found.never) == (1, 0)
    assert all(swing.months_low == swing.months_high for swing in found.swings)
    assert abs(found.p50 * HOURS * 4 - 4000) < Decimal("0.01")


@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
def test_uncertain_calls_alone_give_the_closed_form(share):
    # months = 2 / x with x triangular on 0.8 to 1.2: the p-quantile of months is 2 over the (1 - p)-quantile of x
    found = drawn(calls=Decimal("0.2"))
    quantile = scipy.stats.triang.ppf(1 - share, 0.5, 0.8, 0.4)
    told = {0.05: found.p5, 0.5: found.p50, 0.95: found.p95}[share]
    assert abs(float(told) - 2 / quantile) < 0.002


def test_uncertain_hours_alone_move_only_what_people_cost():
    found = drawn(hours=Decimal("0.3"))
    for told, share in ((found.p5, 0.05), (found.p95, 0.95)):
        assert abs(float(told) - (3000 + 1000 * scipy.stats.triang.ppf(share, 0.5, 0.7, 0.6)) / 2000) < 0.002


def test_an_uncertain_saving_follows_students_t():
    found = drawn(half=Decimal(100), freedom=4)
    scale = 100 / scipy.stats.t.ppf(0.975, 4)
    for told, share in ((found.p5, 0.95), (found.p95, 0.05)):
        assert abs(float(told) - 4000 / (4 * (500 + scale * scipy.stats.t.ppf(share, 4)))) < 0.003


def test_all_of_it_together_agrees_with_a_plain_simulation():
    found = drawn(half=Decimal(60), calls=Decimal("0.2"), gpu_hour=Decimal("0.1"), hours=Decimal("0.3"))
    random = scipy.stats.qmc.Sobol(4, seed=3).random(2**14)
    t = 500 + 60 / scipy.stats.t.ppf(0.975, 4) * scipy.stats.t.ppf(random[:, 0], 4)
    calls, price, hours = (
        scipy.stats.triang.ppf(random[:, i], 0.5, 1 - s, 2 * s) for i, s in ((1, 0.2), (2, 0.1), (3, 0.3))
    )
    months = sorted((3000 + 1000 * hours) / (4 * t * calls * price))
    for told, share in ((found.p5, 0.05), (found.p50, 0.5), (found.p95, 0.95)):
        assert abs(float(told) / months[int(share * len(months))] - 1) < 0.01


def test_the_same_seed_gives_the_same_forecast_and_another_seed_nearly_so():
    pilot = Pilot(Decimal(1000), Decimal(3000), saving(Decimal(60)), 4, 0.95)
    now = terms_with(calls=Decimal("0.2"), hours=Decimal("0.3"))
    assert forecast(pilot, now, seed=7) == forecast(pilot, now, seed=7)
    other = forecast(pilot, now, seed=8)
    assert other != forecast(pilot, now, seed=7)
    assert abs(other.p50 / forecast(pilot, now, seed=7).p50 - 1) < Decimal("0.005")


def test_each_input_is_drawn_evenly_and_in_an_order_of_its_own():
    columns = latin_hypercube(3, 1000, seed=5)
    for column in columns:
        assert sorted(column) == [(number + 0.5) / 1000 for number in range(1000)]
    assert abs(scipy.stats.pearsonr(columns[0], columns[1]).statistic) < 0.1
    assert columns[0][:3] == latin_hypercube(1, 1000, seed=5)[0][:3]


@pytest.mark.parametrize("freedom", [1, 4, 9, 49])
def test_the_table_of_t_is_near_the_real_thing(freedom):
    for share in (0.001, 0.05, 0.3, 0.5, 0.8, 0.95, 0.999):
        real = scipy.stats.t.ppf(share, freedom)
        assert abs(t_share(share, freedom) - real) < 1e-3 * max(1, abs(real))


def test_a_triangle_has_its_mode_in_the_middle_and_ends_at_its_ends():
    assert [triangle(share, 0.5) for share in (0, 0.5, 1)] == [0.5, 1.0, 1.5]
    assert triangle(0.125, 0.5) == pytest.approx(1 - 0.5 + 0.5 * sqrt(0.25))


def test_the_longest_bar_of_the_tornado_comes_first():
    found = drawn(half=Decimal(5), calls=Decimal("0.6"), gpu_hour=Decimal("0.1"), hours=Decimal("0.3"))
    assert found.swings[0].name == "calls"
    widths = [swing.months_high - swing.months_low for swing in found.swings]
    assert widths == sorted(widths, reverse=True)


def test_upkeep_lengthens_the_payback_until_nothing_is_left():
    months = [row.months for row in drawn().upkeep]
    assert months == sorted(months)
    # 1 h at 95 USD leaves 1905 of 2000 USD a month
    assert next(row.months for row in drawn().upkeep if row.hours_per_month == 1) == Decimal("2.1")
    small = Pilot(Decimal(10), Decimal(10), Saving(low=Decimal(9), middle=Decimal(10), high=Decimal(11)), 4, 0.95)
    assert [row.pays for row in forecast(small, terms_with(), 1).upkeep] == [False] * 4  # 40 USD a month saved


def test_draws_in_which_nothing_is_saved_are_counted_as_never():
    found = drawn(half=Decimal(480), freedom=4)
    assert found.never > 0
    assert found.p95 >= found.p50
    assert found.draws == DRAWS


def test_the_payback_carries_its_forecast_and_its_break_even():
    now = agreed(False)
    shown = payback(Decimal(1200), confirmation(1.5, 1.5), now, seed=3)
    assert isinstance(shown, Payback)
    assert shown.forecast.seed == 3
    assert shown.forecast.p5 < shown.months_middle < shown.forecast.p95
    # at the break-even milliseconds all calls together save the pilot's cost in just the horizon
    calls = sum(now.workload.calls_per_month.values())
    saved = shown.break_even_ms_per_call * calls / 3_600_000 * now.prices.gpu_hour_usd * now.policy.horizon_months
    assert abs(saved - 1200) < Decimal("0.01") * 1200
    assert people_usd(now.prices, now.workload) <= 1200


def test_a_saving_that_may_be_nothing_has_no_forecast():
    assert isinstance(payback(Decimal(1200), confirmation(1.005, 1.005), agreed(False)), PaybackUnknown)
    assert isinstance(payback(Decimal(1200), confirmation(0.8, 0.8), agreed(False)), PaybackNever)
    nothing = agreed(False, calls={SQUARE: 0, WIDE: 0})
    assert isinstance(payback(Decimal(1200), confirmation(1.5, 1.5), nothing), PaybackNever)
