"""The confirmation's figures: fresh processes for the winner, ABBA rounds, Student's t over process medians.

No interval of a speedup is narrower than A against A' says it can be.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, fsum
from statistics import median

import msgspec

from kerneltrial.devices.device import Samples, TimingRequest
from kerneltrial.measure import statistics
from kerneltrial.measure.roofline import share
from kerneltrial.measure.sequential import looks, narrow, plan_of
from kerneltrial.records.confirmation import (
    ConfirmedCase,
    Energy,
    Looked,
    NoEnergy,
    NoThroughput,
    Throughput,
    VendorSpeed,
)
from kerneltrial.records.protocol import Protocol
from kerneltrial.records.reason import Finding, Reason
from kerneltrial.records.record import Digest, Interval
from kerneltrial.records.residency import AsStated
from kerneltrial.records.roofline import NOT_ASKED, Floor, NoFloor

VENDORS = ("cublas",)
_VENDORS_WIDER = 4  # the rule on vendors asks which is faster, and for no percentage; they are timed once a round


@dataclass(frozen=True)
class Level:
    """`asked` is the protocol's confidence, `nominal` that of the t intervals which keep it over all looks."""

    asked: float
    nominal: float

    def interval(self, logs: Sequence[float], noise: Sequence[float] = ()) -> Interval:
        """The mean ratio and its interval, from one log ratio a process.

        With `noise`, the median log of A over A' of each process, the interval is no narrower than this allows: a few
        processes that happen to lie close together must not seem to know more than A does of itself.
        """
        least = statistics.place_deviation(noise) if noise else 0.0
        found = statistics.from_logs(statistics.t_interval(logs, self.nominal, least))
        return msgspec.structs.replace(found, confidence=self.asked)


def process_request(request: TimingRequest, process: int) -> TimingRequest:
    """The request of one of the confirmation's processes: ABBA order, and a seed of its own."""
    text = f"confirmation {request.seed} {process}".encode()
    seed = int.from_bytes(hashlib.sha256(text).digest()[:6])
    return msgspec.structs.replace(request, order="abba", seed=seed)


@dataclass(frozen=True)
class Figures:
    """All that a confirmation says in numbers: it follows from the samples, the protocol and the roofline alone."""

    cases: tuple[ConfirmedCase, ...]
    geometric_mean: Interval
    looked: Looked
    vendors: tuple[VendorSpeed, ...]
    vendors_absent: tuple[Finding, ...]


def figures(
    drawn: Mapping[str, Sequence[Samples]],
    stored: Mapping[str, Sequence[Digest]],
    protocol: Protocol,
    floors: Mapping[str, Floor | NoFloor],
) -> Figures:
    """What the processes of all cases say; `drawn` and `stored` hold samples and their digests by case."""
    plan = plan_of(protocol)
    level = Level(float(protocol.confidence), plan.nominal_confidence)
    by_case = list(drawn.values())
    mean = geometric_interval(by_case, level)
    cases = tuple(
        confirmed_case(case, samples, stored[case], level, floors.get(case, NOT_ASKED))
        for case, samples in drawn.items()
    )
    vendors = vendor_speeds(by_case, level)
    looked = Looked(
        at=plan.at,
        processes=min(len(samples) for samples in by_case),
        nominal_confidence=plan.nominal_confidence,
        narrow=narrow((mean, *(case.speedup for case in cases)), plan.precision)
        and narrow([vendor.speedup for vendor in vendors], plan.precision * _VENDORS_WIDER),
    )
    return Figures(cases, mean, looked, vendors, vendors_absent(by_case))


def enough(drawn: Mapping[str, Sequence[Samples]], protocol: Protocol) -> bool:
    """Whether the plan stops here: every case has as many processes as a look, and all is narrow or it is the last."""
    count = min(len(samples) for samples in drawn.values())
    at = looks(protocol.confirmation_processes, protocol.confirmation_looks)
    if count not in at:
        return False
    if count == at[-1]:
        return True
    return figures(drawn, dict.fromkeys(drawn, ()), protocol, {}).looked.narrow


