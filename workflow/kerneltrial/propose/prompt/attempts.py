"""Every earlier attempt as the prompt tells of it: one value each, from the records that a proposer may see."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from kerneltrial.propose.history import Iteration
from kerneltrial.records.build import Built, NotBuilt
from kerneltrial.records.candidate import Candidate
from kerneltrial.records.profile import Profiled
from kerneltrial.records.proposal import Duplicate, Origin, Proposed, Try, TryRight, TryWrong, Unusable
from kerneltrial.records.reason import Reason
from kerneltrial.records.timing import CaseCounts, CaseLatency, Counted, Timed, Untimed
from kerneltrial.records.validation import Invalid, Unchecked, Validated

Read = Callable[[str], bytes]

NOBODYS = Origin(hypothesis="", pattern="none", parents=(), parameters={})
WAS_RIGHT = ("measured", "right")


@dataclass(frozen=True)
class Told:
    """One attempt. `number` counts from 1; `state` is how it ended.

    `measured` and `right` (valid, without a figure); `wrong`, `not_built`, `unusable`: its own fault; `duplicate`;
    `unknown`: nobody's fault. `ratio` is baseline over candidate, 0 where there is none; `log` is the digest of the
    compiler's output, empty where there is none.
    """

    number: int
    iteration: int
    state: str
    origin: Origin = NOBODYS
    candidate: Candidate | None = None
    built: Built | None = None
    figures: tuple[CaseLatency | CaseCounts, ...] = ()
    ratio: float = 0.0
    reason: Reason | None = None
    detail: str = ""
    log: str = ""
    profile: str = ""

    @property
    def failed(self) -> bool:
        """It is the proposer's to repair."""
        return self.state in ("wrong", "not_built", "unusable")


def told(iterations: Sequence[Iteration]) -> tuple[Told, ...]:
    """All attempts of iterations 1, 2 ..., in order."""
    found = [one for number, iteration in enumerate(iterations, start=1) for one in _of(number, iteration)]
    numbered = [replace(one, number=number) for number, one in enumerate(found, start=1)]
    first = {t.candidate.id: t.number for t in numbered if t.candidate is not None}
    return tuple(
        replace(t, detail=f"the same as attempt {first.get(t.detail, 0)}") if t.state == "duplicate" else t
        for t in numbered
    )


def _of(number: int, iteration: Iteration) -> Iterator[Told]:
    built = {b.candidate: b for b in iteration.build.candidates}
    judged = {v.candidate: v for v in iteration.validation.candidates}
    timed = {t.candidate: t for t in iteration.timing.candidates}
    for attempt in iteration.proposal.attempts:
        match attempt:
            case Unusable(reason=reason, detail=detail):
                yield Told(0, number, "unusable", reason=reason, detail=detail)
            case Duplicate(duplicate_of=same, origin=origin):
                yield Told(0, number, "duplicate", origin, detail=same)
            case Try(candidate=candidate, origin=origin, outcome=outcome):
                yield _tried(Told(0, number, "unknown", origin, candidate), outcome)
            case Proposed(candidate=candidate, origin=origin):
                start = Told(0, number, "unknown", origin, candidate)
                name = candidate.id
                yield _ended(start, built.get(name), judged.get(name), timed.get(name))


def _tried(start: Told, outcome: TryRight | TryWrong) -> Told:
    if isinstance(outcome, TryRight):
        return replace(start, state="measured" if outcome.ratio else "right", ratio=outcome.ratio)
    state = "not_built" if outcome.stage == "build" else "wrong"
    return _fault(start, state, outcome.reason, outcome.detail)


def _ended(start: Told, built: object, judged: object, timed: object) -> Told:
    if isinstance(built, NotBuilt):
        return _fault(replace(start, log=built.log), "not_built", built.reason, built.detail)
    if isinstance(built, Built):
        start = replace(start, built=built, log=built.log)
    match judged:
        case Invalid(reason=reason, detail=detail):
            return _fault(start, "wrong", reason, detail)
        case Unchecked(reason=reason, detail=detail):
            return replace(start, reason=reason, detail=detail)
        case Validated():
            return _measured(start, timed)
    return start


def _fault(start: Told, state: str, reason: Reason, detail: str) -> Told:
    """An infrastructure's or an unchecked reason never counts against a candidate."""
    mine = reason.reason_class.value == "candidate"
    return replace(start, state=state if mine else "unknown", reason=reason, detail=detail)


def _measured(start: Told, timed: object) -> Told:
    match timed:
        case Timed(cases=cases, geometric_mean=ratio, profile=Profiled(sentence=sentence)) if ratio > 0:
            return replace(start, state="measured", figures=tuple(cases), ratio=ratio, profile=sentence)
        case Timed(cases=cases, geometric_mean=ratio) | Counted(cases=cases, geometric_mean=ratio) if ratio > 0:
            return replace(start, state="measured", figures=tuple(cases), ratio=ratio)
        case Untimed(reason=reason, detail=detail):
            return replace(start, state="right", reason=reason, detail=detail)
    return replace(start, state="right")
