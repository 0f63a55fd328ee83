"""Rounds: baseline, the same again, candidate and vendors in random or ABBA order (DESIGN.md section 7)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from kerneltrial.devices.cuda import state
from kerneltrial.devices.cuda.clocks import ColdMeter, Meter
from kerneltrial.devices.cuda.cold_clock import ColdClock
from kerneltrial.devices.cuda.context import Context
from kerneltrial.devices.cuda.subjects import SharedBuffers, Subject
from kerneltrial.devices.device import DeviceProblem, SetAside
from kerneltrial.records.record import Record

Readings = dict[str, tuple[float, ...]]


class Schedule(Record, frozen=True):
    """How many rounds, in which order, from which seed: what `TimingRequest` says of them, and of warm buffers."""

    rounds: int
    order: Literal["random", "abba"]
    seed: int
    warm: tuple[str, ...] = ()


@dataclass(frozen=True)
class Clocks:
    """What reads in each round: warm (None: elsewhere), cold, and cold but for what the case states as warm."""

    warm: Meter | None
    cold: ColdMeter
    stated: ColdMeter | None

    def free(self) -> None:
        """The warm one belongs to whoever made it."""
        for clock in (self.cold, self.stated):
            if clock is not None:
                clock.free()


@dataclass(frozen=True)
class Drawn:
    """Readings in microseconds, one row a round that counts; `aside` are the others, `told` is for the card's state."""

    warm: Readings
    cold: Readings
    stated: Readings
    aside: tuple[SetAside, ...]
    told: dict[str, str]


def order_of(kind: str, random: Random) -> tuple[tuple[str, str], ...]:
    """The order of one round, as (place in the samples, subject).

    `random` is any order of A, A', B. `abba` is A B B A' or B A A' B, by a coin: a drift that is linear over the
    round falls out of the mean of log ratios.
    """
    if kind == "abba":
        if random.random() < 0.5:
            return ("a", "a"), ("b", "b"), ("b2", "b"), ("a2", "a2")
        return ("b", "b"), ("a", "a"), ("a2", "a2"), ("b2", "b")
    places = [("a", "a"), ("a2", "a2"), ("b", "b")]
    random.shuffle(places)
    return tuple(places)


def interleaved(
    context: Context, subjects: Mapping[str, Subject], shared: SharedBuffers, schedule: Schedule, clocks: Clocks
) -> Drawn:
    """Draw the rounds; a round falls out for a slowdown or for another process on the card, at most a tenth of them."""
    random = Random(schedule.seed)
    kept: list[_Round] = []
    aside: list[SetAside] = []
    reasons, company = 0, context.nvml.processes()
    try:
        while len(kept) < schedule.rounds:
            one = _round(subjects, clocks, (schedule.order, len(kept)), random)
            seen = context.nvml.reasons()
            reasons |= seen
            joined = context.nvml.processes() - company
            if seen & state.SLOWDOWNS or joined:
                why = _disturbed(seen, joined)
                aside.append(SetAside(why=why, warm_us=one[0], cold_us=one[1]))
                _require_few(len(aside), schedule.rounds, why)
                continue
            kept.append(one)
    finally:
        clocks.free()
    told = {
        "input_sets": str(shared.sets),
        "order": schedule.order,
        "cold_sweep_bytes": str(context.sweep.nbytes),
        "clocks_event_reasons_seen": context.nvml.absent or state.reason_names(reasons),
        "rounds_discarded": str(len(aside)),
        "held_queue_gave_way": str(context.queue.gave_way),
    }
    if isinstance(clocks.cold, ColdClock):
        told |= clocks.cold.told
    warm, cold, stated = (_columns([one[place] for one in kept]) for place in range(3))
    return Drawn(warm, cold, stated, tuple(aside), told)


_Round = tuple[dict[str, float], dict[str, float], dict[str, float]]


def _round(subjects: Mapping[str, Subject], clocks: Clocks, at: tuple[str, int], random: Random) -> _Round:
    """One round: every subject warm, then cold, then as stated, each time in an order of its own."""
    order, number = at
    places = _places(subjects, order, random)
    warm = {place: clocks.warm.read(key) for place, key in places} if clocks.warm else {}
    places = _places(subjects, order, random)
    cold = {place: clocks.cold.read(key, number) for place, key in places}
    if clocks.stated is None:
        return warm, cold, {}
    places = _places(subjects, order, random)
    return warm, cold, {place: clocks.stated.read(key, number) for place, key in places}


def _places(subjects: Mapping[str, Subject], order: str, random: Random) -> list[tuple[str, str]]:
    """The order of one round; others than A, A' and B stand anywhere in it, or in the middle of an ABBA round.

    In the middle a steady drift falls out of their ratios too.
    """
    places = list(order_of(order, random))
    for key in subjects:
        if key not in ("a", "a2", "b"):
            at = len(places) // 2 if order == "abba" else random.randint(0, len(places))
            places.insert(at, (key, key))
    return places


def _disturbed(reasons: int, joined: frozenset[str]) -> str:
    """What a round fell out for, and what to do."""
    if joined:
        return f"another process ({', '.join(sorted(joined))}) came onto the card: end it"
    slow = state.reason_names(reasons & state.SLOWDOWNS)
    return f"the card slowed down ({slow}): let it cool, or see what else runs on it"


def _require_few(discarded: int, rounds: int, why: str) -> None:
    if discarded > max(1, rounds // 10):
        raise DeviceProblem(f"cuda: more than a tenth of {rounds} rounds fell out, as {why}, then measure again")


def _columns(rows: Sequence[Mapping[str, float]]) -> Readings:
    return {key: tuple(row[key] for row in rows) for key in (rows[0] if rows else {})}
