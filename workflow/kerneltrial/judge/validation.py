"""A candidate's validation: every case, cheapest first, until the first fault (DESIGN.md section 6).

Far shapes come last and are run once: a tile makes much work of a thin call, and their point is the size.
"""

import contextlib
import copy
import functools
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import msgspec

from kerneltrial.devices.device import Binary, DeviceProblem, Run
from kerneltrial.inputs.boundary import boundary_cases, boundary_shapes
from kerneltrial.inputs.calls import Call
from kerneltrial.inputs.expressions import evaluate
from kerneltrial.inputs.far import draw_of, far_cases, out_of_reach
from kerneltrial.inputs.resolve import PlanProblem, check_plan
from kerneltrial.judge import sanitizing
from kerneltrial.judge.answers import Answers
from kerneltrial.judge.beyond import Room, beyond_int32
from kerneltrial.judge.casework import CaseWork, turns
from kerneltrial.judge.domain import uncovered
from kerneltrial.judge.inside import Module, ways_inside
from kerneltrial.judge.levels import BOUNDS_ALONE, Levels, Sized, choose, left_out
from kerneltrial.judge.outcomes import invalid, outcome_of, placed, review
from kerneltrial.judge.ptx import read
from kerneltrial.judge.screen import screen
from kerneltrial.judge.setup import JudgeProblem, JudgeSetup, RunsCalls, Sanitizes, Subject
from kerneltrial.judge.strict import with_cause, with_word
from kerneltrial.judge.variants import Derived, derived
from kerneltrial.records.build import Built
from kerneltrial.records.case import Case
from kerneltrial.records.plan import LaunchPlan
from kerneltrial.records.reason import Finding, Reason
from kerneltrial.records.record import Digest
from kerneltrial.records.validation import CaseVerdict, Invalid, Unchecked, Validated

ValidationOutcome = Validated | Invalid | Unchecked

CHECKS = (
    "oracle",  # every element against float64
    "baseline_error",  # error relative to the baseline's own
    "two_poisons",
    "two_addresses",
    "two_orders",  # of blocks and threads, where the device is free to choose one
    "guards",
    "inputs_intact",
    "scratch_restored",
    "history",  # A, B, A over draws, and over shapes
)


@dataclass(frozen=True)
class Further:
    """What is dear: compute-sanitizer; the `cpu` device beside a card; a case of more than 2**31 elements.

    `at_once`: compute-sanitizer looks while the device judges, and not only after that: for a candidate that was right
    before, so that it is hardly in vain.
    """

    sanitizes: Sanitizes | None = None
    strict: RunsCalls | None = None
    room: Room | None = None
    at_once: bool = False


@dataclass(frozen=True)
class Prepared:
    """Cases with their calls, cheapest first, and how closely each is looked at."""

    cases: tuple[tuple[Case, Call], ...]
    sized: tuple[Sized, ...]
    levels: Levels