def confirmed_case(
    case: str,
    processes: Sequence[Samples],
    stored: Sequence[Digest],
    level: Level,
    floor: Floor | NoFloor = NOT_ASKED,
) -> ConfirmedCase:
    """What several processes say of one case.

    Parameters
    ----------
    processes : sequence of Samples
        One a process, all by the same clock.
    stored : sequence of Digest
        The digests of the measurements that hold them.
    level : Level
        Of the intervals.
    floor : Floor or NoFloor
        The roofline's, of this case.
    """
    clocks = {samples.clock for samples in processes}
    if len(clocks) != 1:
        raise ValueError(f"{case}: samples of different clocks cannot be put together: {sorted(clocks)}")
    medians, noise = statistics.process_medians(processes), statistics.noise_medians(processes)
    warm_us = median(statistics.latency_us(samples, ("b", "b2")) for samples in processes)
    baseline_us = median(statistics.latency_us(samples, ("a", "a2")) for samples in processes)
    return ConfirmedCase(
        case=case,
        clock=clocks.pop(),
        resolution_us=max(samples.resolution_us for samples in processes),
        warm_up=processes[0].device_state.get("warm_up", "none"),
        samples=tuple(stored),
        processes=len(processes),
        warm_us=warm_us,
        baseline_warm_us=baseline_us,
        cold_us=median(statistics.latency_us(samples, ("b", "b2"), cold=True) for samples in processes),
        baseline_cold_us=median(statistics.latency_us(samples, ("a", "a2"), cold=True) for samples in processes),
        speedup=level.interval(medians, noise),
        process_ratios=tuple(exp(value) for value in medians),
        noise_floor=level.interval(noise),
        drift=level.interval(statistics.drift_logs(processes)),
        limit=share(floor, warm_us, baseline_us),
        throughput=_throughput_of(processes),
        energy=energy_of(processes, level),
        stated=stated_of(processes, level),
    )


def stated_of(processes: Sequence[Samples], level: Level) -> AsStated | msgspec.UnsetType:
    """Calls that find the L2 as the case states, with Student's t interval over processes; unset where it is silent."""
    rows = [statistics.stated_us(one) for one in processes]
    if not all(rows):
        return msgspec.UNSET
    medians = [median(statistics.stated_log_ratios(one)) for one in processes]
    return AsStated(
        us=median(statistics.median_us(one, ("b", "b2")) for one in rows),
        baseline_us=median(statistics.median_us(one, ("a", "a2")) for one in rows),
        speedup=level.interval(medians),
        process_ratios=tuple(exp(value) for value in medians),
    )


def _throughput_of(processes: Sequence[Samples]) -> Throughput | NoThroughput:
    """Medians over processes; none unless every process measured it."""
    if not all(one.throughput_us for one in processes):
        return NoThroughput(why="a call takes 10 us or more")
    baseline, candidate = (median(one.throughput_us[key] for one in processes) for key in "ab")
    return Throughput(candidate_us=candidate, baseline_us=baseline)


def energy_of(processes: Sequence[Samples], level: Level) -> Energy | NoEnergy:
    """Energy of a call, with Student's t interval over processes; none unless every process measured it."""
    absent = next((one.energy_absent for one in processes if not one.energy_mj), "")
    if absent:
        return NoEnergy(why=absent)
    baseline, candidate = ([statistics.mean_log(one.energy_mj[key]) for one in processes] for key in "ab")
    ratios = [a - b for a, b in zip(baseline, candidate, strict=True)]
    return Energy(
        candidate_mj=exp(median(candidate)),
        baseline_mj=exp(median(baseline)),
        ratio=level.interval(ratios),
    )


def geometric_interval(cases: Sequence[Sequence[Samples]], level: Level) -> Interval:
    """The geometric mean of the speedups over cases, with Student's t interval over processes.

    Parameters
    ----------
    cases : sequence of sequences of Samples
        For each case one entry a process, in the same order of processes: what disturbs a process disturbs all cases
        in it, so the mean over cases is taken within each process first.
    """
    ratios = [statistics.process_medians(processes) for processes in cases]
    return level.interval(_over_cases(ratios), _over_cases([statistics.noise_medians(one) for one in cases]))


def _over_cases(medians: Sequence[Sequence[float]]) -> list[float]:
    """The mean over cases within each process."""
    return [fsum(one) / len(one) for one in zip(*medians, strict=True)]


def vendor_speeds(cases: Sequence[Sequence[Samples]], level: Level) -> tuple[VendorSpeed, ...]:
    """How the candidate compares with each vendor that was timed in every process of every case.

    Parameters
    ----------
    cases : sequence of sequences of Samples
        As for `geometric_interval`.
    """
    flat = [samples for processes in cases for samples in processes]
    timed = [name for name in VENDORS if flat and all(name in samples.warm_us for samples in flat)]
    return tuple(VendorSpeed(name=name, speedup=_vendor_interval(cases, name, level)) for name in timed)


def _vendor_interval(cases: Sequence[Sequence[Samples]], vendor: str, level: Level) -> Interval:
    medians = [[median(statistics.vendor_log_ratios(one, vendor)) for one in processes] for processes in cases]
    return level.interval(_over_cases(medians), _over_cases([statistics.noise_medians(one) for one in cases]))


def vendors_absent(cases: Sequence[Sequence[Samples]]) -> tuple[Finding, ...]:
    """Why vendors could not be timed, each reason once; nothing where the contract names no product."""
    reasons = {f"{name}: {why}" for processes in cases for one in processes for name, why in one.vendors_absent.items()}
    return tuple(Finding(reason=Reason.NOT_MEASURED, detail=reason) for reason in sorted(reasons))
