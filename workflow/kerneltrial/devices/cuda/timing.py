"""Timing a candidate beside the baseline, warm, cold, and as a case states what is warm (DESIGN.md section 7)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

import msgspec

from kerneltrial.devices.cuda import activity, residency, state, vendors
from kerneltrial.devices.cuda.clocks import (
    SHORT_US,
    EventClock,
    GraphClock,
    Meter,
    batch_size,
    call_each_set,
    idle_pairs,
    rough_us,
    throughput_us,
)
from kerneltrial.devices.cuda.cold_clock import ColdClock
from kerneltrial.devices.cuda.context import Context
from kerneltrial.devices.cuda.cupti_clock import CuptiClock, CuptiColdClock, choose
from kerneltrial.devices.cuda.driver import CudaError
from kerneltrial.devices.cuda.energy import energy_mj
from kerneltrial.devices.cuda.interleaved import Clocks, Drawn, Schedule, interleaved
from kerneltrial.devices.cuda.launches import Module, TurnedDown, require_room
from kerneltrial.devices.cuda.queue import EVENT_RESOLUTION_US
from kerneltrial.devices.cuda.subjects import PlanSubject, SharedBuffers, Subject
from kerneltrial.devices.cuda.vendors import CublasProduct
from kerneltrial.devices.device import DeviceProblem, Refused, Samples, TimingRequest, Values
from kerneltrial.records.reason import Finding, Reason


def time(context: Context, modules: Mapping[str, Module], request: TimingRequest, values: Sequence[Values]) -> Samples:
    """See `devices.device.Opened.time`; `modules` are those of `a`, `a2` and `b`."""
    if not values:
        raise ValueError("timing needs at least one input set")
    try:
        return _time(context, modules, request, values)
    except TurnedDown as error:
        raise Refused(error.finding) from error
    except activity.Absent as absent:
        detail = f"the cupti clock cannot be had: {absent}; ask for clock=graph"
        raise Refused(Finding(reason=Reason.NOT_MEASURED, detail=detail)) from absent
    except CudaError as error:
        if not error.is_fault:
            raise error.problem() from error
        if context.nvml.lost():
            raise error.lost() from error
        context.spent = error.finding("baseline and candidate in turn, for timing,")
        raise Refused(context.spent) from error


def _time(context: Context, modules: Mapping[str, Module], request: TimingRequest, values: Sequence[Values]) -> Samples:
    require_room(request.candidate_call, context.memory_bytes)
    calls = {"a": request.baseline_call, "a2": request.baseline_call, "b": request.candidate_call}
    shared = SharedBuffers(tuple(calls.values()), values, context.queue.stream)
    subjects: dict[str, PlanSubject | CublasProduct] = {}
    try:
        for key, call in calls.items():
            plan = subjects[key] = PlanSubject(modules[key], call, shared, context.queue)
            _rehearse(context, key, plan, shared)
        absent = _add_vendors(context, request, subjects, shared)
        before = state.now(context.nvml)
        schedule = Schedule(rounds=request.rounds, order=request.order, seed=request.seed, warm=request.warm)
        samples = rounds(context, subjects, shared, schedule, request.clock)
        outputs = shared.outputs()
        if request.energy:
            used, why = energy_mj(context, subjects, shared)
            samples = msgspec.structs.replace(samples, energy_mj=used, energy_absent=why)
        _require_honest(shared, subjects)
        shown = _prefixed("before", before) | _prefixed("after", state.now(context.nvml)) | samples.device_state
        for subject in subjects.values():
            shown |= subject.told if isinstance(subject, CublasProduct) else {}
        return msgspec.structs.replace(samples, outputs=outputs, device_state=shown, vendors_absent=absent)
    finally:
        for subject in subjects.values():
            subject.free()
        shared.free()


def _rehearse(context: Context, key: str, subject: PlanSubject, shared: SharedBuffers) -> None:
    """Run a subject once, so that a fault is charged to whoever caused it, and code is on the card."""
    try:
        subject.grow(shared.cycle)
        call_each_set(context.queue, subject, shared)
    except (CudaError, TurnedDown) as error:
        if key == "b":
            raise
        if isinstance(error, CudaError) and context.nvml.lost():
            raise error.lost() from error
        raise DeviceProblem(f"cuda: the baseline does not run on this card: {error}") from error


def _add_vendors(
    context: Context,
    request: TimingRequest,
    subjects: dict[str, PlanSubject | CublasProduct],
    shared: SharedBuffers,
) -> dict[str, str]:
    """Add the vendors' subjects that can be had and compute what the baseline does; return why others are absent."""
    absent: dict[str, str] = {}
    for product in request.vendors:
        call_each_set(context.queue, subjects["a"], shared)
        wanted = shared.outputs()[0][product.out]
        try:
            vendor = CublasProduct(product, shared, context)
            call_each_set(context.queue, vendor, shared)
        except vendors.Absent as reason:
            absent["cublas"] = str(reason)
            continue
        except CudaError as error:  # no fault of the candidate, which ran before
            raise DeviceProblem(f"cuda: cuBLAS does not run on this card: {error}") from error
        apart = vendors.difference(product, request.baseline_call.buffers, shared.outputs()[0][product.out], wanted)
        if apart <= vendor.allowed_difference:
            subjects["cublas"] = vendor
        else:
            vendor.free()
            absent["cublas"] = f"its result lies {apart:.1e} of the norm from the baseline's: another computation"
    return absent


