"""The rule about the application: faster with the winner, or without loss where the saving is too small to see."""

from decimal import Decimal

from kerneltrial.decide.amounts import MS_PER_HOUR, decimal, exactly, number, percent, plural
from kerneltrial.decide.grounds import Grounds
from kerneltrial.decide.saving import confirmed_saving
from kerneltrial.records.confirmation import Confirmed, EndToEnd, EndToEndFailed, NoEndToEnd, Seen
from kerneltrial.records.decision import Failed, Passed, RuleName, RuleResult, Unknown

_RULE: RuleName = "end_to_end_evidence"
_ASKED = "the application saves time with the winner in place of the baseline"


def end_to_end_evidence(grounds: Grounds) -> RuleResult:
    """The application itself is faster with the winner; policy may accept a derived saving where it shows no loss."""
    evidence = grounds.confirmation.end_to_end
    if isinstance(evidence, NoEndToEnd):
        return _unknown(evidence.why, "run the application with both kernels, interleaved (application, end_to_end)")
    if isinstance(evidence, EndToEndFailed):
        return Failed(rule=_RULE, asked=_ASKED, seen=evidence.why, example=False)
    seen = _shown(evidence)
    if grounds.lock.device.kind != "cuda":
        seen = f"{seen}; on the cpu device, which interprets kernels: no evidence of time"
        return _unknown(seen, "run the trial on a machine with the GPU that production uses")
    if evidence.saved_ms.low > 0:
        return Passed(rule=_RULE, asked=_ASKED, seen=seen, example=False)
    if evidence.saved_ms.high < 0:
        return Failed(rule=_RULE, asked=_ASKED, seen=seen, example=False)
    return _derived(grounds, evidence, seen)


def _derived(grounds: Grounds, evidence: EndToEnd, seen: str) -> RuleResult:
    """The runs show neither saving nor loss: calls times latency may stand in, where it is too small to be seen."""
    more = "more end-to-end runs (end_to_end.pairs)"
    expected = expected_ms(grounds, evidence)
    if expected is None:
        return _unknown(seen, f"{more}, in an application that uses the provided loader, so that calls are counted")
    noise = decimal(evidence.saved_ms.high - evidence.saved_ms.low) / 2
    seen += f"; derived from calls × latency: {number(expected)} ms"
    if expected > noise:
        return _unknown(f"{seen}, which these runs should have shown", f"{more}; or find out where the saving is lost")
    if grounds.terms.now.policy.accept_derived:
        seen += ", less than the runs can show; no loss was seen, and the policy accepts a derived saving"
        return Passed(rule=_RULE, asked=_ASKED, seen=seen, example=False)
    return _unknown(f"{seen}, less than the runs can show", f"{more}, or a policy that accepts a derived saving")


def expected_ms(grounds: Grounds, evidence: EndToEnd) -> Decimal | None:
    """Milliseconds an invocation that its calls should save, in the workload's mix; None where calls are not known."""
    outcome, calls = grounds.confirmation.outcome, grounds.terms.now.workload.calls_per_month
    if not isinstance(outcome, Confirmed) or not isinstance(evidence.seen, Seen) or not sum(calls.values()):
        return None
    with exactly():
        a_call = confirmed_saving(calls, outcome).middle * MS_PER_HOUR / sum(calls.values())
        return a_call * decimal(evidence.seen.calls_per_invocation)


def _shown(evidence: EndToEnd) -> str:
    saved = evidence.saved_ms
    return (
        f"{number(saved.middle)} ms saved per invocation ({number(saved.low)} to {number(saved.high)} at "
        f"{percent(decimal(saved.confidence))} confidence, {plural(evidence.processes, 'pair')} of runs) of "
        f"{number(evidence.baseline_ms)} ms"
    )


def _unknown(seen: str, settled_by: str) -> Unknown:
    return Unknown(rule=_RULE, asked=_ASKED, seen=seen, example=False, settled_by=settled_by)
