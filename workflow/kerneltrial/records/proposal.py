"""A proposal: what one iteration's attempts are."""

from kerneltrial.records.candidate import Candidate, Pattern
from kerneltrial.records.reason import Reason
from kerneltrial.records.record import Count, Digest, Record, Text


class Origin(Record):
    """Where a candidate comes from: its hypothesis, the pattern that it stands for, its parents' ids."""

    hypothesis: Text
    pattern: Pattern
    parents: tuple[Digest, ...]
    parameters: dict[str, int]


class Proposed(Record, tag_field="state", tag="proposed"):
    """A new candidate."""

    candidate: Candidate
    origin: Origin


class Duplicate(Record, tag_field="state", tag="duplicate"):
    """The same candidate again: an attempt is used, nothing is judged twice."""

    duplicate_of: Digest
    origin: Origin


class Unusable(Record, tag_field="state", tag="unusable"):
    """An attempt that gave no candidate."""

    reason: Reason
    detail: Text


class TryRight(Record, tag_field="verdict", tag="right"):
    """Every check of the public cases passed; `ratio` is baseline over draft, 0 where it could not be measured."""

    ratio: float


class TryWrong(Record, tag_field="verdict", tag="wrong"):
    """It ended in `stage`, or could not be judged there (`reason` is then none of the candidate's own)."""

    stage: str
    reason: Reason
    detail: Text


class Try(Record, tag_field="state", tag="tried"):
    """A draft that a program had judged on the public cases while it worked. Only what it proposes at its end is judged
    by the trial.
    """

    candidate: Candidate
    origin: Origin
    outcome: TryRight | TryWrong


Attempt = Proposed | Duplicate | Unusable | Try


class ModelUsage(Record):
    """What a model charged for: tokens, and the digests of request and reply.

    Cached tokens, and those written to the provider's cache, are part of the input's; reasoning is of the output's.
    """

    requests: tuple[Digest, ...]
    replies: tuple[Digest, ...]
    input_tokens: Count
    cached_tokens: Count
    output_tokens: Count
    reasoning_tokens: Count
    cache_write_tokens: Count = 0


class Proposal(Record):
    """All attempts of one iteration, in order."""

    proposer: str
    attempts: tuple[Attempt, ...]
    usage: ModelUsage

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        return tuple(a.candidate for a in self.attempts if isinstance(a, Proposed))
