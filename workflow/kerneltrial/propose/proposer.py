"""What all proposers share: what they give, and how drafts become the proposal of an iteration."""

from collections.abc import Sequence
from typing import Protocol

from kerneltrial.propose.history import History
from kerneltrial.records.candidate import Candidate, Language
from kerneltrial.records.plan import LaunchPlan
from kerneltrial.records.proposal import (
    Attempt,
    Duplicate,
    ModelUsage,
    Origin,
    Proposal,
    Proposed,
    Try,
    TryRight,
    TryWrong,
    Unusable,
)
from kerneltrial.records.reason import Reason
from kerneltrial.records.record import Digest, Record
from kerneltrial.store.canonical import canonical, digest
from kerneltrial.store.objects import Objects

NO_USAGE = ModelUsage(requests=(), replies=(), input_tokens=0, cached_tokens=0, output_tokens=0, reasoning_tokens=0)
MAXIMUM_SOURCE_BYTES = 1_000_000


class Draft(Record):
    """A kernel as a proposer wrote it; `source` is UTF-8 text."""

    language: Language
    source: bytes
    plan: LaunchPlan
    origin: Origin


class TriedDraft(Record, tag_field="state", tag="tried"):
    """A draft that a program had judged while it worked, and what it was told."""

    draft: Draft
    outcome: TryRight | TryWrong


class Proposer(Protocol):
    """Anything that proposes kernels. It keeps no state: the same history gives the same drafts."""

    @property
    def name(self) -> str:
        """How records call it."""

    def propose(self, history: History, count: int) -> Sequence[Draft | Unusable]:
        """Return up to `count` drafts in the order in which they are to be tried.

        Fewer than `count`, the last of them `Unusable` with SPACE_EXHAUSTED, says that there is nothing more to try.
        """


def candidate_of(draft: Draft) -> Candidate:
    """Return the candidate of a draft; its id is the digest of the canonical {language, source digest, plan}."""
    return identified(draft.language, digest(draft.source), draft.plan)


def identified(language: Language, source: Digest, plan: LaunchPlan) -> Candidate:
    """Return the candidate with its id; `source` is the digest of its text."""
    identity = {"language": language, "source": source, "plan": plan}
    return Candidate(id=digest(canonical(identity)), language=language, source=source, plan=plan)


def assemble(
    proposer: str,
    drafts: Sequence[Draft | Unusable | TriedDraft],
    history: History,
    objects: Objects,
    usage: ModelUsage = NO_USAGE,
) -> Proposal:
    """Store the drafts' sources and return the proposal, attempts in the order of the drafts.

    A draft that was only tried is a `Try`. A candidate that an earlier iteration proposed, or that stands earlier in
    this one, is a `Duplicate`; a source that no compiler should see is `Unusable` (SOURCE_REFUSED).
    """
    known = set(history.candidates)
    attempts: list[Attempt] = []
    for draft in drafts:
        attempt = _of(draft, known)
        if isinstance(attempt, Try) and isinstance(draft, TriedDraft):
            objects.put(draft.draft.source)
        if isinstance(attempt, Proposed) and isinstance(draft, Draft):
            objects.put(draft.source)
            known.add(attempt.candidate.id)
        attempts.append(attempt)
    return Proposal(proposer=proposer, attempts=tuple(attempts), usage=usage)


def _of(draft: Draft | Unusable | TriedDraft, known: set[str]) -> Attempt:
    if isinstance(draft, Unusable):
        return draft
    if isinstance(draft, Draft):
        return _attempt(draft, known)
    problem = _source_problem(draft.draft.source)
    if problem:
        return Unusable(reason=Reason.SOURCE_REFUSED, detail=problem)
    return Try(candidate=candidate_of(draft.draft), origin=draft.draft.origin, outcome=draft.outcome)


def _attempt(draft: Draft, known: set[str]) -> Attempt:
    problem = _source_problem(draft.source)
    if problem:
        return Unusable(reason=Reason.SOURCE_REFUSED, detail=problem)
    candidate = candidate_of(draft)
    if candidate.id in known:
        return Duplicate(duplicate_of=candidate.id, origin=draft.origin)
    return Proposed(candidate=candidate, origin=draft.origin)


def _source_problem(source: bytes) -> str:
    if len(source) > MAXIMUM_SOURCE_BYTES:
        return f"the source has {len(source)} bytes; at most {MAXIMUM_SOURCE_BYTES} are taken"
    if b"\0" in source:
        return f"the source holds a NUL byte at offset {source.index(0)}"
    try:
        source.decode("utf-8")
    except UnicodeDecodeError as fault:
        return f"the source is not UTF-8 text: {fault.reason} at offset {fault.start}"
    return ""
