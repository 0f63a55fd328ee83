"""Timing a candidate beside the baseline: rounds in random or ABBA order, warm and cold (DESIGN.md section 7)."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Literal

import msgspec

from kerneltrial.devices.cuda import state
from kerneltrial.devices.cuda.clocks import ColdClock, EventClock, GraphClock, call_each_set, idle_pairs
from kerneltrial.devices.cuda.context import Context
from kerneltrial.devices.cuda.driver import CudaError
from kerneltrial.devices.cuda.launches import Module, TurnedDown
from kerneltrial.devices.cuda.queue import EVENT_RESOLUTION_US
from kerneltrial.devices.cuda.subjects import PlanSubject, SharedBuffers, Subject
from kerneltrial.devices.device import DeviceProblem, Refused, Samples, TimingRequest, Values
from kerneltrial.records.reason import Finding, Reason
from kerneltrial.records.record import Record

Readings = dict[str, tuple[float, ...]]


class Schedule(Record, frozen=True):
    """How many rounds, in which order, from which seed: what `TimingRequest` says of them."""

    rounds: int
    order: Literal["random", "abba"]
    seed: int


def time(context: Context, modules: Mapping[str, Module], request: TimingRequest, values: Sequence[Values]) -> Samples:
    """See `devices.device.Opened.time`; `modules` are those of `a`, `a2` and `b`."""
    clock = "graph" if request.clock == "auto" else request.clock
    if clock == "cupti":
        detail = "the cupti clock is not built yet: ask for clock=graph"
        raise Refused(Finding(reason=Reason.NOT_MEASURED, detail=detail))
    if not values:
        raise ValueError("timing needs at least one input set")
    try:
        return _time(context, modules, request, (clock, values))
    except TurnedDown as error:
        raise Refused(error.finding) from error
    except CudaError as error:
        if not error.is_fault:
            raise error.problem() from error
        context.spent = error.finding("baseline and candidate in turn, for timing,")
        raise Refused(context.spent) from error


def _time(
    context: Context, modules: Mapping[str, Module], request: TimingRequest, how: tuple[str, Sequence[Values]]
) -> Samples:
    clock, values = how
    calls = {"a": request.baseline_call, "a2": request.baseline_call, "b": request.candidate_call}
    shared = SharedBuffers(tuple(calls.values()), values, context.queue.stream)
    subjects: dict[str, PlanSubject] = {}
    try:
        for key, call in calls.items():
            subjects[key] = PlanSubject(modules[key], call, shared, context.queue)
            _rehearse(context, key, subjects[key], shared)
        before = state.now(context.nvml)
        schedule = Schedule(rounds=request.rounds, order=request.order, seed=request.seed)
        samples = rounds(context, subjects, shared, schedule, clock)
        _require_honest(shared, subjects)
        shown = _prefixed("before", before) | _prefixed("after", state.now(context.nvml)) | samples.device_state
        return msgspec.structs.replace(samples, outputs=shared.outputs(), device_state=shown)
    finally:
        for subject in subjects.values():
            subject.free()
        shared.free()


def _rehearse(context: Context, key: str, subject: PlanSubject, shared: SharedBuffers) -> None:
    """Run a subject once, so that a fault is charged to whoever caused it, and code is on the card."""
    try:
        subject.grow(shared.sets)
        call_each_set(context.queue, subject, shared)
    except (CudaError, TurnedDown) as error:
        if key == "b":
            raise
        raise DeviceProblem(f"cuda: the baseline does not run on this card: {error}") from error


def _require_honest(shared: SharedBuffers, subjects: Mapping[str, PlanSubject]) -> None:
    """The baseline is trusted: what is amiss after timing is the candidate's doing."""
    name = shared.changed()
    if name:
        detail = f"input {name} changed while the candidate was timed"
        raise Refused(Finding(reason=Reason.INPUT_CHANGED, detail=detail))
    if not (shared.margins_intact() and all(subject.margins_intact() for subject in subjects.values())):
        detail = "a margin beside a buffer changed while the candidate was timed"
        raise Refused(Finding(reason=Reason.GUARD_OVERWRITTEN, detail=detail))


