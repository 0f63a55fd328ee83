"""What the trial does not show: said in the report, so that nobody reads more into it than there is."""

from collections.abc import Iterator

from kerneltrial.records.confirmation import Confirmed, NoEndToEnd
from kerneltrial.records.decision import Unknown, Winner
from kerneltrial.records.prize import KnownPrize
from kerneltrial.records.reason import Finding
from kerneltrial.records.validation import Validated
from kerneltrial.report import words
from kerneltrial.report.inputs import ReportInputs


def not_shown(inputs: ReportInputs) -> tuple[str, ...]:
    """One sentence each, the weightiest first; the same finding is said once."""
    return tuple(dict.fromkeys((*_always(inputs), *_by_evidence(inputs), *_by_terms(inputs), *_unchecked(inputs))))


def _always(inputs: ReportInputs) -> Iterator[str]:
    cases, sealed = len(inputs.lock.cases.cases), inputs.lock.holdout_count
    yield (
        f"That a kernel is right on every input. It was compared with the oracle on {cases} public and {sealed} sealed "
        "cases; agreement there is evidence, not a proof."
    )
    if inputs.clocked:
        yield (
            f"How fast a kernel is elsewhere: on a card other than this {inputs.lock.device.name}, with another "
            "driver, in other shapes, or beside other work on the same card."
        )
    else:
        yield (
            "How fast any kernel is. The cpu device interprets kernels and counts what they do; counts rank "
            "candidates, and a GPU may rank them otherwise."
        )


def _by_evidence(inputs: ReportInputs) -> Iterator[str]:
    confirmation = inputs.confirmation
    if isinstance(confirmation.end_to_end, NoEndToEnd):
        yield "That an application gets faster. None was run; a kernel's share of it is not known here."
    if not confirmation.vendors:
        yield "How the best kernel compares with a vendor's library. None was timed."
    if isinstance(confirmation.outcome, Confirmed) or isinstance(inputs.prize.prize, KnownPrize):
        yield "How close a kernel comes to what the card can do. No roofline was measured on it."
    if any(isinstance(rule, Unknown) and rule.rule == "reviewer_receipt" for rule in inputs.decision.rules):
        yield (
            "That the records are the first and only ones. They are linked by digests, so a change shows; nobody "
            "outside the trial has signed for them, so they could have been made anew as a whole."
        )


def _by_terms(inputs: ReportInputs) -> Iterator[str]:
    if inputs.decision.example:
        yield "That a better kernel would pay for you. Calls, hours and prices are the shipped example's."
    if inputs.decision.post_hoc:
        yield "That the thresholds were fixed before the results were known. The terms were changed after the lock."


def _unchecked(inputs: ReportInputs) -> Iterator[str]:
    for finding in inputs.qualification.unchecked:
        yield _open("Of the baseline", finding)
    winner = inputs.decision.winner
    if isinstance(winner, Winner):
        entries = (entry for iteration in inputs.iterations for entry in iteration.validation.candidates)
        for entry in entries:
            if isinstance(entry, Validated) and entry.candidate == winner.candidate:
                yield from (_open("Of the best candidate", finding) for finding in entry.unchecked)


def _open(whose: str, finding: Finding) -> str:
    return f"{whose}: {words.reason(finding.reason)}. {finding.detail}"
