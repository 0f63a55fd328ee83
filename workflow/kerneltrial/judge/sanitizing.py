"""What compute-sanitizer's tools say of a subject that passed everything else: checks of their own, on small cases.

A tool slows a kernel down many times over, and each starts a process of its own. So they look at one draw of each case,
cheapest first, as long as a budget of operations lasts; for kernels that a plan launches together at least at their
cheapest case. What was left out is said in words.

What racecheck (2025.3) says of an honest kernel, in which some threads only arrive at a barrier that others wait at, is
a race where there is none. So where a candidate has such barriers its word is doubted: unchecked, and no fault.
"""

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec

from kerneltrial.inputs.expressions import evaluate
from kerneltrial.judge.answers import Answers
from kerneltrial.judge.levels import Sized, by_kernels
from kerneltrial.judge.ptx import statements
from kerneltrial.judge.setup import JudgeSetup, Sanitizes, Subject
from kerneltrial.records.case import Case
from kerneltrial.records.reason import Finding, Reason
from kerneltrial.records.sanitizer import Looked, NotLooked, Sanitized, not_run
from kerneltrial.records.validation import Invalid, Validated

R = TypeVar("R")

BUDGET_OPERATIONS: Final = 40_000_000  # of the cases that are looked at, by the contract's count
ONCE_OPERATIONS: Final = 1_000_000_000  # of a case that is looked at since it is the cheapest of its kernels
_ARRIVES: Final = re.compile(r"\b(?:bar|barrier)(?:\.cta)?\.arrive\b")


@dataclass(frozen=True)
class Looker:
    """Who runs the tools, and the ground that they run on."""

    setup: JudgeSetup
    answers: Answers
    sanitizes: Sanitizes

    def after(
        self, judge: Callable[[], Validated | R], subject: Subject, cases: Sequence[Case], *, at_once: bool
    ) -> Validated | Invalid | R:
        """What `judge` says, with the tools' word where all was right; `at_once` they look while it judges."""
        with ThreadPoolExecutor(1) as pool:
            early = pool.submit(self.look, subject, cases) if at_once else None
            outcome = judge()
            if not isinstance(outcome, Validated):
                return outcome
            return with_word(outcome, *(early.result() if early else self.look(subject, cases)))

    def look(self, subject: Subject, cases: Sequence[Case]) -> tuple[Sanitized, tuple[Finding, ...]]:
        """What the tools say of the subject, and what they did not look at; `with_word` puts that into an outcome."""
        by_name = {case.name: case for case in cases}
        sized = [self._sized(subject, case) for case in cases]
        chosen = choose(sized)
        asked = [(s.case, s.call, self.answers.drawn(by_name[s.case], 0).values) for s in chosen]
        return doubted(self.sanitizes(subject.binary, asked), subject.binary.ptx), _left_out(sized, chosen)

    def _sized(self, subject: Subject, case: Case) -> Sized:
        contract = self.setup.contract
        work = evaluate(contract.operations, case.dimensions)
        return Sized(case=case.name, operations=work, call=subject.call(contract, case.dimensions))


def choose(cases: Sequence[Sized]) -> list[Sized]:
    """Cases to look at, cheapest first."""
    chosen: list[Sized] = []
    for group in by_kernels(cases):
        left = BUDGET_OPERATIONS
        for case in sorted(group, key=lambda c: c.operations):
            left -= case.operations
            is_first = not chosen or chosen[-1].kernels != case.kernels
            if left >= 0 or (is_first and case.operations <= ONCE_OPERATIONS):
                chosen.append(case)
    return chosen


def doubted(said: Sanitized, ptx: str) -> Sanitized:
    """The same, but that races in a kernel with one-sided barriers are no faults, since the tool may be wrong there."""
    if not _ARRIVES.search(ptx) or not any(_ARRIVES.match(statement.opcode) for statement in statements(ptx)):
        return said
    return Sanitized(tools=tuple(map(_doubted, said.tools)))


def _doubted(tool: Looked | NotLooked) -> Looked | NotLooked:
    if not isinstance(tool, Looked) or tool.tool != "racecheck":
        return tool
    words = "; racecheck is known to say so of right kernels where some threads only arrive at a barrier, as here"
    doubts = [Finding(reason=Reason.CHECK_ABSENT, detail=finding.detail + words) for finding in tool.findings]
    return msgspec.structs.replace(tool, findings=(), unchecked=(*tool.unchecked, *doubts))


def with_word(outcome: Validated, said: Sanitized, left_out: tuple[Finding, ...]) -> Validated | Invalid:
    """The outcome with what the tools said: checks that ran, faults, and what stays unchecked and why."""
    looked = [tool for tool in said.tools if isinstance(tool, Looked)]
    findings = [finding for tool in looked for finding in tool.findings]
    checks = (*outcome.checks, *(tool.tool for tool in looked))
    # a device's runs say that no tool looked; here each says it for itself
    unchecked = [f for f in outcome.unchecked if f not in {not_run(tool.tool) for tool in said.tools}]
    unchecked += [not_run(tool.tool, tool.why) for tool in said.tools if not isinstance(tool, Looked)]
    unchecked += [finding for tool in looked for finding in tool.unchecked]
    unchecked += left_out if looked else ()
    if not findings:
        return msgspec.structs.replace(outcome, checks=checks, unchecked=tuple(dict.fromkeys(unchecked)))
    return Invalid(
        candidate=outcome.candidate,
        reason=findings[0].reason,
        detail="; ".join(finding.detail for finding in findings),
        cases=outcome.cases,
        checks=checks,
        unchecked=tuple(dict.fromkeys(unchecked)),
    )


def _left_out(sized: Sequence[Sized], chosen: Sequence[Sized]) -> tuple[Finding, ...]:
    """Which cases the tools did not look at."""
    names = [case.case for case in sized if case not in chosen]
    if not names:
        return ()
    shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    detail = f"what compute-sanitizer would find in {shown}: too large for it"
    return (Finding(reason=Reason.CHECK_ABSENT, detail=detail),)
