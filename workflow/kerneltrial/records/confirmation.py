"""The confirmation: winner and baseline again, in fresh processes, on fresh values."""

from typing import Literal

import msgspec

from kerneltrial.records.reason import Finding
from kerneltrial.records.record import Count, Digest, Interval, Record
from kerneltrial.records.residency import AsStated
from kerneltrial.records.roofline import NOT_ASKED, NoFloor, Share


class Energy(Record, tag_field="state", tag="measured"):
    """Millijoules of one call, medians over processes, the whole card's; `ratio` is baseline over candidate.

    Above 1 the candidate uses less.
    """

    candidate_mj: float
    baseline_mj: float
    ratio: Interval


class NoEnergy(Record, tag_field="state", tag="none"):
    """No energy is known, and why."""

    why: str


class Throughput(Record, tag_field="state", tag="measured"):
    """Microseconds of one call among many in a graph, gaps included, medians over processes."""

    candidate_us: float
    baseline_us: float


class NoThroughput(Record, tag_field="state", tag="none"):
    """It was not measured, and why."""

    why: str


class ConfirmedCase(Record):
    """Speedup over process medians, warm, with Student's t interval; latencies are medians in microseconds.

    A cold call finds an emptied L2; its figures stand beside the warm ones and decide nothing.
    `process_ratios` is the median speedup of each process, which the interval follows from, no narrower than the noise
    of A against A' allows; `noise_floor` is their ratio, with its interval. `drift` is the speedup in
    the last third of a process's rounds over that in its first third, with the interval over processes: 1 is steady.
    `resolution_us` is that of one warm reading, the coarsest of the processes, `warm_up` what went before a reading.
    `limit` says how near the latencies come to the roofline's floor, `throughput` what a call takes among many,
    `stated` what one takes that finds the L2 as the case states; a loss there counts as one of the case.
    """

    case: str
    clock: str
    resolution_us: float
    warm_up: str
    samples: tuple[Digest, ...]
    processes: Count
    warm_us: float
    baseline_warm_us: float
    cold_us: float
    baseline_cold_us: float
    speedup: Interval
    process_ratios: tuple[float, ...]
    noise_floor: Interval
    drift: Interval
    limit: Share | NoFloor = NOT_ASKED
    throughput: Throughput | NoThroughput = NoThroughput(why="a call takes 10 us or more")
    energy: Energy | NoEnergy = NoEnergy(why="not asked for")
    stated: AsStated | msgspec.UnsetType = msgspec.UNSET


class VendorSpeed(Record):
    """A vendor library's own kernel beside the winner: `speedup` is vendor latency over the winner's, geometric mean.

    Above 1 the winner is faster. `name` is what the policy can waive.
    """

    name: str
    speedup: Interval


class Looked(Record):
    """How the protocol's sequential plan went.

    `at` are the numbers of processes at which it may stop, `processes` where it did. `nominal_confidence` is that of
    the t intervals: a little above the protocol's, so that all looks together hold with the protocol's, which the
    intervals name. `narrow` says whether it stopped since every speedup was known to the protocol's precision, or
    since the plan has no more processes.
    """

    at: tuple[Count, ...]
    processes: Count
    nominal_confidence: float
    narrow: bool


class Seen(Record, tag_field="kind", tag="seen"):
    """What the provided loader saw in the application: kernel calls an invocation, and device memory at its peak."""

    calls_per_invocation: float
    baseline_peak_bytes: Count
    candidate_peak_bytes: Count


class NotSeen(Record, tag_field="kind", tag="not_seen"):
    """The application loads kernels by itself, so that calls and memory are not known."""


class EndToEnd(Record, tag_field="state", tag="measured"):
    """The application with both kernels, interleaved: milliseconds saved per invocation, below 0 is a loss.

    `saved_ms` has Student's t interval over pairs of runs; the other milliseconds are medians of one invocation.
    """

    saved_ms: Interval
    processes: Count
    baseline_ms: float
    candidate_ms: float
    measure: Literal["wall", "printed"]
    seen: Seen | NotSeen
    samples: Digest


class EndToEndFailed(Record, tag_field="state", tag="failed"):
    """The application ran with the baseline and not with the winner, and why."""

    why: str


class NoEndToEnd(Record, tag_field="state", tag="none"):
    """The application was not run, and why."""

    why: str = "the application was not run"


class Confirmed(Record, tag_field="state", tag="confirmed"):
    """The winner was measured again; `valid` says whether it was right again, `findings` why not.

    `review` holds what does not make it wrong and asks for a person: latencies under the roofline's floor, by the name
    of the case.
    """

    winner: Digest
    cases: tuple[ConfirmedCase, ...]
    geometric_mean: Interval
    looked: Looked
    valid: bool
    findings: tuple[Finding, ...]
    review: dict[str, Finding] = msgspec.field(default_factory=dict)


class NotTimed(Record, tag_field="state", tag="not_timed"):
    """The winner was judged again but this device has no clock that is evidence. `ratio` is of counts."""

    winner: Digest
    ratio: float
    valid: bool
    findings: tuple[Finding, ...]


class NoWinner(Record, tag_field="state", tag="no_winner"):
    """No candidate passed everything, and why."""

    why: str


class Confirmation(Record):
    """What the decision rests on. `vendors_absent` says why a vendor's kernel was not timed.

    `checks` are those that look at the winner alone: compute-sanitizer's, and the case of more than 2**31 elements;
    `unchecked` is what they leave open.
    """

    outcome: Confirmed | NotTimed | NoWinner
    vendors: tuple[VendorSpeed, ...] = ()
    vendors_absent: tuple[Finding, ...] = ()
    end_to_end: EndToEnd | EndToEndFailed | NoEndToEnd = NoEndToEnd()
    checks: tuple[str, ...] = ()
    unchecked: tuple[Finding, ...] = ()
