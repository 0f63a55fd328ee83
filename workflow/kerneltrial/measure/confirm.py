"""The confirmation's figures: fresh processes for the winner, ABBA rounds, Student's t over process medians."""

import hashlib
from collections.abc import Sequence
from math import exp, fsum
from statistics import median

import msgspec

from kerneltrial.devices.device import Samples, TimingRequest
from kerneltrial.measure import statistics
from kerneltrial.measure.roofline import share
from kerneltrial.records.confirmation import ConfirmedCase, Energy, NoEnergy, VendorSpeed
from kerneltrial.records.reason import Finding, Reason
from kerneltrial.records.record import Digest, Interval
from kerneltrial.records.roofline import NOT_ASKED, Floor, NoFloor

VENDORS = ("cublas",)


def process_request(request: TimingRequest, process: int) -> TimingRequest:
    """The request of one of the confirmation's processes: ABBA order, and a seed of its own."""
    text = f"confirmation {request.seed} {process}".encode()
    seed = int.from_bytes(hashlib.sha256(text).digest()[:6])
    return msgspec.structs.replace(request, order="abba", seed=seed)


def confirmed_case(
    case: str,
    processes: Sequence[Samples],
    stored: Sequence[Digest],
    confidence: float,
    floor: Floor | NoFloor = NOT_ASKED,
) -> ConfirmedCase:
    """What several processes say of one case.

    Parameters
    ----------
    processes : sequence of Samples
        One a process, all by the same clock.
    stored : sequence of Digest
        The digests of the measurements that hold them.
    confidence : float
        Of the interval, such as 0.95.
    floor : Floor or NoFloor
        The roofline's, of this case.
    """
    clocks = {samples.clock for samples in processes}
    if len(clocks) != 1:
        raise ValueError(f"{case}: samples of different clocks cannot be put together: {sorted(clocks)}")
    speedup = statistics.t_interval(statistics.process_medians(processes), confidence)
    noise = statistics.t_interval(statistics.noise_medians(processes), confidence)
    warm_us = median(statistics.latency_us(samples, ("b", "b2")) for samples in processes)
    baseline_us = median(statistics.latency_us(samples, ("a", "a2")) for samples in processes)
    return ConfirmedCase(
        case=case,
        clock=clocks.pop(),
        samples=tuple(stored),
        processes=len(processes),
        warm_us=warm_us,
        baseline_warm_us=baseline_us,
        speedup=statistics.from_logs(speedup),
        noise_floor=statistics.from_logs(noise),
        limit=share(floor, warm_us, baseline_us),
        energy=energy_of(processes, confidence),
    )


def energy_of(processes: Sequence[Samples], confidence: float) -> Energy | NoEnergy:
    """Energy of a call, with Student's t interval over processes; none unless every process measured it."""
    absent = next((one.energy_absent for one in processes if not one.energy_mj), "")
    if absent:
        return NoEnergy(why=absent)
    baseline, candidate = ([statistics.mean_log(one.energy_mj[key]) for one in processes] for key in "ab")
    ratios = [a - b for a, b in zip(baseline, candidate, strict=True)]
    return Energy(
        candidate_mj=exp(median(candidate)),
        baseline_mj=exp(median(baseline)),
        ratio=statistics.from_logs(statistics.t_interval(ratios, confidence)),
    )


def geometric_interval(cases: Sequence[Sequence[Samples]], confidence: float) -> Interval:
    """The geometric mean of the speedups over cases, with Student's t interval over processes.

    Parameters
    ----------
    cases : sequence of sequences of Samples
        For each case one entry a process, in the same order of processes: what disturbs a process disturbs all cases
        in it, so the mean over cases is taken within each process first.
    """
    medians = [statistics.process_medians(processes) for processes in cases]
    by_process = [fsum(one) / len(one) for one in zip(*medians, strict=True)]
    return statistics.from_logs(statistics.t_interval(by_process, confidence))


def vendor_speeds(cases: Sequence[Sequence[Samples]], confidence: float) -> tuple[VendorSpeed, ...]:
    """How the candidate compares with each vendor that was timed in every process of every case.

    Parameters
    ----------
    cases : sequence of sequences of Samples
        As for `geometric_interval`.
    """
    flat = [samples for processes in cases for samples in processes]
    timed = [name for name in VENDORS if flat and all(name in samples.warm_us for samples in flat)]
    return tuple(VendorSpeed(name=name, speedup=_vendor_interval(cases, name, confidence)) for name in timed)


def _vendor_interval(cases: Sequence[Sequence[Samples]], vendor: str, confidence: float) -> Interval:
    medians = [[median(statistics.vendor_log_ratios(one, vendor)) for one in processes] for processes in cases]
    by_process = [fsum(one) / len(one) for one in zip(*medians, strict=True)]
    return statistics.from_logs(statistics.t_interval(by_process, confidence))


def vendors_absent(cases: Sequence[Sequence[Samples]]) -> tuple[Finding, ...]:
    """Why vendors could not be timed, each reason once; nothing where the contract names no product."""
    reasons = {f"{name}: {why}" for processes in cases for one in processes for name, why in one.vendors_absent.items()}
    return tuple(Finding(reason=Reason.NOT_MEASURED, detail=reason) for reason in sorted(reasons))
