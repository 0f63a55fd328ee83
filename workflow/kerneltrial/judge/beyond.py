"""A subject in one case of more than 2**31 elements, where the contract allows one and memory holds it."""

from dataclasses import dataclass
from typing import Final

import msgspec

from kerneltrial.devices.device import DeviceProblem
from kerneltrial.inputs.beyond import ELEMENTS, beyond, bytes_of
from kerneltrial.judge.answers import Answers
from kerneltrial.judge.casework import CaseWork
from kerneltrial.judge.levels import BOUNDS_ALONE
from kerneltrial.judge.setup import JudgeProblem, JudgeSetup, Subject
from kerneltrial.records.case import Case
from kerneltrial.records.reason import Finding, Reason, ReasonClass
from kerneltrial.records.validation import Invalid, Validated

CHECK: Final = "beyond_int32"
_HOST_TIMES: Final = 9  # as many bytes as the arrays have: values, an oracle in float64 with its terms, what is sent
_DEVICE_SHARE: Final = 0.8


@dataclass(frozen=True)
class Room:
    """Bytes that are free on the host, and that the card has; more than `elements` is what is tried."""

    host_bytes: int
    device_bytes: int
    elements: int = ELEMENTS


def beyond_int32(setup: JudgeSetup, subject: Subject, outcome: Validated, room: Room) -> Validated | Invalid:
    """The outcome with that case's word in it; unchanged where the contract ends below."""
    case = beyond(setup.contract, setup.seed, room.elements)
    if case is None:
        return outcome
    absent = _no_room(setup, case, room)
    if absent:
        return _unchecked(outcome, absent)
    answers = Answers(setup, cache_bytes=1 << 62)  # used twice, and forgotten with this call
    try:
        work = CaseWork(setup, answers, subject, case)
        result = work.judge_once(subject.call(setup.contract, case.dimensions), BOUNDS_ALONE.of(case.name))
    except (JudgeProblem, DeviceProblem) as problem:  # the baseline does not run there, or memory did not do
        return _unchecked(outcome, f"{_sizes(case)}: {problem}")
    cases, checks = (*outcome.cases, result.verdict), (*outcome.checks, CHECK)
    if result.finding is None:
        return msgspec.structs.replace(outcome, cases=cases, checks=checks)
    if result.finding.reason.reason_class is not ReasonClass.CANDIDATE:
        return _unchecked(outcome, f"{_sizes(case)}: {result.finding.detail}")
    return Invalid(
        candidate=outcome.candidate,
        reason=result.finding.reason,
        detail=f"case {_sizes(case)}: {result.finding.detail}",
        cases=cases,
        checks=checks,
        unchecked=outcome.unchecked,
    )


def _no_room(setup: JudgeSetup, case: Case, room: Room) -> str:
    whole, _ = bytes_of(setup.contract, case)
    wanted = _HOST_TIMES * whole
    if wanted > room.host_bytes:
        return f"{_sizes(case)} takes {wanted >> 30} GiB of this machine's memory, and {room.host_bytes >> 30} are free"
    if whole > _DEVICE_SHARE * room.device_bytes:
        return f"{_sizes(case)} takes {whole >> 30} GiB of the card's memory, which has {room.device_bytes >> 30}"
    return ""


def _unchecked(outcome: Validated, why: str) -> Validated:
    finding = Finding(reason=Reason.CHECK_ABSENT, detail=f"arrays of more than 2^31 elements: {why}")
    return msgspec.structs.replace(outcome, unchecked=(*outcome.unchecked, finding))


def _sizes(case: Case) -> str:
    sizes = ", ".join(f"{name}={size}" for name, size in case.dimensions.items())
    return f"{case.name} ({sizes})"
