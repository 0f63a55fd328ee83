"""Counters of the baseline and of each iteration's best candidate, on request; drawn once and found again."""

from kerneltrial.devices.cuda import profiler
from kerneltrial.devices.cuda.profiled import ProfileRequest
from kerneltrial.devices.messages import pack
from kerneltrial.inputs.resolve import resolve
from kerneltrial.measure.counters import METRICS, merged, sentence
from kerneltrial.records.case import Case
from kerneltrial.records.profile import NOT_ASKED, NoProfile, Profiled
from kerneltrial.records.record import Record
from kerneltrial.stages.ground import Ground, binary_of
from kerneltrial.stages.measuring import Kernel, identity, input_sets, performance_cases


class Kept(Record):
    """What is stored of one look."""

    profile: Profiled | NoProfile


def profile_of(g: Ground, kernel: Kernel) -> Profiled | NoProfile:
    """Counters of one warm call of the largest performance case, or why there are none."""
    if g.lock.protocol.profile == "none":
        return NOT_ASKED
    if g.lock.device.kind != "cuda":
        return NoProfile(why="the cpu device has no profiler; it counts by itself")
    case = max(performance_cases(g), key=lambda one: (sum(one.dimensions.values()), one.name))
    key = {"profile": identity(kernel), "metrics": METRICS, "case": case, "device": g.lock.device}
    return g.job.measurements.once(key, lambda: Kept(profile=_drawn(g, kernel, case)), Kept).value.profile


def _drawn(g: Ground, kernel: Kernel, case: Case) -> Profiled | NoProfile:
    call = resolve(kernel.plan, g.lock.contract, case.dimensions, kernel.built.abi)
    request = ProfileRequest(
        arch=g.lock.device.arch,
        binary=binary_of(kernel.built, g.job.objects),
        call=call,
        values=pack(call, input_sets(g, case)[0]),
    )
    try:
        found = merged(profiler.counters(request, METRICS))
    except (profiler.Absent, ValueError) as absent:
        return NoProfile(why=str(absent))
    return Profiled(case=case.name, counters=found, sentence=sentence(found))
