"""The protocol: how candidates are judged and timed. Locked with the trial."""

from decimal import Decimal
from typing import Annotated, Literal

from msgspec import Meta

from kerneltrial.records.record import LARGEST, Record, within
from kerneltrial.records.screening import Screening


class Protocol(Record):
    """Every number that decides how hard a candidate is looked at.

    A confirmation looks at its intervals after `confirmation_processes`, then after twice as many, `confirmation_looks`
    times in all. It stops once every speedup is known to `precision` (0.0025 is a quarter of a percent) on either side:
    on how wide the intervals are, never on where they lie.
    """

    draws_per_case: Annotated[int, Meta(ge=5, le=100)] = 5
    boundary_shapes: Annotated[int, Meta(ge=0, le=100)] = 12
    repeats: Annotated[int, Meta(ge=1, le=100)] = 2
    timeout_s: Annotated[int, Meta(ge=1, le=3600)] = 60
    search_rounds: Annotated[int, Meta(ge=10, le=10_000)] = 10
    rounds: Annotated[int, Meta(ge=10, le=10_000)] = 30
    energy: bool = False
    confirmation_processes: Annotated[int, Meta(ge=5, le=50)] = 5
    confirmation_looks: Annotated[int, Meta(ge=1, le=4)] = 2
    precision: Decimal = Decimal("0.0025")
    confidence: Decimal = Decimal("0.95")
    clock: Literal["auto", "cupti", "graph", "events", "events-10-100"] = "auto"
    profile: Literal["none", "ncu"] = "none"
    sanitizers: Literal["none", "winner", "all"] = "winner"
    beyond_int32: Literal["none", "winner"] = "none"
    budget_instructions: Annotated[int, Meta(ge=1_000_000, le=LARGEST)] = 2_000_000_000
    screening: Screening = Screening()

    def __post_init__(self) -> None:
        within("confidence", self.confidence, "0.8", "0.999")
        within("precision", self.precision, "0.0001", "0.1")
