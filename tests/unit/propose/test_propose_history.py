"""History from records: what became of each candidate, and what counts against it."""

from collections.abc import Sequence

import pytest

from kerneltrial.propose.history import Failed, Iteration, Measured, NoResources, Resources, Unknown, history_of
from kerneltrial.propose.proposer import NO_USAGE
from kerneltrial.records.build import Build, Built, Entry, NoCubin, NotBuilt
from kerneltrial.records.candidate import Candidate
from kerneltrial.records.plan import Launch, LaunchPlan, Variant
from kerneltrial.records.proposal import Attempt, Duplicate, Origin, Proposal, Proposed, Unusable
from kerneltrial.records.reason import Reason, Skipped
from kerneltrial.records.timing import Counted, Timed, Timing, Untimed
from kerneltrial.records.validation import Invalid, SkippedCandidate, Unchecked, Validated, Validation

ID = "a" * 64
ORIGIN = Origin(hypothesis="h", pattern="none", parents=(), parameters={"T": 1})
PLAN = LaunchPlan(variants=(Variant(launches=(Launch(entry="f", grid=("1",) * 3, block=("1",) * 3, args=("x",)),)),))
BUILT = Built(
    candidate=ID,
    abi="pointer",
    ptx="b" * 64,
    cubin=NoCubin(),
    entries=(
        Entry(name="f", parameters=(8,), registers=40, shared_bytes=128, spilled_bytes=0),
        Entry(name="g", parameters=(8,), registers=30, shared_bytes=256, spilled_bytes=8),
    ),
    compiler="nvrtc",
    options=(),
    log="c" * 64,
    same_ptx_as=(),
)
VALID = Validated(candidate=ID, cases=(), checks=(), unchecked=())


def _skipped(stage: str) -> SkippedCandidate:
    return SkippedCandidate(candidate=ID, skipped=Skipped(stage=stage, reason=Reason.WRONG_VALUES))


def _not_built(reason: Reason) -> NotBuilt:
    return NotBuilt(candidate=ID, reason=reason, detail="d", log="c" * 64)


def _invalid(reason: Reason) -> Invalid:
    return Invalid(candidate=ID, reason=reason, detail="d", cases=(), checks=(), unchecked=())


def _iteration(built: object, judged: object, timed: object, more: Sequence[Attempt] = ()) -> Iteration:
    candidate = Candidate(id=ID, language="cuda_cpp", source="d" * 64, plan=PLAN)
    attempts = (Proposed(candidate=candidate, origin=ORIGIN), *more)
    return Iteration(
        proposal=Proposal(proposer="search", attempts=attempts, usage=NO_USAGE),
        build=Build(candidates=(built,)),  # type: ignore[arg-type]
        validation=Validation(candidates=(judged,)),  # type: ignore[arg-type]
        timing=Timing(candidates=(timed,)),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("built", "judged", "timed", "fate"),
    [
        (BUILT, VALID, Timed(candidate=ID, cases=(), geometric_mean=1.5), Measured(ratio=1.5)),
        (BUILT, VALID, Counted(candidate=ID, cases=(), geometric_mean=0.5), Measured(ratio=0.5)),
        (
            _not_built(Reason.DOES_NOT_COMPILE),
            _skipped("build"),
            _skipped("build"),
            Failed(stage="build", reason=Reason.DOES_NOT_COMPILE, detail="d"),
        ),
        (_not_built(Reason.COMPILER_DIED), _skipped("b"), _skipped("b"), Unknown(reason=Reason.COMPILER_DIED)),
        (
            BUILT,
            _invalid(Reason.SHARED_RACE),
            _skipped("validate"),
            Failed(stage="validate", reason=Reason.SHARED_RACE, detail="d"),
        ),
        (BUILT, _invalid(Reason.DEVICE_LOST), _skipped("validate"), Unknown(reason=Reason.DEVICE_LOST)),
        (
            BUILT,
            Unchecked(candidate=ID, reason=Reason.UNSUPPORTED_INSTRUCTION, detail="d"),
            _skipped("validate"),
            Unknown(reason=Reason.UNSUPPORTED_INSTRUCTION),
        ),
        (
            BUILT,
            VALID,
            Untimed(candidate=ID, reason=Reason.NOT_MEASURED, detail="d"),
            Unknown(reason=Reason.NOT_MEASURED),
        ),
    ],
)
def test_a_fate_follows_from_the_records(built: object, judged: object, timed: object, fate: object) -> None:
    history = history_of([_iteration(built, judged, timed)])
    assert [t.fate for t in history.tried] == [fate]


def test_resources_are_those_of_the_entry_that_needs_most() -> None:
    history = history_of([_iteration(BUILT, VALID, Timed(candidate=ID, cases=(), geometric_mean=1.0))])
    assert history.tried[0].resources == Resources(registers=40, shared_bytes=256, spilled_bytes=8)


def test_what_was_not_built_has_no_resources() -> None:
    history = history_of([_iteration(_not_built(Reason.BAD_PLAN), _skipped("b"), _skipped("b"))])
    assert history.tried[0].resources == NoResources()


def test_every_attempt_counts_and_only_candidates_are_tried() -> None:
    more = (Duplicate(duplicate_of=ID, origin=ORIGIN), Unusable(reason=Reason.BAD_PLAN, detail="d"))
    timed = Timed(candidate=ID, cases=(), geometric_mean=1.0)
    history = history_of([_iteration(BUILT, VALID, timed, more), _iteration(BUILT, VALID, timed)])
    assert (history.iterations, history.attempts) == (2, 4)
    assert [t.iteration for t in history.tried] == [1, 2]
    assert history.candidates == {ID}


def test_the_best_is_the_highest_ratio_and_the_earlier_of_equals() -> None:
    ratios = (1.0, 3.0, 3.0, 2.0)
    iterations = [_iteration(BUILT, VALID, Timed(candidate=ID, cases=(), geometric_mean=r)) for r in ratios]
    best = history_of(iterations).best
    assert best is not None
    assert best.iteration == 2


def test_no_history_has_no_best() -> None:
    history = history_of([])
    assert (history.iterations, history.attempts, history.best) == (0, 0, None)
