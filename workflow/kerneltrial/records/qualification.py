"""Qualification: can each case fail someone, and does the baseline pass?"""

from typing import Final

import msgspec

from kerneltrial.records.build import Built
from kerneltrial.records.compilers import Compilers
from kerneltrial.records.plan import LaunchPlan
from kerneltrial.records.profile import NOT_ASKED, NoProfile, Profiled
from kerneltrial.records.reason import Finding
from kerneltrial.records.record import Count, Digest, Record
from kerneltrial.records.roofline import Ceilings, Floor, NoCeilings, NoFloor
from kerneltrial.records.validation import CaseVerdict


class NullCandidate(Record):
    """A wrong answer that the case must refuse, and how many of its draws refused it."""

    name: str
    draws: Count
    refused: Count


class QualifiedCase(Record):
    """`baseline` is the baseline's own verdict and errors."""

    case: str
    nulls: tuple[NullCandidate, ...]
    baseline: CaseVerdict


class BaselineError(Record):
    """The baseline's own error in one output of one draw.

    `measure` is in ULPs of the scale that `judge.compare` describes, `bound_share` is the largest error over its bound.
    """

    output: str
    measure: float
    bound_share: float


COPY_OF_BASELINE: Final = "the reference kernel is the baseline's own code, which is no second opinion"


class SecondOpinion(Record):
    """The oracle against a plain reference kernel, or against nothing.

    A reference that is a copy of the baseline is nothing, with `COPY_OF_BASELINE` as detail.
    """

    by: str
    agrees: bool
    detail: str


class BaselineLatency(Record, tag_field="kind", tag="latency"):
    """The baseline's latency by performance case, in microseconds; `samples` are the measurements that hold it.

    `ceilings` are the card's, `floors` what follows from them for each case.
    """

    cases: dict[str, float]
    samples: dict[str, Digest]
    ceilings: Ceilings | NoCeilings = NoCeilings(why="no ceilings of this card were measured")
    floors: dict[str, Floor | NoFloor] = msgspec.field(default_factory=dict)


class BaselineCounts(Record, tag_field="kind", tag="counts"):
    """No clock on this device; the baseline's score by performance case, and the measurements that hold the counts."""

    cases: dict[str, float]
    samples: dict[str, Digest]


class Qualification(Record):
    """The trial may begin. A case that cannot fail anyone stops the trial and leaves no record.

    `compilers` stand beside the baseline where the contract names a torch expression and a GPU times it; `profile`
    holds the baseline's counters where the protocol asks for them.
    `baseline_errors` holds, for each given and boundary case, one entry a draw: what candidates are compared with.
    """

    baseline: Built
    baseline_plan: LaunchPlan
    cases: tuple[QualifiedCase, ...]
    baseline_errors: dict[str, tuple[tuple[BaselineError, ...], ...]]
    second_opinion: SecondOpinion
    performance: BaselineLatency | BaselineCounts
    unchecked: tuple[Finding, ...]
    compilers: Compilers = Compilers()
    profile: Profiled | NoProfile = NOT_ASKED
