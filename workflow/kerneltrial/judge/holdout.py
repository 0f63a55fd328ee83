"""The sealed holdout: cases drawn after the candidate is fixed; one verdict, and nothing else of them leaves here.

What goes wrong on the way is told without what it went wrong on: shapes and values stay out of records, messages and
exceptions (their chains too, since a traceback would print them).
"""

import dataclasses
from typing import Literal

import msgspec

from kerneltrial.devices.device import Binary, DeviceProblem
from kerneltrial.inputs.far import reaches, sealed_far_cases
from kerneltrial.inputs.holdout import draw_holdout, sealed_performance
from kerneltrial.judge.setup import JudgeProblem, JudgeSetup, RunsCalls, Subject
from kerneltrial.judge.validation import Judge, ValidationOutcome
from kerneltrial.records.build import Built
from kerneltrial.records.case import Case, HoldoutDomain
from kerneltrial.records.holdout import HoldoutVerdict
from kerneltrial.records.plan import LaunchPlan
from kerneltrial.records.validation import Invalid, Validated


def judge_holdout(
    setup: JudgeSetup,
    domain: HoldoutDomain,
    salt: bytes,
    candidate: tuple[Built, Binary, LaunchPlan],
    runner: RunsCalls,
) -> HoldoutVerdict:
    """One verdict on cases that nobody saw; raises `JudgeProblem` where judging broke."""
    built, binary, plan = candidate
    problem: str
    try:
        outcome = _judged(setup, domain, salt, Subject(binary=binary, plan=plan, abi=built.abi, runner=runner), built)
    except DeviceProblem as fault:
        problem = f"the device failed ({type(fault).__name__})"
    except Exception as fault:
        problem = f"{type(fault).__name__} in a sealed case"
    else:
        count = domain.count + len(_once(setup, salt, built))
        return HoldoutVerdict(candidate=built.candidate, verdict=_verdict(outcome), cases=count)
    # Raised here, not in the handler: what was caught is no part of this exception's chain.
    raise JudgeProblem(
        f"the holdout of candidate {built.candidate[:12]} could not be judged: {problem}; its words are not "
        "shown, since they could tell of sealed cases; run `kerneltrial doctor`, then the stage again"
    )


def _judged(setup: JudgeSetup, domain: HoldoutDomain, salt: bytes, subject: Subject, built: Built) -> ValidationOutcome:
    """First the drawn shapes, with every draw and check; then, once each, far shapes and the performance shapes.

    Each by a judge of its own: its answers are forgotten with it.
    """
    cases = draw_holdout(domain, setup.contract, salt, built.candidate)
    outcome = Judge(setup).judge_subject(built.candidate, subject, cases)
    if not isinstance(outcome, Validated):
        return outcome
    once = dataclasses.replace(setup, protocol=msgspec.structs.replace(setup.protocol, draws_per_case=1))
    sealed, far = _once(setup, salt, built), _far(setup, salt, built)
    return Judge(once, far).judge_subject(built.candidate, subject, sealed, closely=False) if sealed else outcome


def _once(setup: JudgeSetup, salt: bytes, built: Built) -> list[Case]:
    """Far shapes, and the performance cases on sealed values."""
    return [*_far(setup, salt, built), *sealed_performance(setup.cases, salt, built.candidate)]


def _far(setup: JudgeSetup, salt: bytes, built: Built) -> list[Case]:
    return sealed_far_cases(setup.contract, reaches(setup.contract, setup.cases), salt, built.candidate)


def _verdict(outcome: ValidationOutcome) -> Literal["held", "failed", "unchecked"]:
    if isinstance(outcome, Validated):
        return "held"
    return "failed" if isinstance(outcome, Invalid) else "unchecked"
