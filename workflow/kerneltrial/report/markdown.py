"""The report as Markdown: verdict, rules, figures and limits, for a pull request or a mail."""

import re
from collections.abc import Iterator

from kerneltrial.decide import amounts
from kerneltrial.records.decision import Payback, Unknown
from kerneltrial.report import words
from kerneltrial.report.amendments import changes, said_of
from kerneltrial.report.inputs import ReportInputs
from kerneltrial.report.not_shown import not_shown
from kerneltrial.report.texts import Say, recorded, sentence_in

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#+|~!&$])")


def markdown(inputs: ReportInputs, say: Say) -> str:
    """The whole text."""
    return "\n".join(_lines(inputs, say)) + "\n"


def escaped(text: str) -> str:
    r"""Text on one line in which nothing is markup.

    >>> escaped("a|b\n<b>*x*")
    'a\\|b \\<b\\>\\*x\\*'
    """
    return _SPECIAL.sub(r"\\\1", words.visible(" ".join(text.split())))


def _lines(inputs: ReportInputs, say: Say) -> Iterator[str]:
    decided = inputs.decision
    yield f"# {decided.outcome}: {escaped(inputs.lock.trial)}"
    yield ""
    yield say(words.MEANING[decided.outcome])
    if decided.example:
        said = "Calls, hours or prices are an example's, not yours:"
        yield f"\n**{say('Example terms.')}** {say(said)} {escaped(inputs.terms.now.why_example)}."
    if decided.post_hoc:
        yield f"\n**{say('Post hoc.')}** {said_of(inputs.terms, say)}\n"
        for number, lines in enumerate(changes(inputs.terms), 1):
            yield f"- {say('Amendment %(n)s', n=number)}: {escaped('; '.join(lines)) or say('nothing')}"
    told = recorded(inputs.language)
    yield ""
    yield f"| {say('Rule')} | {say('Result')} | {say('What was seen')} | {say('What is asked')} |"
    yield "| --- | --- | --- | --- |"
    for rule in words.by_weight(decided.rules):
        result = say(type(rule).__name__.lower())
        more = f" {say('To settle it:')} {escaped(told(rule.settled_by))}." if isinstance(rule, Unknown) else ""
        seen = escaped(sentence_in(inputs.language)(rule.seen)) + more
        yield f"| {say(words.RULES[rule.rule])} | {result} | {seen} | {escaped(told(rule.asked))} |"
    yield ""
    yield from _money(inputs, say)
    yield ""
    yield f"## {say('What this trial does not show')}"
    yield ""
    for missing in not_shown(inputs, say):
        yield f"- {escaped(missing.sentence)}"
        yield from (f"  - {escaped(particular)}" for particular in missing.particulars)


def _money(inputs: ReportInputs, say: Say) -> Iterator[str]:
    paid, mark = inputs.decision.payback, f" ({say('example terms')})" if inputs.decision.example else ""
    yield f"## {say('Costs and payback')}"
    yield ""
    yield f"- {say('the pilot has cost %(usd)s', usd=_usd(paid.pilot_usd))}{mark}"
    if not isinstance(paid, Payback):
        yield f"- {say('Payback')}: {escaped(recorded(inputs.language)(paid.why))}"
        return
    drawn = paid.forecast
    yield f"- {say('Saved a month')}: {_usd(paid.saved_usd_per_month.middle)}{mark}"
    p5, p50, p95 = (amounts.number(months) for months in (drawn.p5, drawn.p50, drawn.p95))
    yield f"- {say('Payback')}: {say('P5 %(p5)s, P50 %(p50)s, P95 %(p95)s months', p5=p5, p50=p50, p95=p95)}{mark}"


def _usd(value: object) -> str:
    from decimal import Decimal

    return escaped(amounts.usd(Decimal(str(value))))