def _prefixed(prefix: str, readings: Mapping[str, str]) -> dict[str, str]:
    return {f"{prefix}_{name}": value for name, value in readings.items()}


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


def rounds(
    context: Context, subjects: Mapping[str, Subject], shared: SharedBuffers, schedule: Schedule, clock: str
) -> Samples:
    """Draw the samples of any subjects `a`, `a2` and `b` (others may be among them, read in random order only)."""
    if clock == "events-10-100":
        warm = {key: idle_pairs(context.queue, subject, shared) for key, subject in subjects.items()}
        _, cold, told = _interleaved(context, subjects, shared, schedule, None)
        call_each_set(context.queue, subjects["b"], shared)
        told["evidence"] = "never: event pairs on an idle queue mostly time the launch"
        return _samples(clock, (EVENT_RESOLUTION_US, 1), (warm, cold), told)
    kind = GraphClock if clock == "graph" else EventClock
    meter = kind(context.queue, subjects, shared)
    try:
        warm, cold, told = _interleaved(context, subjects, shared, schedule, meter)
        meter.leave_outputs("b")
    finally:
        meter.free()
    if isinstance(meter, EventClock):
        told["warm_empty_pair_us"] = repr(meter.empty_us)
    return _samples(clock, (meter.resolution_us, meter.calls), (warm, cold), told)


def _samples(clock: str, unit: tuple[float, int], drawn: tuple[Readings, Readings], told: dict[str, str]) -> Samples:
    return Samples(
        clock=clock,
        resolution_us=unit[0],
        calls_per_sample=unit[1],
        warm_us=drawn[0],
        cold_us=drawn[1],
        outputs=(),
        device_state=told,
        discarded=int(told["rounds_discarded"]),
    )


def _interleaved(
    context: Context,
    subjects: Mapping[str, Subject],
    shared: SharedBuffers,
    schedule: Schedule,
    meter: GraphClock | EventClock | None,
) -> tuple[Readings, Readings, dict[str, str]]:
    random = Random(schedule.seed)
    cold_clock = ColdClock(context, subjects, shared)
    warm: list[dict[str, float]] = []
    cold: list[dict[str, float]] = []
    reasons, discarded = 0, 0
    try:
        while len(cold) < schedule.rounds:
            places = _places(subjects, schedule.order, random)
            hot = {place: meter.read(key) for place, key in places} if meter else {}
            places = _places(subjects, schedule.order, random)
            chilled = {place: cold_clock.read(key, len(cold)) for place, key in places}
            seen = context.nvml.reasons()
            reasons |= seen
            if seen & state.SLOWDOWNS:
                discarded += 1
                _require_few(discarded, schedule.rounds, seen)
                continue
            warm.append(hot)
            cold.append(chilled)
    finally:
        cold_clock.free()
    told = {
        "input_sets": str(shared.sets),
        "order": schedule.order,
        "cold_empty_pair_us": repr(cold_clock.empty_us),
        "cold_sweep_bytes": str(context.sweep.nbytes),
        "clocks_event_reasons_seen": context.nvml.absent or state.reason_names(reasons),
        "rounds_discarded": str(discarded),
        "held_queue_gave_way": str(context.queue.gave_way),
    }
    return _columns(warm), _columns(cold), told


def _places(subjects: Mapping[str, Subject], order: str, random: Random) -> list[tuple[str, str]]:
    places = list(order_of(order, random))
    others = [(key, key) for key in subjects if key not in ("a", "a2", "b")]
    for place in others:
        places.insert(random.randint(0, len(places)), place)
    return places


def _require_few(discarded: int, rounds: int, reasons: int) -> None:
    if discarded > max(1, rounds // 10):
        raise DeviceProblem(
            f"cuda: the card slowed down ({state.reason_names(reasons & state.SLOWDOWNS)}) in more than a tenth of "
            f"{rounds} rounds: let it cool, or see what else runs on it, then measure again"
        )


def _columns(rows: Sequence[Mapping[str, float]]) -> Readings:
    return {key: tuple(row[key] for row in rows) for key in (rows[0] if rows else {})}