def _require_honest(shared: SharedBuffers, subjects: Mapping[str, PlanSubject | CublasProduct]) -> None:
    """The baseline is trusted: what is amiss after timing is the candidate's doing."""
    name = shared.changed()
    if name:
        detail = f"input {name} changed while the candidate was timed"
        raise Refused(Finding(reason=Reason.INPUT_CHANGED, detail=detail))
    if not (shared.margins_intact() and all(subject.margins_intact() for subject in subjects.values())):
        detail = "a margin beside a buffer changed while the candidate was timed"
        raise Refused(Finding(reason=Reason.GUARD_OVERWRITTEN, detail=detail))
    for subject in subjects.values():
        kept = subject.unrestored() if isinstance(subject, PlanSubject) else ""
        if kept:
            detail = f"scratch {kept}, which the plan calls self_restoring, is not zero after timed launches"
            raise Refused(Finding(reason=Reason.NOT_DETERMINISTIC, detail=detail))


def _prefixed(prefix: str, readings: Mapping[str, str]) -> dict[str, str]:
    return {f"{prefix}_{name}": value for name, value in readings.items()}


def rounds(
    context: Context, subjects: Mapping[str, Subject], shared: SharedBuffers, schedule: Schedule, clock: str
) -> Samples:
    """Draw the samples of any subjects `a`, `a2` and `b`, and of others beside them."""
    if clock == "events-10-100":
        warm = {key: idle_pairs(context.queue, subject, shared) for key, subject in subjects.items()}
        clocks = _clocks(context, subjects, shared, (None, ColdClock, schedule.warm))
        drawn = interleaved(context, subjects, shared, schedule, clocks)
        call_each_set(context.queue, subjects["b"], shared)
        drawn.told["evidence"] = "never: event pairs on an idle queue mostly time the launch"
        return _samples(clock, (EVENT_RESOLUTION_US, 1), replace(drawn, warm=warm))
    why = "asked for"
    if clock == "auto":
        clock, why = choose(context, subjects, shared)
    meter = _meter(context, subjects, shared, clock)
    try:
        cold = CuptiColdClock if clock == "cupti" else ColdClock
        clocks = _clocks(context, subjects, shared, (meter, cold, schedule.warm))
        drawn = interleaved(context, subjects, shared, schedule, clocks)
        meter.leave_outputs("b")
    finally:
        meter.free()
    spans = {key: median(drawn.warm[key]) for key in ("a", "b")}
    throughput: dict[str, float] = {}
    if min(spans.values()) < SHORT_US:  # the graph's own readings are that
        throughput = spans if clock == "graph" else throughput_us(context.queue, subjects, shared)
    drawn.told["clock_choice"] = why
    drawn.told["warm_up"] = f"{meter.calls} calls before each warm reading, the L2 emptied before each cold one"
    drawn.told.update(residency.told(context.sweep, shared, schedule.warm))
    if isinstance(meter, EventClock):
        drawn.told["warm_empty_pair_us"] = repr(meter.empty_us)
    samples = _samples(clock, (meter.resolution_us, meter.calls), drawn)
    return msgspec.structs.replace(samples, throughput_us=throughput)


def _meter(context: Context, subjects: Mapping[str, Subject], shared: SharedBuffers, clock: str) -> Meter:
    if clock == "cupti":
        longest = max(subject.nodes for subject in subjects.values())
        rough = [rough_us(context.queue, subjects[key], shared) for key in ("a", "b")]
        return CuptiClock(context, subjects, shared, batch_size(rough[0], rough[1], shared, longest))
    return (GraphClock if clock == "graph" else EventClock)(context.queue, subjects, shared)


def _clocks(
    context: Context,
    subjects: Mapping[str, Subject],
    shared: SharedBuffers,
    how: tuple[Meter | None, type[ColdClock] | type[CuptiColdClock], tuple[str, ...]],
) -> Clocks:
    """The warm clock with cold ones of a kind, the second for the buffers that are stated as warm."""
    meter, cold, warm = how
    stated = cold(context, subjects, shared, warm) if warm else None
    return Clocks(meter, cold(context, subjects, shared), stated)


def _samples(clock: str, unit: tuple[float, int], drawn: Drawn) -> Samples:
    return Samples(
        clock=clock,
        resolution_us=unit[0],
        calls_per_sample=unit[1],
        warm_us=drawn.warm,
        cold_us=drawn.cold,
        stated_us=drawn.stated or msgspec.UNSET,
        outputs=(),
        device_state=drawn.told,
        discarded=len(drawn.aside),
        set_aside=drawn.aside or msgspec.UNSET,
    )
