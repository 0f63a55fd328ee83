"""One subject on one case: every draw, under two poisons at two addresses, in an order that makes history visible.

The first run of a draw finds memory that is all NaN. The second finds `huge` in even draws and `plain` in odd ones:
ordinary numbers, which a kernel cannot tell from what a call before it left. Their seed comes from the trial's seed,
the case's name, the draw and the turn, so that the same trial sees the same bytes.

Draws 0, 1, 2 … run once under the first conditions, then all again under the second. So between the two runs of a
draw every other draw has run (A, B, A), on another fill of memory and at other addresses; their bytes must agree.
The second run also takes blocks and threads in another order, where the device is free to choose one: backward in even
draws, shuffled in odd ones; and each buffer lies at an address of its own, at a multiple of what the contract promises.
"""

import hashlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal

import msgspec

from kerneltrial.devices.device import Conditions, Order, Poison, Refused, Run
from kerneltrial.inputs.calls import Call, in_place
from kerneltrial.inputs.expressions import evaluate
from kerneltrial.judge.answers import Answers, Drawn, compare_all
from kerneltrial.judge.compare import Compared
from kerneltrial.judge.disagreement import Again, differences, explain, poison_shows
from kerneltrial.judge.setup import JudgeProblem, JudgeSetup, Subject
from kerneltrial.judge.stale import stale_in_place
from kerneltrial.records.case import Case
from kerneltrial.records.protocol import Protocol
from kerneltrial.records.reason import Finding, Reason, ReasonClass
from kerneltrial.records.validation import CaseVerdict, ErrorMeasure

Level = Literal["all", "bounds"]
OTHER_POISONS: Final[tuple[Poison, Poison]] = ("huge", "plain")
OTHER_ORDERS: Final[tuple[Order, Order]] = ("backward", "shuffled")
_NO_OTHER_ORDER: Final = Finding(
    reason=Reason.CHECK_ABSENT,
    detail="whether results hang on the order of blocks: one waits for another, and backward it would wait for ever",
)
LevelOf = Callable[[int, int], Level]  # (draw, pass) to how closely the device looks


@dataclass(frozen=True)
class CaseResult:
    """`finding` is None where the case passed; its class tells a candidate's fault from what cannot be judged here.

    `first` is the first run of draw 0, where there was one.
    """

    verdict: CaseVerdict
    finding: Finding | None
    unchecked: tuple[Finding, ...]
    first: Run | None


@dataclass(frozen=True)
class Seen:
    """One run of one draw, and how closely the device looked."""

    call: Call
    drawn: Drawn
    draw: int
    run: Run
    level: Level


