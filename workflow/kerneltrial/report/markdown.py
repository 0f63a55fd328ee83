"""The report as Markdown: verdict, rules, figures and limits, for a pull request or a mail."""

import re
from collections.abc import Iterator

from kerneltrial.decide import amounts
from kerneltrial.records.confirmation import Confirmed, NotTimed
from kerneltrial.records.decision import Payback, PaybackNever
from kerneltrial.report import words
from kerneltrial.report.amendments import changes, said_of
from kerneltrial.report.inputs import ReportInputs
from kerneltrial.report.not_shown import not_shown
from kerneltrial.report.reasons import next_steps, questions
from kerneltrial.report.texts import Say, recorded

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#+|~!&$])")

_NOT_AGAIN = "it was not right again there, so the figure counts for nothing"


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
    yield ""
    yield from _figures(inputs, say)
    yield ""
    yield from _next(inputs, say)
    yield from _reasons(inputs, say)
    yield from _money(inputs, say)
    yield ""
    yield f"## {say('What this trial does not show')}"
    yield ""
    for missing in not_shown(inputs, say):
        yield f"- {escaped(missing.sentence)}"
        yield from (f"  - {escaped(particular)}" for particular in missing.particulars)


def _next(inputs: ReportInputs, say: Say) -> Iterator[str]:
    """What to do, where the verdict leaves something to do."""
    steps = next_steps(inputs, say) if inputs.decision.outcome == "INCONCLUSIVE" else []
    if steps:
        yield f"## {say('What to do next')}"
        yield ""
        for number, step in enumerate(steps, 1):
            settled = say("settles: %(rules)s", rules="; ".join(step["rules"]))
            yield f"{number}. {escaped(words.opened(step['step']))} ({escaped(settled)})"
        yield ""


def _reasons(inputs: ReportInputs, say: Say) -> Iterator[str]:
    """The rules, question by question as on the page."""
    yield f"## {say('Reasons')}"
    yield ""
    for question in questions(inputs, say):
        yield f"### {question['title']} {say(question['result'])}, {question['told']}"
        yield ""
        yield f"| {say('Rule')} | {say('Result')} | {say('What was seen')} | {say('What is asked')} |"
        yield "| --- | --- | --- | --- |"
        for rule in question["rules"]:
            open_ = rule["settled_by"] and inputs.decision.outcome != "INCONCLUSIVE"
            more = f" {say('To settle it:')} {escaped(rule['settled_by'])}." if open_ else ""
            seen = escaped(rule["seen"]) + more
            yield f"| {rule['title']} | {say(rule['result'])} | {seen} | {escaped(rule['asked'])} |"
        yield ""


def _figures(inputs: ReportInputs, say: Say) -> Iterator[str]:
    """The three figures that the page shows on top."""
    outcome, paid, example = inputs.confirmation.outcome, inputs.decision.payback, inputs.decision.example
    told, mark = recorded(inputs.language), f" ({say('example terms')})" if example else ""
    wrong = "" if getattr(outcome, "valid", True) else _NOT_AGAIN
    again = f"; {say(wrong)}" if wrong else ""
    match outcome:
        case Confirmed(geometric_mean=mean):
            ends = {"low": amounts.factor(mean.low), "high": amounts.factor(mean.high)}
            sure = amounts.percent(amounts.decimal(mean.confidence))
            more = say("%(low)s to %(high)s at %(confidence)s confidence, in fresh processes", **ends, confidence=sure)
            yield f"- {say('Speedup of the best candidate')}: **{amounts.factor(mean.middle)}** ({more}{again})"
        case NotTimed(ratio=ratio) if not inputs.clocked:
            more = say("a ratio of weighted counts, not a speedup: there is no GPU here")
            yield f"- {say('Counts, baseline over best candidate')}: **{amounts.factor(ratio)}** ({more}{again})"
        case NotTimed():
            yield f"- {say('Speedup of the best candidate')}: **{say('not measured')}**"
        case _:
            yield f"- {say('Speedup of the best candidate')}: **{say('none')}** ({escaped(told(outcome.why))})"
    if isinstance(paid, Payback):
        yield f"- {say('Saved a month')}: **{_usd(paid.saved_usd_per_month.middle)}**{mark}"
        months = say("%(months)s months", months=amounts.number(paid.months_middle))
        allowed = say("at most %(horizon)s are allowed", horizon=amounts.plain(paid.horizon_months))
        yield f"- {say('Payback of the pilot')}: **{months}** ({allowed}){mark}"
    else:
        known = say("never") if isinstance(paid, PaybackNever) else say("not known")
        yield f"- {say('Payback of the pilot')}: **{known}** ({escaped(told(paid.why))})"


def _money(inputs: ReportInputs, say: Say) -> Iterator[str]:
    paid, mark = inputs.decision.payback, f" ({say('example terms')})" if inputs.decision.example else ""
    yield f"## {say('Costs and payback')}"
    yield ""
    yield f"- {say('the pilot has cost %(usd)s', usd=_usd(paid.pilot_usd))}{mark}"
    if not isinstance(paid, Payback):
        yield f"- {say('Payback')}: {escaped(recorded(inputs.language)(paid.why))}"
        return
    drawn = paid.forecast
    sure = say(
        "%(share)s of %(draws)s simulated futures pay back within %(horizon)s months: half of them within %(p50)s "
        "months, 95 of 100 within %(p95)s, the quickest 5 within %(p5)s.",
        share=amounts.percent(drawn.within_horizon),
        draws=f"{drawn.draws:,}",
        horizon=amounts.plain(paid.horizon_months),
        **{name: amounts.number(getattr(drawn, name)) for name in ("p5", "p50", "p95")},
    )
    yield f"- {say('Payback')}: {sure}{mark}"


def _usd(value: object) -> str:
    from decimal import Decimal

    return escaped(amounts.usd(Decimal(str(value))))
