"""The confirmation's figures: fresh processes for the winner, ABBA rounds, Student's t over process medians."""

import hashlib
from collections.abc import Sequence
from math import fsum
from statistics import median

import msgspec

from kerneltrial.devices.device import Samples, TimingRequest
from kerneltrial.measure import statistics
from kerneltrial.records.confirmation import ConfirmedCase
from kerneltrial.records.record import Digest, Interval


def process_request(request: TimingRequest, process: int) -> TimingRequest:
    """The request of one of the confirmation's processes: ABBA order, and a seed of its own."""
    text = f"confirmation {request.seed} {process}".encode()
    seed = int.from_bytes(hashlib.sha256(text).digest()[:6])
    return msgspec.structs.replace(request, order="abba", seed=seed)


def confirmed_case(
    case: str, processes: Sequence[Samples], stored: Sequence[Digest], confidence: float
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
    """
    clocks = {samples.clock for samples in processes}
    if len(clocks) != 1:
        raise ValueError(f"{case}: samples of different clocks cannot be put together: {sorted(clocks)}")
    speedup = statistics.t_interval(statistics.process_medians(processes), confidence)
    noise = statistics.t_interval(statistics.noise_medians(processes), confidence)
    return ConfirmedCase(
        case=case,
        clock=clocks.pop(),
        samples=tuple(stored),
        processes=len(processes),
        warm_us=median(statistics.latency_us(samples, ("b", "b2")) for samples in processes),
        baseline_warm_us=median(statistics.latency_us(samples, ("a", "a2")) for samples in processes),
        speedup=statistics.from_logs(speedup),
        noise_floor=statistics.from_logs(noise),
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
