"""Money: decimals all the way, and figures that agree with a closed form."""

from decimal import Decimal

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trial_pieces import CPU, H200, SQUARE, WIDE, agreed, interval, qualification, usage
from trial_stories import LOOKED, STORIES, confirmed

from kerneltrial.decide.cost import cost, model_usd, spent
from kerneltrial.decide.payback import payback
from kerneltrial.decide.prize import prize
from kerneltrial.decide.saving import confirmed_saving, gpu_hours, saved_hours
from kerneltrial.records.confirmation import Confirmation, Confirmed, NoWinner
from kerneltrial.records.cost import KnownPayback, NoPayback
from kerneltrial.records.decision import Payback, PaybackNever, PaybackUnknown
from kerneltrial.records.prize import KnownPrize, UnknownPrize
from kerneltrial.records.proposal import ModelUsage
from kerneltrial.records.qualification import BaselineLatency
from kerneltrial.records.roofline import Floor, NoFloor
from kerneltrial.records.terms import ModelPrices, NoModelPrices
from kerneltrial.store.canonical import canonical, decode


def confirmation(square: float, wide: float, half: float = 0.01) -> Confirmation:
    cases = (confirmed(SQUARE, square, half), confirmed(WIDE, wide, half))
    mean = interval((square * wide) ** 0.5, half)
    outcome = Confirmed(winner="a" * 64, cases=cases, geometric_mean=mean, looked=LOOKED, valid=True, findings=())
    return Confirmation(outcome=outcome)


def prized(
    baseline_us: float, calls: int, gpu_hour_usd: str = "3.60", floor: Floor | NoFloor | None = None
) -> KnownPrize:
    floors = {} if floor is None else {SQUARE: floor}
    performance = BaselineLatency(cases={SQUARE: baseline_us}, samples={}, floors=floors)
    qualified = msgspec.structs.replace(qualification(H200), performance=performance)
    now = agreed(False, calls={SQUARE: calls}, gpu_hour_usd=gpu_hour_usd)
    known = prize(qualified, now.policy, now.prices, now.workload).prize
    assert isinstance(known, KnownPrize)
    return known


def test_prize_is_the_whole_baseline_time_at_the_price() -> None:
    # 10 us x 3.6e9 calls = 36,000 s = 10 h; at 3.60 USD that is 36 USD a month
    known = prized(10.0, 3_600_000_000)
    assert known.gpu_hours_per_month == Decimal(10)
    assert known.saved_usd_per_month == Decimal(36)
    assert known.people_usd == Decimal("332.5")  # 3.5 h at 95
    assert "0 us" in known.floor


def test_prize_is_what_lies_above_the_floor() -> None:
    # 10 us less a floor of 4 us, 3.6e9 calls: 6 h; at 3.60 USD that is 21.60 USD a month
    known = prized(10.0, 3_600_000_000, floor=Floor(floor_us=4.0, bound="fp32", assumes="ordinary units"))
    assert known.gpu_hours_per_month == Decimal(6)
    assert known.saved_usd_per_month == Decimal("21.6")
    assert "4.00 us (fp32: ordinary units)" in known.floor


@pytest.mark.parametrize("floor", [NoFloor(why="none"), Floor(floor_us=10.5, bound="dram", assumes="each byte once")])
def test_a_floor_that_is_unknown_or_broken_by_the_baseline_takes_nothing_off_the_prize(floor: Floor | NoFloor) -> None:
    assert prized(10.0, 3_600_000_000, floor=floor).gpu_hours_per_month == Decimal(10)


@pytest.mark.parametrize(("calls", "can"), [(2_770_833_333, False), (2_770_833_334, True)])
def test_prize_pays_back_from_exactly_the_horizon_on(calls: int, can: bool) -> None:
    # 332.50 USD within 12 months needs 27.7083 USD a month: 2,770,833,333.3 calls of 10 us at 3.60 USD
    assert prized(10.0, calls).can_pay_back is can


def test_nothing_to_save_cannot_pay_back_even_free_people() -> None:
    assert prized(10.0, 0).can_pay_back is False


def test_prize_is_unknown_on_a_device_without_a_clock() -> None:
    now = agreed(True)
    result = prize(qualification(CPU), now.policy, now.prices, now.workload)
    assert isinstance(result.prize, UnknownPrize)
    assert "GPU" in result.prize.settled_by
    assert result.example


