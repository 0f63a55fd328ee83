"""Time: how long each valid candidate takes, beside the baseline in one process; on `cpu`, what it costs in counts."""

import contextlib
import functools
import threading
from collections.abc import Callable, Sequence

import msgspec

from kerneltrial.devices.device import Refused
from kerneltrial.devices.runner import Runner
from kerneltrial.judge.answers import Answers
from kerneltrial.judge.validation import Judge
from kerneltrial.measure.rounds import case_counts, case_latency
from kerneltrial.measure.statistics import geometric_mean
from kerneltrial.records.build import Built
from kerneltrial.records.candidate import Candidate
from kerneltrial.records.qualification import Qualification
from kerneltrial.records.roofline import NOT_ASKED
from kerneltrial.records.timing import Counted, Timed, Timing, Untimed
from kerneltrial.records.validation import SkippedCandidate, Validated, Validation
from kerneltrial.stages.ground import Ground, candidates_and_builds, ground, in_parallel
from kerneltrial.stages.job import Job
from kerneltrial.stages.measuring import (
    Asked,
    Kernel,
    counts_of,
    floors_of,
    is_stored,
    performance_cases,
    samples_of,
    timed_draws,
)
from kerneltrial.stages.passed import skipped_after
from kerneltrial.stages.profiling import profile_of

Outcome = Timed | Counted | Untimed
_AT_ONCE = 16  # contexts on the card: each takes about half a gigabyte


def run(job: Job) -> Timing:
    """Measure the valid candidates; the others are skipped."""
    verdicts = {v.candidate: v for v in job.record("validate", Validation).candidates}
    pairs = candidates_and_builds(job)
    valid = [(c, b) for c, b in pairs if b is not None and isinstance(verdicts[c.id], Validated)]
    measured: dict[str, Outcome] = {}
    if valid:
        qualification = job.record("qualify", Qualification)
        baseline = Kernel(built=qualification.baseline, plan=qualification.baseline_plan)
        with ground(job, shelved=True) as g:
            if g.lock.device.kind == "cpu":
                outcomes: Sequence[Outcome] = _counted(g, baseline, valid)
            else:
                outcomes = _best_profiled(g, valid, _timed(g, baseline, valid))
        measured = {outcome.candidate: outcome for outcome in outcomes}
    entries: list[Outcome | SkippedCandidate] = []
    for candidate, _ in pairs:
        entries.append(measured.get(candidate.id) or skipped_after(verdicts[candidate.id]))
    return Timing(candidates=tuple(entries))


def _counted(g: Ground, baseline: Kernel, valid: list[tuple[Candidate, Built]]) -> list[Counted | Untimed]:
    """Counts do not disturb each other, so candidates are counted side by side."""

    def one(pair: tuple[Candidate, Built]) -> Counted | Untimed:
        candidate, built = pair
        kernel = Kernel(built=built, plan=candidate.plan)
        try:
            own = counts_of(g, kernel, performance_cases(g))
        except Refused as refused:
            return Untimed(candidate=candidate.id, reason=refused.finding.reason, detail=refused.finding.detail)
        cases = tuple(case_counts(name, own[name].value, base[name].value, own[name].digest) for name in own)
        mean = geometric_mean([case.ratio for case in cases])
        return Counted(candidate=candidate.id, cases=cases, geometric_mean=mean)

    base = counts_of(g, baseline, performance_cases(g))  # stored at qualification
    return in_parallel(one, valid, len(valid))


def _timed(g: Ground, baseline: Kernel, valid: list[tuple[Candidate, Built]]) -> list[Timed | Untimed]:
    """One process a candidate; as many as a card has room for are open at once."""
    pairs = [(baseline, Kernel(built=b, plan=c.plan)) for c, b in valid]
    with g.runner() as runner:

        @functools.cache
        def answers() -> Answers:
            qualification = g.job.record("qualify", Qualification)
            return Judge(g.setup(g.baseline(qualification, runner), qualification)).answers

        waves = [pairs[first : first + _AT_ONCE] for first in range(0, len(pairs), _AT_ONCE)]
        return [outcome for wave in waves for outcome in _wave(g, wave, answers)]


def _wave(
    g: Ground, pairs: Sequence[tuple[Kernel, Kernel]], answers: Callable[[], Answers]
) -> Sequence[Timed | Untimed]:
    """Processes are opened side by side, then timed one after another: only one may use the card."""
    with contextlib.ExitStack() as children:
        fresh = [children.enter_context(g.runner()) for _ in pairs]
        missing = [r for r, p in zip(fresh, pairs, strict=True) if not is_stored(g, p, performance_cases(g), Asked())]
        for child in missing:
            child.begin()
        ready = answers()  # while devices open, as what follows
        if missing:
            ready.draw_ahead(timed_draws(g), threading.Event())
        in_parallel(lambda child: child.device(), missing, len(fresh))
        found = [_time(g, pair, ready, child) for child, pair in zip(fresh, pairs, strict=True)]
        in_parallel(Runner.close, fresh, len(fresh))  # after the last timing, which it would disturb
        return found


def _best_profiled(
    g: Ground, valid: list[tuple[Candidate, Built]], outcomes: list[Timed | Untimed]
) -> list[Timed | Untimed]:
    """The outcomes, the best of them with a profiler's counters where the protocol asks for these."""
    best = max((o for o in outcomes if isinstance(o, Timed)), key=lambda timed: timed.geometric_mean, default=None)
    if best is None or g.lock.protocol.profile == "none":
        return outcomes
    kernel = next(Kernel(built=b, plan=c.plan) for c, b in valid if c.id == best.candidate)
    profiled = msgspec.structs.replace(best, profile=profile_of(g, kernel))
    return [profiled if outcome is best else outcome for outcome in outcomes]


def _time(g: Ground, pair: tuple[Kernel, Kernel], answers: Answers, child: Runner) -> Timed | Untimed:
    candidate = pair[1].built.candidate
    try:
        found = samples_of(g, pair, performance_cases(g), answers, Asked(runner=child))
    except Refused as refused:
        return Untimed(candidate=candidate, reason=refused.finding.reason, detail=refused.finding.detail)
    faults = [fault for stored in found.values() for fault in stored.value.faults]
    if faults:
        return Untimed(candidate=candidate, reason=faults[0].reason, detail=faults[0].detail)
    confidence = float(g.lock.protocol.confidence)
    floors = floors_of(g)
    cases = tuple(
        case_latency(name, s.value.samples, s.digest, confidence, floors.get(name, NOT_ASKED))
        for name, s in found.items()
    )
    mean = geometric_mean([case.speedup.middle for case in cases])
    return Timed(candidate=candidate, cases=cases, geometric_mean=mean)
