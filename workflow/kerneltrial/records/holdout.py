"""The holdout: one verdict a candidate on cases that nobody saw. The drawn cases stay sealed until the seal."""

from typing import Literal

from kerneltrial.records.record import Count, Digest, Record
from kerneltrial.records.validation import SkippedCandidate


class HoldoutVerdict(Record, tag_field="state", tag="judged"):
    """`cases` were drawn and judged; nothing else of them is told before the seal."""

    candidate: Digest
    verdict: Literal["held", "failed", "unchecked"]
    cases: Count


class Holdout(Record):
    """One entry a candidate, in the order of the proposal."""

    candidates: tuple[HoldoutVerdict | SkippedCandidate, ...]