@pytest.mark.parametrize(("source", "example"), [("example row", True), ("", True), ("contract 118", False)])
def test_prize_and_cost_are_marked_where_the_prices_are_an_examples(source: str, example: bool) -> None:
    now = agreed(False)
    prices = msgspec.structs.replace(now.prices, source=source)
    assert prize(qualification(H200), now.policy, prices, now.workload).example is example
    assert prize(qualification(CPU), now.policy, prices, now.workload).example is example
    assert cost(1, spent((), (), prices, now.workload), (), prices, now.workload).example is example


def test_a_case_that_the_trial_does_not_have_is_named() -> None:
    with pytest.raises(ValueError, match="calls_per_month names cube"):
        gpu_hours({"cube": 5}, {SQUARE: 1.0})


def test_saving_against_a_closed_form() -> None:
    # 20 us at 2x saves 10 us a call
    saving = saved_hours({SQUARE: 3_600_000_000}, [(SQUARE, 20.0, interval(2.0, 0.4))])
    assert saving.middle == 10
    assert saving.low == Decimal(20) * (1 - 1 / Decimal("1.6"))
    assert float(saving.high) == pytest.approx(20 * (1 - 1 / 2.4), rel=1e-12)


def test_what_disturbs_a_process_disturbs_all_its_cases() -> None:
    """Cases that move against each other from process to process cancel; together they widen the interval."""
    calls, base = {SQUARE: 10**9, WIDE: 10**9}, confirmation(1.5, 1.5).outcome
    square, wide = base.cases
    equal = [msgspec.structs.replace(case, baseline_warm_us=20.0) for case in (square, wide)]
    against = tuple(3.0 - ratio for ratio in square.process_ratios)
    opposed = msgspec.structs.replace(equal[1], process_ratios=against)
    widths = {
        name: confirmed_saving(calls, msgspec.structs.replace(base, cases=(equal[0], other)))
        for name, other in (("together", equal[1]), ("opposed", opposed))
    }
    together, apart = widths["together"], widths["opposed"]
    assert together.middle == apart.middle == saved_hours(calls, [(c.case, 20.0, c.speedup) for c in equal]).middle
    assert apart.high - apart.low < (together.high - together.low) / 10
    # 1.49 and 1.51 in both cases at once is what the old, wider interval took
    ends = saved_hours(calls, [(c.case, 20.0, c.speedup) for c in equal])
    assert float(together.low) == pytest.approx(float(ends.low), rel=1e-3)
    assert float(together.high) == pytest.approx(float(ends.high), rel=1e-3)


def test_payback_against_a_closed_form_to_the_cent() -> None:
    now = agreed(False, calls={SQUARE: 3_600_000_000}, gpu_hour_usd="10")
    shown = payback(Decimal(1200), confirmation(1.5, 1.5), now)
    assert isinstance(shown, Payback)
    # 18.432 us x (1 - 1/1.5) x 3.6e9 / 3.6e9 = 6.144 h -> 61.44 USD a month
    assert shown.saved_usd_per_month.middle == Decimal("61.44")
    assert shown.months_middle == Decimal("19.53125")
    assert shown.months_low < shown.months_middle < shown.months_high
    # 1200 USD in 12 months: 100 USD a month = 100 / 61.44 of these calls
    assert shown.break_even_calls_per_month == 5_859_375_000


def test_a_break_even_beyond_64_bits_can_be_written() -> None:
    """A call that saves a billionth of the least price: more calls than anybody makes, and still a number."""
    now = agreed(False)
    prices = msgspec.structs.replace(now.prices, gpu_hour_usd=Decimal("1e-12"))
    workload = msgspec.structs.replace(now.workload, calls_per_month={SQUARE: 1, WIDE: 1}, invocations_per_month=0)
    paid = payback(
        Decimal(10**9), confirmation(2.0, 2.0), msgspec.structs.replace(now, prices=prices, workload=workload)
    )
    assert isinstance(paid, Payback)
    assert paid.break_even_calls_per_month > 2**63
    assert decode(Payback, canonical(paid)) == paid


@pytest.mark.parametrize("value", ["1e-13", "-1e-13", "1e-400"])
def test_a_price_that_is_almost_nothing_is_none(value: str) -> None:
    """Its payback had more digits than there was room for, and the decision ended in a fault."""
    with pytest.raises(ValueError, match=r"gpu_hour_usd=-?1E-\d+ must be"):
        msgspec.structs.replace(agreed(False).prices, gpu_hour_usd=Decimal(value))


def test_a_saving_interval_that_includes_zero_shows_no_payback() -> None:
    shown = payback(Decimal(1200), confirmation(1.005, 1.005), agreed(False))
    assert isinstance(shown, PaybackUnknown)
    assert "includes zero" in shown.why


