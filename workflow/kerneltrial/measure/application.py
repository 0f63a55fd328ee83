"""What runs of the application with both kernels say: milliseconds saved an invocation, with their interval."""

from statistics import median

from kerneltrial.measure.statistics import t_interval
from kerneltrial.records.application import ApplicationRun, ApplicationRuns, EndToEndAsked
from kerneltrial.records.confirmation import EndToEnd, EndToEndFailed, NotSeen, Seen
from kerneltrial.records.record import Digest


def order(pairs: int) -> str:
    """The kernels of all runs in order: A B, B A, A B and so on, so that a steady drift falls out.

    >>> order(3)
    'abbaab'
    """
    return "".join("ab" if pair % 2 == 0 else "ba" for pair in range(pairs))


def end_to_end(
    stored: ApplicationRuns, asked: EndToEndAsked, confidence: float, samples: Digest
) -> EndToEnd | EndToEndFailed:
    """The saving by pairs of runs, with Student's t interval; `samples` is the digest of the stored runs."""
    if stored.failed:
        return EndToEndFailed(why=stored.failed)
    runs = stored.runs
    pairs = [_pair(runs[place], runs[place + 1]) for place in range(0, len(runs), 2)]
    saved = [(before.ms - after.ms) / asked.invocations for before, after in pairs]
    return EndToEnd(
        saved_ms=t_interval(saved, confidence),
        processes=len(pairs),
        baseline_ms=median(before.ms / asked.invocations for before, _ in pairs),
        candidate_ms=median(after.ms / asked.invocations for _, after in pairs),
        measure=asked.measure,
        seen=_seen(runs, asked.invocations),
        samples=samples,
    )


def _pair(one: ApplicationRun, other: ApplicationRun) -> tuple[ApplicationRun, ApplicationRun]:
    """(baseline, winner) of two runs that follow each other."""
    if {one.kernel, other.kernel} != {"a", "b"}:
        raise ValueError("runs of the application come in pairs, one with each kernel")
    return (one, other) if one.kernel == "a" else (other, one)


def _seen(runs: tuple[ApplicationRun, ...], invocations: int) -> Seen | NotSeen:
    if not all(run.calls for run in runs):
        return NotSeen()
    return Seen(
        calls_per_invocation=median(run.calls for run in runs) / invocations,
        baseline_peak_bytes=max(run.peak_bytes for run in runs if run.kernel == "a"),
        candidate_peak_bytes=max(run.peak_bytes for run in runs if run.kernel == "b"),
    )