class Judge:
    """Judges candidates one after another; answers are kept between them.

    `far` are those of the cases that are run once, for their size; the public far shapes where none are given.
    """

    def __init__(self, setup: JudgeSetup, far: Sequence[Case] | None = None) -> None:
        self.setup = setup
        self.answers = Answers(setup)
        shapes = boundary_shapes(setup.contract, setup.cases, setup.protocol.boundary_shapes, setup.seed)
        if far is None:
            far = far_cases(setup.contract, setup.cases, setup.seed) if setup.protocol.boundary_shapes else ()
        self.cases = (*setup.cases.cases, *boundary_cases(shapes, setup.seed), *far)
        self._far = frozenset(case.name for case in far)
        self._derived: frozenset[str] = frozenset()

    def draws(self, case: Case) -> int:
        """How many draws a case gets: a far shape has one."""
        return 1 if case.name in self._far else self.setup.protocol.draws_per_case

    def _drawn(self, case: Case) -> Sequence[int]:
        return (draw_of(case),) if case.name in self._far else range(self.draws(case))

    @contextlib.contextmanager
    def drawing_ahead(self) -> Iterator[None]:
        """Meanwhile inputs and answers are worked out in a thread of their own, in the order of the cases.

        For whoever waits for a device to open: the first candidate would wait for them after that.
        """
        over = threading.Event()
        asked = ((case, draw) for case in self.cases for draw in self._drawn(case))
        with ThreadPoolExecutor(1) as pool:
            pool.submit(self.answers.draw_ahead, asked, over)
            try:
                yield
            finally:
                over.set()

    def judge_candidate(
        self,
        built: Built,
        binary: Binary,
        plan: LaunchPlan,
        runner: RunsCalls,
        further: Further = Further(),
    ) -> ValidationOutcome:
        """The verdict on a candidate; raises `JudgeProblem`, `InputProblem` or `DeviceProblem` on broken ground."""
        seen = screen(binary.ptx, self.setup.protocol.screening, several_launches=has_several_launches(plan))
        if any(finding.reason is not Reason.NEEDS_REVIEW for finding in seen):
            return invalid(built.candidate, seen[0], (), ("screen",), ())
        more = self._further_cases(built, binary, plan)
        subject = Subject(binary=binary, plan=plan, abi=built.abi, runner=runner)
        outcome = self._with(more)._judged_twice(built, subject, further)
        if more.unchecked and isinstance(outcome, Validated):
            outcome = msgspec.structs.replace(outcome, unchecked=(*outcome.unchecked, *more.unchecked))
        if (seen or more.open) and not isinstance(outcome, Invalid):
            detail = review(seen, more.open, outcome)
            return Unchecked(candidate=built.candidate, reason=Reason.NEEDS_REVIEW, detail=detail)
        return outcome

    def _further_cases(self, built: Built, binary: Binary, plan: LaunchPlan) -> Derived:
        """Cases for what the plan, and then the kernels, do in shapes that no other case has."""
        try:
            check_plan(plan, self.setup.contract)
        except PlanProblem:  # told where its calls are resolved
            return Derived()
        of_plan = derived(self.setup, plan, self._near, self._seen_once)
        near = (*self._near, *of_plan.cases)
        inside = ways_inside(self.setup, plan, Module(read(binary.ptx), built.abi), near, self._seen_once)
        return Derived(
            cases=(*of_plan.cases, *inside.cases),
            once=of_plan.once | inside.once,
            open=of_plan.open,
            unchecked=(*of_plan.unchecked, *inside.unchecked),
        )

    def _with(self, more: Derived) -> "Judge":
        """This judge with further cases, of one plan; answers are kept in common."""
        judge = copy.copy(self)
        judge.cases, judge._far = (*self.cases, *more.cases), self._far | more.once
        judge._derived = frozenset(case.name for case in more.cases)
        return judge

    def _judged_twice(self, built: Built, subject: Subject, further: Further) -> ValidationOutcome:
        """By the device and, where there is one, by the `cpu` device beside it."""
        if further.strict is None:
            return self._judged(built, subject, further)
        beside = Subject(binary=subject.binary, plan=subject.plan, abi=built.abi, runner=further.strict)
        with ThreadPoolExecutor(1) as pool:
            looks = pool.submit(self._look_strictly, built, beside)
            outcome = self._judged(built, subject, further)
            strict, left_out = looks.result()
        if isinstance(outcome, Invalid):
            return with_cause(outcome, strict)
        return with_word(outcome, strict, left_out) if isinstance(outcome, Validated) else outcome

    def _judged(self, built: Built, subject: Subject, further: Further) -> ValidationOutcome:
        judged = functools.partial(self.judge_subject, built.candidate, subject, self.cases)
        if further.sanitizes is None:
            outcome = judged()
        else:
            looker = sanitizing.Looker(self.setup, self.answers, further.sanitizes)
            outcome = looker.after(judged, subject, self._near, at_once=further.at_once)
        if further.room is not None and isinstance(outcome, Validated):
            outcome = beyond_int32(self.setup, subject, outcome, further.room)
        return outcome

    @property
    def _seen_once(self) -> tuple[Case, ...]:
        return tuple(case for case in self.cases if case.name in self._far)

    @property
    def _near(self) -> tuple[Case, ...]:
        return tuple(case for case in self.cases if case.name not in self._far)

    def _look_strictly(self, built: Built, subject: Subject) -> tuple[ValidationOutcome, tuple[str, ...]]:
        """The `cpu` device's verdict on what is cheap enough for it, and the names of the other cases."""
        prepared = self._prepare(subject, self._near, closely=True)
        if isinstance(prepared, Finding):
            return outcome_of(built.candidate, prepared, (), (), ()), ()
        seen = prepared.levels.every | prepared.levels.once
        cases = tuple(case for case, _ in prepared.cases if case.name in seen)
        if not cases:
            large = Finding(reason=Reason.CHECK_ABSENT, detail="every case is too large for it")
            return outcome_of(built.candidate, large, (), (), ()), ()
        try:
            outcome = self.judge_subject(built.candidate, subject, cases)
        except DeviceProblem as problem:  # it is a second opinion, and the card's own is there
            absent = Finding(reason=Reason.CHECK_ABSENT, detail=str(problem))
            return outcome_of(built.candidate, absent, (), (), ()), ()
        return outcome, tuple(case.name for case, _ in prepared.cases if case.name not in seen)

    def judge_subject(
        self, identity: Digest, subject: Subject, cases: Sequence[Case], *, screened: bool = True, closely: bool = True
    ) -> ValidationOutcome:
        """The verdict on anything that runs (the baseline too) over `cases`, which have names of their own.

        Without `closely` the device checks bounds alone: for shapes that were looked at closely before.
        """
        prepared = self._prepare(subject, cases, closely)
        if isinstance(prepared, Finding):
            return outcome_of(identity, prepared, (), self._checks(screened, None), ())
        verdicts: list[CaseVerdict] = []
        unchecked: dict[Finding, None] = {}
        checks = self._checks(screened, prepared.levels)
        ended, first = self._all_cases(subject, prepared, verdicts, unchecked)
        if ended is None and first is not None:
            ended = self._history(subject, prepared, first)
        if ended is not None:
            return outcome_of(identity, placed(ended, verdicts), verdicts, checks, tuple(unchecked))
        unchecked.update(dict.fromkeys(left_out(prepared.sized, prepared.levels)))
        unchecked.update(dict.fromkeys(self._out_of_reach(cases)))
        return Validated(candidate=identity, cases=tuple(verdicts), checks=checks, unchecked=tuple(unchecked))

    def _all_cases(
        self, subject: Subject, prepared: Prepared, verdicts: list[CaseVerdict], unchecked: dict[Finding, None]
    ) -> tuple[Finding | None, Run | None]:
        """Judge case by case into `verdicts`; returns what ended it, and the first run of the first case."""
        first: Run | None = None
        for case, call in prepared.cases:
            if case.name in self._derived and (broken := self._no_answer(case)) is not None:
                return broken, None
            work = CaseWork(self.setup, self.answers, subject, case)
            level = prepared.levels.of(case.name)
            far = case.name in self._far
            result = work.judge_once(call, level, draw_of(case)) if far else work.judge(call, self.draws(case), level)
            verdicts.append(result.verdict)
            unchecked.update(dict.fromkeys(result.unchecked))
            if result.finding is not None:
                return result.finding, None
            first = first or result.first
        return None, first

    def _no_answer(self, case: Case) -> Finding | None:
        """Why a case that a candidate's own plan made cannot be judged: no fault of the trial's ground."""
        try:
            self.answers.baseline(case, 0)
        except JudgeProblem as problem:
            return Finding(reason=Reason.CHECK_ABSENT, detail=str(problem))
        return None

    def _history(self, subject: Subject, prepared: Prepared, first: Run) -> Finding | None:
        """The first case again, after all others."""
        if not self.setup.contract.deterministic:
            return None
        case, call = prepared.cases[0]
        work = CaseWork(self.setup, self.answers, subject, case)
        return work.after_other_shapes(call, first, prepared.levels.of(case.name))

    def _prepare(self, subject: Subject, cases: Sequence[Case], closely: bool) -> Prepared | Finding:
        """Resolve the plan for every case before anything runs: a shape without a launch needs no run to be told."""
        contract, protocol = self.setup.contract, self.setup.protocol
        missing = uncovered(subject, contract)
        if missing is not None:
            return missing
        found: list[tuple[Sized, Case]] = []
        for case in cases:
            try:
                call = subject.call(contract, case.dimensions)
            except PlanProblem as problem:
                return problem.finding
            work = evaluate(contract.operations, case.dimensions)
            found.append((Sized(case=case.name, operations=work, call=call), case))
        found.sort(key=lambda pair: (pair[0].case in self._far, pair[0].operations))
        sized = tuple(s for s, _ in found)
        near = [s for s in sized if s.case not in self._far]
        known = {s.kernels for s in near}
        near += [s for s in sized if s.kernels not in known]  # kernels that are launched for far shapes alone
        return Prepared(
            cases=tuple((c, s.call) for s, c in found),
            sized=sized,
            levels=choose(near, protocol.draws_per_case * turns(protocol)) if closely else BOUNDS_ALONE,
        )

    def _out_of_reach(self, cases: Sequence[Case]) -> tuple[Finding, ...]:
        """Sizes that the contract allows and no case tries, where far shapes are among the cases."""
        if self._far.isdisjoint(case.name for case in cases):
            return ()
        ranges = out_of_reach(self.setup.contract, self.setup.cases)
        detail = f"sizes that are too much work here: {'; '.join(ranges)}"
        return (Finding(reason=Reason.CHECK_ABSENT, detail=detail),) if ranges else ()

    def _checks(self, screened: bool, levels: Levels | None) -> tuple[str, ...]:
        first = ("screen",) if screened else ()
        if levels is None:
            return first
        device = ("device:bounds", "device:all") if levels.every or levels.once else ("device:bounds",)
        in_place = ("in_place",) if self.setup.contract.in_place else ()
        return (*first, *CHECKS, *in_place, *device)


def has_several_launches(plan: LaunchPlan) -> bool:
    """Whether no variant of a plan has one launch only."""
    return all(len(variant.launches) > 1 for variant in plan.variants)