@pytest.mark.parametrize(
    ("speedup", "terms", "why"),
    [
        (0.8, {}, "as long as before"),
        (1.5, {"calls": {}}, "no calls"),
        (1.5, {"gpu_hour_usd": "0"}, "costs nothing"),
    ],
)
def test_no_saving_at_all_never_pays_back(speedup: float, terms: dict[str, object], why: str) -> None:
    shown = payback(Decimal(1200), confirmation(speedup, speedup), agreed(False, **terms))
    assert isinstance(shown, PaybackNever)
    assert why in shown.why


def test_no_winner_has_no_payback() -> None:
    shown = payback(Decimal(5), Confirmation(outcome=NoWinner(why="none")), agreed(False))
    assert isinstance(shown, PaybackUnknown)
    assert shown.pilot_usd == 5


MODEL = ModelPrices(
    input_usd=Decimal("1.25"),
    cached_input_usd=Decimal("0.125"),
    output_usd=Decimal(10),
    source="list",
    date="2026-11-01",
)


def tokens(fresh: int, cached: int, output: int) -> ModelUsage:
    return ModelUsage(
        requests=(),
        replies=(),
        input_tokens=fresh + cached,
        cached_tokens=cached,
        output_tokens=output,
        reasoning_tokens=0,
    )


def test_model_charge_prices_cached_tokens_apart() -> None:
    assert model_usd(tokens(1_000_000, 2_000_000, 100_000), MODEL) == Decimal("2.5")


def test_tokens_without_a_price_stop_the_sum() -> None:
    with pytest.raises(ValueError, match=r"prices\.model has no price"):
        model_usd(tokens(1, 0, 0), NoModelPrices())


def test_spent_sums_usage_entries() -> None:
    now = agreed(False, gpu_hour_usd="3.60", model=MODEL)
    total = spent(
        [tokens(1_000_000, 0, 0), tokens(0, 0, 1000)],
        [usage("1000.5", "3"), usage("799.5", "4.5")],
        now.prices,
        now.workload,
    )
    assert (total.device_s, total.cpu_s) == (Decimal(1800), Decimal("7.5"))
    assert total.device_usd == Decimal("1.8")
    assert total.model_usd == Decimal("1.26")
    assert total.total_usd == Decimal("335.56")
    assert total.input_tokens == 1_000_000


def test_costs_grow_and_carry_a_provisional_payback() -> None:
    trial = STORIES["go"]()
    totals = [cost.spent.total_usd for cost in trial.costs]
    assert totals == sorted(totals)
    assert trial.decision.spent.total_usd > totals[-1]  # the confirmation is paid for, too
    paybacks = [cost.payback for cost in trial.costs]
    assert all(isinstance(known, KnownPayback) for known in paybacks)
    assert paybacks[0].payback_months > paybacks[1].payback_months > paybacks[2].payback_months


def test_counts_have_no_provisional_payback() -> None:
    costs = STORIES["cpu"]().costs
    assert all(isinstance(cost.payback, NoPayback) and "counts are not time" in cost.payback.why for cost in costs)
    assert all(cost.example for cost in costs)


MONEY = ("_usd", "_usd_per_month", "_s", "months_low", "months_middle", "months_high", "hours_per_month")


def no_float_money(value: object, path: str = "") -> None:
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            no_float_money(getattr(value, name), f"{path}.{name}")
    elif isinstance(value, tuple):
        for item in value:
            no_float_money(item, path)
    elif path.rpartition(".")[2].endswith(MONEY) or ".saved_usd_per_month." in path or ".gpu_hours_per_month." in path:
        assert isinstance(value, Decimal), path


@given(
    st.floats(0.5, 3.0),
    st.floats(0.5, 3.0),
    st.integers(0, 10**13),
    st.decimals("0.01", "1000", places=2),
    st.decimals("0", "100000", places=6),
)
@settings(max_examples=60, deadline=None)
def test_money_never_floats(square: float, wide: float, calls: int, price: Decimal, pilot: Decimal) -> None:
    now = agreed(False, calls={SQUARE: calls, WIDE: calls // 3}, gpu_hour_usd=str(price))
    shown = payback(pilot, confirmation(square, wide), now)
    no_float_money(shown)
    no_float_money(prize(qualification(H200), now.policy, now.prices, now.workload))
    if isinstance(shown, Payback):
        saved = shown.saved_usd_per_month
        assert 0 <= saved.low <= saved.middle <= saved.high
        assert shown.months_low <= shown.months_middle <= shown.months_high


@pytest.mark.parametrize("name", STORIES)
def test_no_record_of_a_whole_trial_has_float_money(name: str) -> None:
    trial = STORIES[name]()
    for record in (trial.prize, trial.decision, *trial.costs):
        no_float_money(record)
