"""What the trial does not show: said in the report, so that nobody reads more into it than there is."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kerneltrial.records.confirmation import Confirmation, Confirmed, EndToEnd
from kerneltrial.records.decision import Unknown, Winner
from kerneltrial.records.prize import KnownPrize
from kerneltrial.records.qualification import BaselineLatency
from kerneltrial.records.reason import Finding
from kerneltrial.records.roofline import Ceilings, Share
from kerneltrial.records.sanitizer import BETWEEN_BLOCKS, CPU_DEVICE, TOOLS, not_run
from kerneltrial.records.validation import Validated
from kerneltrial.report import words
from kerneltrial.report.amendments import lengths
from kerneltrial.report.inputs import ReportInputs
from kerneltrial.report.texts import Say, recorded
from kerneltrial.report.tried import domain_tried


@dataclass(frozen=True)
class NotShown:
    """One thing that the trial does not show, with its particulars where it has some."""

    sentence: str
    particulars: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """The first of its sentences: what is not shown."""
        return self.sentence if not self.rest else self.sentence.removesuffix(self.rest).rstrip()

    @property
    def rest(self) -> str:
        """The sentences after the first: why."""
        return self.sentence.partition(". ")[2]


def not_shown(inputs: ReportInputs, say: Say) -> tuple[NotShown, ...]:
    """The weightiest first; the same particular is said once."""
    tried = map(recorded(inputs.language), _tried(inputs))
    sentences = (*_always(inputs, say), *tried, *_by_evidence(inputs, say), *_by_terms(inputs, say))
    return (*map(NotShown, sentences), *_unchecked(inputs, say))


def _always(inputs: ReportInputs, say: Say) -> Iterator[str]:
    valid = _winner_validated(inputs)
    cases, sealed = len(valid.cases if valid else inputs.lock.cases.cases), inputs.lock.holdout_count
    yield say(
        "That a kernel is right on every input. It was compared with the oracle on %(cases)s public and %(sealed)s "
        "sealed cases; agreement there is evidence, not a proof.",
        cases=cases,
        sealed=sealed,
    )
    if inputs.clocked:
        yield say(
            "How fast a kernel is elsewhere: on a card other than this %(card)s, with another driver, in other shapes, "
            "or beside other work on the same card.",
            card=inputs.lock.device.name,
        )
        if inputs.best and any(scratch.initial == "uninitialised" for scratch in inputs.best.plan.scratch):
            yield say(
                "That no timed call profits from an earlier one through scratch of its own. Uninitialised scratch is "
                "filled before each reading; within one batch of calls it keeps what they leave."
            )
        if _of_several_launches(inputs):
            yield _launched_otherwise(inputs, say)
    else:
        yield say(
            "How fast any kernel is. The cpu device interprets kernels and counts what they do; counts rank "
            "candidates, and a GPU may rank them otherwise."
        )


def _of_several_launches(inputs: ReportInputs) -> bool:
    """Whether a call of the baseline or of the best candidate is more than one launch, for some shape."""
    plans = [inputs.qualification.baseline_plan, *([inputs.best.plan] if inputs.best else [])]
    return any(len(variant.launches) > 1 for plan in plans for variant in plan.variants)


def _launched_otherwise(inputs: ReportInputs, say: Say) -> str:
    """A plan of two launches took a tenth longer on a stream than in a graph (workflow/adr/0006-clocks.md)."""
    outcome = inputs.confirmation.outcome
    clocks = {case.clock for case in outcome.cases} if isinstance(outcome, Confirmed) else {"graph"}
    if clocks == {"graph"}:
        return say(
            "That a plan of several launches takes as long when it is launched on a stream. It was timed in CUDA "
            "graphs, where launches follow each other more closely."
        )
    return say(
        "That a plan of several launches takes as long in a CUDA graph, where launches follow each other more "
        "closely. It was timed on a stream."
    )


def _tried(inputs: ReportInputs) -> Iterator[str]:
    """Dimensions and values: those that the winner ran with, or the baseline where there is no winner."""
    valid = _winner_validated(inputs)
    if valid:
        yield from domain_tried(inputs.lock, valid.cases, "the best candidate")
    else:
        verdicts = tuple(case.baseline for case in inputs.qualification.cases)
        yield from domain_tried(inputs.lock, verdicts, "the baseline")


def _by_evidence(inputs: ReportInputs, say: Say) -> Iterator[str]:
    confirmation = inputs.confirmation
    if not (isinstance(confirmation.end_to_end, EndToEnd) and inputs.clocked):
        yield say("That an application gets faster. None was run on a GPU; a kernel's share of it is not known here.")
    if not confirmation.vendors:
        yield say("How the best kernel compares with a vendor's library. None was timed.")
    if _without_roofline(inputs):
        yield say("How close a kernel comes to what the card can do. No roofline was measured on it.")
    if any(isinstance(rule, Unknown) and rule.rule == "reviewer_receipt" for rule in inputs.decision.rules):
        yield say(
            "That the records are the first and only ones. They are linked by digests, so a change shows; nobody "
            "outside the trial has signed for them, so they could have been made anew as a whole."
        )


def _without_roofline(inputs: ReportInputs) -> bool:
    """Latencies are known, and what the card can do is not."""
    outcome, performance = inputs.confirmation.outcome, inputs.qualification.performance
    if isinstance(outcome, Confirmed):
        return not all(isinstance(case.limit, Share) for case in outcome.cases)
    known = isinstance(performance, BaselineLatency) and isinstance(performance.ceilings, Ceilings)
    return isinstance(inputs.prize.prize, KnownPrize) and not known


def _by_terms(inputs: ReportInputs, say: Say) -> Iterator[str]:
    if inputs.decision.example:
        why = inputs.terms.now.why_example
        yield say("That a better kernel would pay for you. Calls, hours or prices are an example's: %(why)s.", why=why)
    if inputs.decision.post_hoc and lengths(inputs.terms):
        yield say("That the number of attempts was fixed before the results were known. It was changed after the lock.")
    elif inputs.decision.post_hoc:
        yield say(
            "That the thresholds were fixed before the results were known. The terms were changed after the lock."
        )


def _unchecked(inputs: ReportInputs, say: Say) -> Iterator[NotShown]:
    """Checks that did not run: on the best candidate, and those that only the baseline was spared."""
    valid = _winner_validated(inputs)
    of_best = _details(of_winner(valid, inputs.confirmation)) if valid else ()
    of_baseline = tuple(detail for detail in _details(inputs.qualification.unchecked) if detail not in of_best)
    if of_best:
        yield NotShown(say("That the best candidate is free of faults that were not looked for here:"), of_best)
    if of_baseline:
        yield NotShown(say("That the baseline is free of faults that were not looked for here:"), of_baseline)


def of_winner(valid: Validated, confirmation: Confirmation) -> Iterable[Finding]:
    """What is open after the confirmation too, where compute-sanitizer was asked there."""
    if not (confirmation.checks or confirmation.unchecked):
        return valid.unchecked
    asked = {not_run(tool) for tool in TOOLS} | ({BETWEEN_BLOCKS} if CPU_DEVICE in confirmation.checks else set())
    return (*(finding for finding in valid.unchecked if finding not in asked), *confirmation.unchecked)


def _details(findings: Iterable[Finding]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(finding.detail or words.reason(finding.reason) for finding in findings))


def _winner_validated(inputs: ReportInputs) -> Validated | None:
    winner = inputs.decision.winner
    if not isinstance(winner, Winner):
        return None
    entries = (entry for iteration in inputs.iterations for entry in iteration.validation.candidates)
    return next((e for e in entries if isinstance(e, Validated) and e.candidate == winner.candidate), None)
