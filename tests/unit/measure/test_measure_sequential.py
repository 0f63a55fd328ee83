"""The sequential plan: when it stops, and that its intervals hold whatever the noise is."""

from decimal import Decimal

import numpy as np
import pytest

from kerneltrial.measure.quantile import student_t
from kerneltrial.measure.sequential import looks, narrow, nominal_confidence, plan_of
from kerneltrial.records.protocol import Protocol
from kerneltrial.records.record import Interval

TRIALS = 20_000


def coverage(at: tuple[int, ...], nominal: float, deviation: float, shift: float = 0.0) -> float:
    """The share of simulated plans whose interval holds the mean; `deviation` is in units of the precision."""
    drawn = np.random.default_rng(7).normal(shift, deviation, (TRIALS, at[-1]))
    held, going_on = 0, np.ones(TRIALS, bool)
    for count in at:
        means, deviations = drawn[:, :count].mean(axis=1), drawn[:, :count].std(axis=1, ddof=1)
        half = student_t((1 + nominal) / 2, count - 1) * deviations / count**0.5
        stops = going_on & ((half <= 1) | (count == at[-1]))
        held += int((stops & (np.abs(means - shift) <= half)).sum())
        going_on &= ~stops
    return held / TRIALS


@pytest.mark.parametrize("at", [(5, 10), (5, 10, 20), (6, 12, 24, 48)])
def test_the_interval_where_a_plan_stops_holds_for_every_noise(at):
    nominal = nominal_confidence(at, 0.95)
    held = [coverage(at, nominal, deviation) for deviation in np.geomspace(0.2, 20, 12)]
    assert min(held) == pytest.approx(0.95, abs=0.005)  # the worst noise just keeps it; standard error 0.0015
    assert held[0] == pytest.approx(nominal, abs=0.004)  # a quiet card stops at the first look
    assert max(held) < 0.975


def test_the_level_that_was_asked_would_not_do_at_every_noise():
    assert min(coverage((5, 10, 20), 0.95, deviation) for deviation in (1.0, 1.5, 2.0)) < 0.93


@pytest.mark.parametrize("confidence", [0.8, 0.9, 0.99, 0.999])
def test_every_confidence_that_can_be_asked_has_a_level_between_one_look_and_strangers(confidence):
    nominal = nominal_confidence((5, 10), confidence)
    assert confidence < nominal < 1 - (1 - confidence) / 2


def test_one_look_is_held_at_the_level_that_was_asked():
    assert nominal_confidence((5,), 0.95) == 0.95


def test_the_plan_is_the_protocols():
    plan = plan_of(Protocol(confirmation_processes=6, confirmation_looks=3, precision=Decimal("0.001")))
    assert plan.at == looks(6, 3) == (6, 12, 24)
    assert plan.nominal_confidence == nominal_confidence((6, 12, 24), 0.95)
    assert plan.precision == 0.001


@pytest.mark.parametrize(("half", "stops"), [(0.002, True), (0.003, False)])
def test_a_look_stops_on_the_widest_interval(half, stops):
    sharp = Interval(low=1.2, middle=1.2, high=1.2, confidence=0.95)
    other = Interval(low=1.1 / (1 + half), middle=1.1, high=1.1 * (1 + half), confidence=0.95)
    assert narrow([sharp, other], 0.0025) is stops
