"""Qualification: before any candidate is judged, can each case fail someone, and is the ground sound?

A case that null candidates pass proves nothing about a kernel that passes it; a baseline that fails, or an oracle
that another opinion contradicts, makes every later verdict worthless. All of these stop the trial.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from kerneltrial.devices.device import Conditions, Refused
from kerneltrial.inputs.resolve import PlanProblem
from kerneltrial.inputs.values import draw_names
from kerneltrial.judge.answers import compare_all
from kerneltrial.judge.casework import fault_of
from kerneltrial.judge.disagreement import holds_poison, poison_shows
from kerneltrial.judge.nulls import Null, Nulls
from kerneltrial.judge.same_code import same_code
from kerneltrial.judge.setup import JudgeProblem, Subject
from kerneltrial.judge.validation import Judge
from kerneltrial.records.case import Case
from kerneltrial.records.qualification import COPY_OF_BASELINE, NullCandidate, QualifiedCase, SecondOpinion
from kerneltrial.records.reason import Finding
from kerneltrial.records.record import Digest
from kerneltrial.records.validation import CaseVerdict, Invalid, Unchecked


class QualificationProblem(JudgeProblem):
    """A case, the baseline or the oracle is not fit for a trial: one line that says which, and what would help."""

    is_of_what_is_locked = True


@dataclass(frozen=True)
class Qualified:
    """The judge's part of `records.qualification.Qualification`."""

    cases: tuple[QualifiedCase, ...]
    second_opinion: SecondOpinion
    unchecked: tuple[Finding, ...]


def qualify(judge: Judge, baseline: Digest, reference: Subject | None) -> Qualified:
    """Try the baseline, the null candidates and the second opinion; raises `QualificationProblem`.

    `baseline` names the baseline's source; `reference` is a plain kernel of the trial's owner, run in its own runner.
    """
    verdicts, unchecked = _baseline(judge, baseline)
    cases = tuple(
        QualifiedCase(case=case.name, nulls=_nulls(judge, case), baseline=verdicts[case.name])
        for case in judge.setup.cases.cases
    )
    return Qualified(cases=cases, second_opinion=second_opinion(judge, reference), unchecked=unchecked)


def _baseline(judge: Judge, identity: Digest) -> tuple[dict[str, CaseVerdict], tuple[Finding, ...]]:
    outcome = judge.judge_subject(identity, judge.setup.baseline, judge.cases, screened=False)
    if isinstance(outcome, Invalid):
        raise QualificationProblem(
            f"the baseline fails: {outcome.reason.value}: {outcome.detail}; correct the baseline, its plan, the "
            "oracle or the contract's tolerances"
        )
    if isinstance(outcome, Unchecked):
        raise QualificationProblem(
            f"the baseline cannot be judged on this device: {outcome.reason.value}: {outcome.detail}; take another "
            "device or another baseline"
        )
    return {verdict.case: verdict for verdict in outcome.cases}, outcome.unchecked


def _nulls(judge: Judge, case: Case) -> tuple[NullCandidate, ...]:
    draws = judge.setup.protocol.draws_per_case
    nulls = Nulls(judge.setup, judge.answers, draws)
    tried: dict[str, list[Null]] = {}
    for draw in range(draws):
        for null in nulls.tried(case, draw):
            tried.setdefault(null.name, []).append(null)
    if not tried:
        raise QualificationProblem(f"case {case.name}: every draw is of zeros, so that nothing can be told from them")
    for name, results in tried.items():
        if not any(null.refused for null in results):
            raise QualificationProblem(_blunt(judge, case, name, results))
    return tuple(
        NullCandidate(name=name, draws=len(results), refused=sum(null.refused for null in results))
        for name, results in tried.items()
    )


def _blunt(judge: Judge, case: Case, name: str, results: Sequence[Null]) -> str:
    """One line for a case that a null candidate passes."""
    output = results[0].output
    tolerance = judge.setup.contract.tolerances[output]
    draws = ", ".join(draw_names(case, judge.setup.protocol.draws_per_case))
    error = max(null.error for null in results)
    if error == 0.0:
        help_ = "it is the right answer in every draw: take dimensions or values for which it is not"
    else:
        now = f"now absolute {tolerance.absolute}, relative {tolerance.relative}, scaled {tolerance.scaled}"
        help_ = (
            f"it is at most {error:.3g} off: make tolerances.{output} tighter than that ({now}), or take other values"
        )
    return f"case {case.name} cannot fail a kernel that gives {name} (draws {draws}): {help_}"


def second_opinion(judge: Judge, reference: Subject | None) -> SecondOpinion:
    """Hold the oracle against the reference in every draw of every case; `QualificationProblem` where they differ.

    What agrees with the oracle and is the baseline's own code, which has to agree, says nothing of the oracle.
    """
    if reference is None:
        return SecondOpinion(
            by="nothing", agrees=False, detail="no reference kernel was named, so nothing was compared"
        )
    compared = 0
    for case in judge.setup.cases.cases:
        for draw in range(judge.setup.protocol.draws_per_case):
            _agree(judge, reference, case, draw)
            compared += 1
    if same_code(reference.binary, judge.setup.baseline.binary):
        return SecondOpinion(by="nothing", agrees=False, detail=COPY_OF_BASELINE)
    detail = f"within the contract's tolerances in {compared} draws of {len(judge.setup.cases.cases)} cases"
    return SecondOpinion(by="reference kernel", agrees=True, detail=detail)


def _agree(judge: Judge, reference: Subject, case: Case, draw: int) -> None:
    setup = judge.setup
    drawn = judge.answers.drawn(case, draw)
    conditions = Conditions(poison="nan", checks="bounds", budget_instructions=setup.protocol.budget_instructions)
    try:
        call = reference.call(setup.contract, case.dimensions)
        run = reference.run(call, drawn.values, conditions)
        fault = fault_of(run)
        if fault is None and holds_poison(call, run):  # what agrees with the oracle may have been there before
            again = reference.run(call, drawn.values, replace(conditions, poison="huge"))
            fault = fault_of(again) or poison_shows(call, run, again)
    except (Refused, PlanProblem) as problem:
        raise QualificationProblem(f"the reference kernel does not run in case {case.name}: {problem}") from problem
    if fault is not None:
        raise QualificationProblem(
            f"the reference kernel fails in case {case.name}, draw {draw}: {fault.reason.value}: {fault.detail}; "
            "correct it or its plan: it is no opinion on the oracle as it is"
        )
    found = (c.finding for c in compare_all(run, call, drawn.expected, lambda _: None))
    finding = next((f for f in found if f is not None), None)
    if finding is not None:
        raise QualificationProblem(
            f"oracle and reference kernel disagree in case {case.name}, draw {draw}: {finding.reason.value}: "
            f"{finding.detail}; find out which is right before anything is judged by it"
        )