class CaseWork:
    """Judges one subject on one case; made anew for each."""

    def __init__(self, setup: JudgeSetup, answers: Answers, subject: Subject, case: Case) -> None:
        self._setup = setup
        self._answers = answers
        self._subject = subject
        self._case = case
        self._errors: dict[str, ErrorMeasure] = {}
        self._unchecked: dict[Finding, None] = {}  # in the order of finding, each once
        self._draws_compared: set[int] = set()
        self._fenced_draw = -1

    def judge(self, call: Call, draws: int, level: LevelOf) -> CaseResult:
        """Run and compare until the first fault; `DeviceProblem` passes through.

        The last draw's buffers are fenced: what the draws before it show has more words than a fault has.
        """
        self._fenced_draw = draws - 1
        result = self._judged(call, list(self._schedule(draws)), level)
        return result if result.finding is not None else self._with_in_place(call, level, result)

    def judge_once(self, call: Call, level: LevelOf, draw: int = 0) -> CaseResult:
        """One run of one draw, fenced, over memory that is all NaN: for what is large, for its size.

        A tile may make far more work of such a call than the contract counts: a spent budget is then no fault.
        """
        self._fenced_draw = draw
        result = self._judged(call, [(draw, 0)], level)
        if result.finding is None or result.finding.reason is not Reason.ENDLESS_LOOP:
            return result
        detail = f"too much work here, or endless: {result.finding.detail}"
        dear = Finding(reason=Reason.CHECK_ABSENT, detail=detail)
        verdict = msgspec.structs.replace(result.verdict, findings=(dear,))
        return replace(result, verdict=verdict, finding=dear)

    def _with_in_place(self, call: Call, level: LevelOf, so_far: CaseResult) -> CaseResult:
        """The first draw once more for each output that may lie in an input's memory, there."""
        for output, source in self._setup.contract.in_place.items():
            try:
                finding = self._look_in_place(call, output, source, level)
            except Refused as refused:
                finding = refused.finding
            if finding is not None:
                detail = f"with {output} in the memory of {source}, as the contract allows: {finding.detail}"
                return self._result(Finding(reason=finding.reason, detail=detail), so_far.first)
        return self._result(None, so_far.first)

    def _look_in_place(self, call: Call, output: str, source: str, level: LevelOf) -> Finding | None:
        drawn = self._answers.drawn(self._case, 0)
        values = {**{n: v for n, v in drawn.values.items() if n != source}, output: drawn.values[source]}
        placed = in_place(call, output, source)
        self._unchecked.update(dict.fromkeys(stale_in_place(self._subject.binary.ptx)))
        run = self._run(placed, replace(drawn, values=values), self._conditions(0, 0, level(0, 0)))
        self._unchecked.update(dict.fromkeys(run.unchecked))
        compared = () if (fault := fault_of(run)) else self._compare(Seen(placed, drawn, 0, run, level(0, 0)))
        return fault or next((c.finding for c in compared if c.finding is not None), None)

    def _judged(self, call: Call, schedule: list[tuple[int, int]], level: LevelOf) -> CaseResult:
        first: dict[int, Run] = {}
        try:
            return self._result(self._all_runs(call, schedule, level, first), first.get(0))
        except Refused as refused:
            return self._result(refused.finding, None)

    def _all_runs(
        self, call: Call, schedule: list[tuple[int, int]], level: LevelOf, first: dict[int, Run]
    ) -> Finding | None:
        for draw, turn in schedule:
            drawn = self._answers.drawn(self._case, draw)
            run = self._run(call, drawn, self._conditions(draw, turn, level(draw, turn)))
            self._unchecked.update(dict.fromkeys(run.unchecked))
            finding = fault_of(run)
            if finding is None:
                seen = Seen(call, drawn, draw, run, level(draw, turn))
                finding = self._look(seen, first.get(draw))
            if finding is not None:
                return finding
            if turn == 0:
                first[draw] = run
        return None

    def _run(self, call: Call, drawn: Drawn, conditions: Conditions) -> Run:
        """One run; backward only where no block waits for one that then comes later, which no card promises either."""
        run = self._subject.run(call, drawn.values, conditions)
        spins = any(finding.reason is Reason.ENDLESS_LOOP for finding in run.findings)
        if not spins or conditions.order == "forward":
            return run
        self._subject.forward_only = True
        whole = self._setup.protocol.budget_instructions
        straight = msgspec.structs.replace(conditions, order="forward", budget_instructions=whole)
        forward = self._subject.run(call, drawn.values, straight)
        if not forward.findings:
            self._unchecked[_NO_OTHER_ORDER] = None
        return forward

    def after_other_shapes(self, call: Call, first: Run, level: LevelOf) -> Finding | None:
        """Draw 0 once more, after calls of other shapes: its bytes must be those of `first`."""
        values = self._answers.drawn(self._case, 0).values
        run = self._subject.run(call, values, self._conditions(0, 0, level(0, 0)))
        finding = fault_of(run)
        if finding is None and run.outputs != first.outputs:
            detail = f"case {self._case.name}, draw 0: other results than before, after calls of other shapes: "
            return Finding(reason=Reason.NOT_DETERMINISTIC, detail=detail + differences(call, first, run))
        return finding

    def _schedule(self, draws: int) -> Iterator[tuple[int, int]]:
        return ((draw, turn) for turn in range(turns(self._setup.protocol)) for draw in range(draws))

    def _conditions(self, draw: int, turn: int, level: Level) -> Conditions:
        """Odd turns have another poison, another order, and addresses that keep no more than the promised alignment."""
        text = f"{self._setup.seed}\0{self._case.name}\0{draw}\0{turn}"
        order = self._order(draw, turn)
        return Conditions(
            poison="nan" if turn % 2 == 0 else OTHER_POISONS[(draw + turn // 2) % 2],
            offset_bytes=self._setup.contract.alignment_bytes * turn,
            checks=level,
            budget_instructions=self._budget(straight=order == "forward"),
            seed=int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "little"),
            order=order,
            fence="none" if draw != self._fenced_draw else "start" if turn % 2 == 0 else "end",
        )

    def _order(self, draw: int, turn: int) -> Order:
        if turn % 2 == 0 or self._subject.forward_only:
            return "forward"
        return OTHER_ORDERS[(draw + turn // 2) % 2]

    def _budget(self, straight: bool) -> int:
        """Out of order a wait for another block may have no end: it gets what a plain kernel needs many times over."""
        whole = self._setup.protocol.budget_instructions
        if straight:
            return whole
        work = evaluate(self._setup.contract.operations, self._case.dimensions)
        call = self._subject.call(self._setup.contract, self._case.dimensions)
        threads = sum(math.prod((*launch.grid, *launch.block)) for launch in call.launches)
        return min(whole, 100 * work + 4000 * threads + 10_000_000)

    def _look(self, seen: Seen, first: Run | None) -> Finding | None:
        """What is wrong with this run's outputs, beside its twin under the other poison where there is one."""
        if first is not None and self._setup.contract.deterministic:
            if seen.run.outputs == first.outputs:
                return None
            return explain(seen.call, first, seen.run, self._again(seen))
        compared = self._compare(seen)
        wrong = next((c.finding for c in compared if c.finding is not None), None)
        if wrong is None:
            self._note(seen.draw, compared)
            return None
        return self._why_wrong(seen, wrong) if first is None else wrong

    def _compare(self, seen: Seen) -> tuple[Compared, ...]:
        baseline = self._answers.baseline(self._case, seen.draw)
        return compare_all(seen.run, seen.call, seen.drawn.expected, lambda name: baseline[name].measure)

    def _again(self, seen: Seen) -> Again:
        """Further runs, for telling what a disagreement comes from."""

        def run(conditions: Conditions) -> Run:
            return self._subject.run(seen.call, seen.drawn.values, conditions)

        first, second = (self._conditions(seen.draw, turn, seen.level) for turn in (0, 1))
        return Again(
            first=lambda: run(first),
            second_newest=lambda: run(msgspec.structs.replace(second, newest=True)),
            second_forward=lambda: run(msgspec.structs.replace(second, order="forward")),
        )

    def _why_wrong(self, seen: Seen, wrong: Finding) -> Finding:
        """Wrong under the first poison: if another poison gives something else, then that is the reason."""
        other = self._subject.run(seen.call, seen.drawn.values, self._conditions(seen.draw, 1, seen.level))
        if fault_of(other) is not None or other.outputs == seen.run.outputs:
            return wrong
        if self._setup.contract.deterministic:
            return explain(seen.call, seen.run, other, self._again(seen))
        return poison_shows(seen.call, seen.run, other) or wrong

    def _note(self, draw: int, compared: tuple[Compared, ...]) -> None:
        self._draws_compared.add(draw)
        baseline = self._answers.baseline(self._case, draw)
        for c in compared:
            share = baseline[c.output].bound_share
            known = self._errors.get(c.output)
            if known is None or c.bound_share > known.bound_share:
                worst = (c.worst_error, c.worst_index, c.bound_share)
            else:
                worst = (known.worst_error, known.worst_index, known.bound_share)
            self._errors[c.output] = ErrorMeasure(
                output=c.output,
                worst_error=worst[0],
                worst_index=worst[1],
                bound_share=worst[2],
                baseline_share=share if known is None else max(share, known.baseline_share),
            )

    def _result(self, finding: Finding | None, first: Run | None) -> CaseResult:
        verdict = CaseVerdict(
            case=self._case.name,
            dimensions=dict(self._case.dimensions),
            draws=len(self._draws_compared),
            valid=finding is None,
            errors=tuple(self._errors.values()),
            findings=() if finding is None else (finding,),
        )
        return CaseResult(
            verdict=verdict,
            finding=finding,
            unchecked=tuple(self._unchecked),
            first=first,
        )


def turns(protocol: Protocol) -> int:
    """How often each draw is run: at least once under each of the two poisons."""
    return max(2, protocol.repeats)


def fault_of(run: Run) -> Finding | None:
    """The first thing that a run shows beside its outputs; raises `JudgeProblem` where the device was lost."""
    for finding in run.findings:
        if finding.reason is Reason.DEVICE_LOST:
            raise JudgeProblem(f"the device was lost: {finding.detail}; check it (kerneltrial doctor), then run again")
    by_class = sorted(run.findings, key=lambda f: f.reason.reason_class is not ReasonClass.CANDIDATE)
    if by_class:
        return by_class[0]
    if not run.completed:
        raise JudgeProblem("a call did not end, and the device names no reason: this is a fault of the device's code")
    if not run.inputs_intact:
        return Finding(reason=Reason.INPUT_CHANGED, detail="an input's bytes were changed by the call")
    if not run.guards_intact:
        return Finding(reason=Reason.GUARD_OVERWRITTEN, detail="bytes in the margin around a buffer were overwritten")
    if not run.scratch_restored:
        detail = "scratch that the plan calls self_restoring is not zero after the call"
        return Finding(reason=Reason.NOT_DETERMINISTIC, detail=detail)
    return None
