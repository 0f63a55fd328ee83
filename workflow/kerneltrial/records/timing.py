"""A timing: how long each valid candidate takes, or on `cpu` what it costs in counts."""

import msgspec

from kerneltrial.records.counts import Counts
from kerneltrial.records.profile import NOT_ASKED as NOT_PROFILED
from kerneltrial.records.profile import NoProfile, Profiled
from kerneltrial.records.reason import Reason
from kerneltrial.records.record import Digest, Interval, Record
from kerneltrial.records.residency import AsStated
from kerneltrial.records.roofline import NOT_ASKED, NoFloor, Share
from kerneltrial.records.validation import SkippedCandidate


class CaseLatency(Record):
    """Microseconds, medians over rounds; `speedup` is baseline over candidate, above 1 is faster.

    `resolution_us` is that of one warm reading. `samples` is the digest of the stored measurement that holds every raw
    sample. `limit` says how near the warm latencies come to the roofline's floor, `stated` what calls take that find
    the L2 as the case states.
    """

    case: str
    clock: str
    resolution_us: float
    samples: Digest
    warm_us: float
    cold_us: float
    baseline_warm_us: float
    baseline_cold_us: float
    speedup: Interval
    noise_floor: Interval
    device_state: dict[str, str]
    limit: Share | NoFloor = NOT_ASKED
    stated: AsStated | msgspec.UnsetType = msgspec.UNSET


class CaseCounts(Record):
    """Counts of candidate and baseline; `score` is a cost, lower is better; `ratio` is baseline over candidate."""

    case: str
    samples: Digest
    counts: Counts
    score: float
    baseline_score: float
    ratio: float


class Timed(Record, tag_field="state", tag="timed"):
    """Times from a GPU's clock. `geometric_mean` is that of the speedups over performance cases.

    `profile` holds counters of an iteration's best candidate, where the protocol asks for them.
    """

    candidate: Digest
    cases: tuple[CaseLatency, ...]
    geometric_mean: float
    profile: Profiled | NoProfile = NOT_PROFILED


class Counted(Record, tag_field="state", tag="counted"):
    """Counts from the `cpu` device: they rank, they are never evidence of time."""

    candidate: Digest
    cases: tuple[CaseCounts, ...]
    geometric_mean: float


class Untimed(Record, tag_field="state", tag="untimed"):
    """No figure could be had."""

    candidate: Digest
    reason: Reason
    detail: str


class Timing(Record):
    """One entry a candidate, in the order of the proposal."""

    candidates: tuple[Timed | Counted | Untimed | SkippedCandidate, ...]
