"""Confirm: winner and baseline again, in fresh processes, on fresh values. The decision rests on this alone."""

import contextlib
import dataclasses
import itertools
from collections.abc import Mapping, Sequence

import msgspec

from kerneltrial.decide.winner import choose_winner
from kerneltrial.devices.device import Refused, Samples
from kerneltrial.devices.runner import Runner
from kerneltrial.inputs.holdout import sealed_seed
from kerneltrial.judge.answers import Answers
from kerneltrial.judge.beyond import CHECK as BEYOND
from kerneltrial.judge.validation import Further, Judge, ValidationOutcome
from kerneltrial.measure.confirm import enough, figures
from kerneltrial.measure.roofline import under_floor
from kerneltrial.records.build import Build, Built
from kerneltrial.records.candidate import Candidate
from kerneltrial.records.case import Case, Cases
from kerneltrial.records.confirmation import (
    Confirmation,
    Confirmed,
    EndToEnd,
    EndToEndFailed,
    NoEndToEnd,
    NotTimed,
    NoWinner,
)
from kerneltrial.records.decision import Winner
from kerneltrial.records.proposal import Proposal
from kerneltrial.records.qualification import Qualification
from kerneltrial.records.reason import Finding, Reason
from kerneltrial.records.roofline import NOT_ASKED
from kerneltrial.records.sanitizer import CPU_DEVICE, TOOLS
from kerneltrial.records.validation import Invalid, Unchecked
from kerneltrial.stages.application import applied
from kerneltrial.stages.gathered import judged
from kerneltrial.stages.ground import Ground, binary_of, ground, in_parallel
from kerneltrial.stages.job import Job
from kerneltrial.stages.measuring import (
    CHOICE,
    Asked,
    Drawn,
    Kernel,
    floors_of,
    is_stored,
    performance_cases,
    samples_of,
)
from kerneltrial.stages.room import room_of
from kerneltrial.stages.salt import read_salt
from kerneltrial.stages.sanitizing import sanitizer_of
from kerneltrial.stages.strictly import strictly
from kerneltrial.store.measurements import Stored


def run(job: Job) -> Confirmation:
    """Judge and measure the search's winner again."""
    winner = choose_winner(judged(job))
    if isinstance(winner, NoWinner):
        return Confirmation(outcome=winner)
    candidate, built = _chosen(job, winner)
    with ground(job) as g, contextlib.ExitStack() as children:
        own = children.enter_context(g.runner())  # the baseline's: what is timed is held against its answers too
        own.begin()
        waiting = _begun(g, Kernel(built=built, plan=candidate.plan), children)
        again = _judged_again(g, candidate, built, own)
        findings = again.findings
        if g.lock.device.kind == "cpu":
            counted = NotTimed(
                winner=winner.candidate, ratio=winner.geometric_mean, valid=not findings, findings=findings
            )
            confirmed = Confirmation(outcome=counted)
        else:
            confirmed = _timed_again(g, Kernel(built=built, plan=candidate.plan), again, waiting)
        pair = (_baseline(g), Kernel(built=built, plan=candidate.plan))
        return msgspec.structs.replace(
            confirmed,
            end_to_end=_in_the_application(g, pair, confirmed),
            checks=again.checks,
            unchecked=again.unchecked,
        )


@dataclasses.dataclass(frozen=True)
class Again:
    """What is wrong with the winner on fresh values, and what the dear checks looked at or left open.

    `answers` are those on the fresh values, which the timed launches get too; `own` is the baseline's child.
    """

    findings: tuple[Finding, ...]
    checks: tuple[str, ...]
    unchecked: tuple[Finding, ...]
    answers: Answers
    own: Runner


def _baseline(g: Ground) -> Kernel:
    qualification = g.job.record("qualify", Qualification)
    return Kernel(built=qualification.baseline, plan=qualification.baseline_plan)


def _in_the_application(
    g: Ground, pair: tuple[Kernel, Kernel], confirmed: Confirmation
) -> EndToEnd | EndToEndFailed | NoEndToEnd:
    """A kernel that was not right again is not let into the application."""
    if isinstance(confirmed.outcome, Confirmed | NotTimed) and not confirmed.outcome.valid:
        return NoEndToEnd(why="the application was not run, as the winner was not right again")
    return applied(g, pair)


def _chosen(job: Job, winner: Winner) -> tuple[Candidate, Built]:
    proposals, builds = job.records("propose", Proposal), job.records("build", Build)
    number = winner.iteration - 1
    candidate = next(c for c in proposals[number].candidates if c.id == winner.candidate)
    built = next(b for b in builds[number].candidates if isinstance(b, Built) and b.candidate == winner.candidate)
    return candidate, built


def _judged_again(g: Ground, candidate: Candidate, built: Built, own: Runner) -> Again:
    """The winner judged again, on fresh values and, where the protocol asks for it, by dearer means."""
    qualification = g.job.record("qualify", Qualification)
    with g.runner() as runner, strictly(g, winner=True) as looks, looks.runner() as strict:
        runner.begin()  # devices open while the judge makes ready
        setup = g.setup(g.baseline(qualification, own))
        salt = read_salt(g.job)
        fresh = Cases(cases=tuple(_fresh(case, salt, candidate.id) for case in setup.cases.cases))
        judge = Judge(dataclasses.replace(setup, cases=fresh))
        further = Further(sanitizer_of(g, winner=True), strict, room_of(g), at_once=True)
        with judge.drawing_ahead():
            outcome = judge.judge_candidate(built, binary_of(built, g.job.objects), candidate.plan, runner, further)
    findings, checks, unchecked = _told(outcome, dear=further != Further(at_once=True))
    return Again(findings=findings, checks=checks, unchecked=unchecked, answers=judge.answers, own=own)


def _told(
    outcome: ValidationOutcome, *, dear: bool
) -> tuple[tuple[Finding, ...], tuple[str, ...], tuple[Finding, ...]]:
    """Faults, dear checks, and what they left open. Without dear checks the validation's record says what is open, but
    for what a person must look at: no GO rests on that."""
    findings: tuple[Finding, ...] = ()
    if isinstance(outcome, Invalid | Unchecked):
        findings = (Finding(reason=outcome.reason, detail=outcome.detail),)
    if isinstance(outcome, Unchecked):
        return findings, (), ()
    if not dear:
        return findings, (), tuple(f for f in outcome.unchecked if f.reason is Reason.NEEDS_REVIEW)
    checks = tuple(check for check in outcome.checks if check in (*TOOLS, CPU_DEVICE, BEYOND))
    return findings, checks, outcome.unchecked


def _fresh(case: Case, salt: bytes, winner: str) -> Case:
    """The case with a seed that nobody could know while kernels were proposed; values from files stay what they are."""
    return msgspec.structs.replace(case, seed=sealed_seed(salt, f"confirmation {winner} {case.name}"))


def _begun(g: Ground, winner: Kernel, children: contextlib.ExitStack) -> list[Runner]:
    """The processes of the first look, and before them the one that finds the clock; idle until the winner was judged.

    They open the card while the winner is judged; on `cpu` there are none.
    """
    if g.lock.device.kind == "cpu":
        return []
    found = [children.enter_context(g.runner()) for _ in range(1 + g.lock.protocol.confirmation_processes)]
    if not is_stored(g, (_baseline(g), winner), _fresh_cases(g, winner), Asked(CHOICE)):
        for runner in found:
            runner.begin()
    return found


def _fresh_cases(g: Ground, winner: Kernel) -> list[Case]:
    return [_fresh(case, read_salt(g.job), winner.built.candidate) for case in performance_cases(g)]


def _timed_again(g: Ground, winner: Kernel, again: Again, waiting: Sequence[Runner]) -> Confirmation:
    """Every performance case in several fresh processes, processes outermost, so that drift falls on all cases."""
    answers, findings = again.answers, again.findings
    pair = (_baseline(g), winner)
    cases = _fresh_cases(g, winner)
    drawn: dict[str, list[Stored[Drawn]]] = {case.name: [] for case in cases}
    with contextlib.ExitStack() as children:
        chooser, *first = waiting
        fresh: list[Runner] = []
        chosen = Asked(CHOICE)
        try:
            for process in itertools.count():
                if process == len(fresh):  # as many as the next look wants: opened side by side, timed one by one
                    more = first if process == 0 else [children.enter_context(g.runner()) for _ in range(process)]
                    fresh += more
                    if process == 0 and g.lock.protocol.clock == "auto":
                        if not is_stored(g, pair, cases, Asked(CHOICE)):
                            in_parallel(Runner.device, [chooser, *more], 1 + len(more))
                        chosen = _chosen_in(samples_of(g, pair, cases, answers, Asked(CHOICE, runner=chooser)))
                    if not is_stored(g, pair, cases, dataclasses.replace(chosen, process=process)):
                        in_parallel(Runner.device, more, len(more))
                asked = dataclasses.replace(chosen, process=process, runner=fresh[process])
                for name, stored in samples_of(g, pair, cases, answers, asked).items():
                    drawn[name].append(stored)
                if enough(_samples(drawn), g.lock.protocol):
                    break
            fresh += [chooser, again.own]
            in_parallel(Runner.close, fresh, len(fresh))  # after the last timing, which it would disturb
        except Refused as refused:
            found = (*findings, refused.finding)
            return Confirmation(outcome=NotTimed(winner=winner.built.candidate, ratio=0.0, valid=False, findings=found))
    return _confirmed(g, winner, drawn, findings)


def _chosen_in(chosen: Mapping[str, Stored[Drawn]]) -> Asked:
    """What the clock `auto` came to mean for each case, and which of the vendor's algorithms was the fastest."""
    samples = {name: stored.value.samples for name, stored in chosen.items()}
    places = {name: one.device_state.get("cublas_algorithm_chosen", "") for name, one in samples.items()}
    return Asked(
        CHOICE,
        clocks={name: one.clock for name, one in samples.items()},
        algorithms={name: int(place) for name, place in places.items() if place.isdigit()},
    )


def _confirmed(
    g: Ground, winner: Kernel, drawn: Mapping[str, list[Stored[Drawn]]], findings: tuple[Finding, ...]
) -> Confirmation:
    faults = [fault for stored in drawn.values() for s in stored for fault in s.value.faults]
    floors = floors_of(g)
    digests = {name: [s.digest for s in stored] for name, stored in drawn.items()}
    found = figures(_samples(drawn), digests, g.lock.protocol, floors)
    under = {c.case: under_floor(c.case, c.warm_us, floors.get(c.case, NOT_ASKED)) for c in found.cases}
    outcome = Confirmed(
        winner=winner.built.candidate,
        cases=found.cases,
        geometric_mean=found.geometric_mean,
        looked=found.looked,
        valid=not (findings or faults),
        findings=(*findings, *faults),
        review={name: finding for name, finding in under.items() if finding is not None},
    )
    return Confirmation(outcome=outcome, vendors=found.vendors, vendors_absent=found.vendors_absent)


def _samples(drawn: Mapping[str, list[Stored[Drawn]]]) -> dict[str, list[Samples]]:
    return {name: [s.value.samples for s in stored] for name, stored in drawn.items()}
