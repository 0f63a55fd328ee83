"""The page: one HTML file without network, rendered from records. Everything that is put in is escaped."""

import functools
from typing import TYPE_CHECKING, Any

from kerneltrial.decide import amounts
from kerneltrial.records.confirmation import Confirmed, ConfirmedCase
from kerneltrial.records.decision import Payback, Unknown, Winner
from kerneltrial.records.presentation import Language
from kerneltrial.records.profile import Profiled
from kerneltrial.records.reason import Reason
from kerneltrial.records.timing import CaseCounts, CaseLatency, Counted, Timed
from kerneltrial.report import heat, origin, plot, reasons, words
from kerneltrial.report.amendments import changes, lengths, said_of
from kerneltrial.report.files import source_name
from kerneltrial.report.inputs import ReportInputs
from kerneltrial.report.latencies import latencies
from kerneltrial.report.not_shown import not_shown
from kerneltrial.report.shapes import dimensions, shaped
from kerneltrial.report.tables import caught, patterns, rows, totals
from kerneltrial.report.texts import Say, marked_up, plain, recorded, sentence_in

if TYPE_CHECKING:
    import jinja2
    import pandas as pd


def page(inputs: ReportInputs, table: "pd.DataFrame", drawing: str) -> str:
    """The whole page as text."""
    from markupsafe import Markup

    say, map_ = plain(inputs.language), heat.heat(inputs)

    best = inputs.best
    alternative = say(
        "Figure of every attempt and the best so far, in order of attempts; the same figures are in the table."
    )
    return (
        _environment(inputs.language)
        .get_template("page.html.j2")
        .render(
            lock=inputs.lock,
            terms=inputs.terms,
            now=inputs.terms.now,
            decision=inputs.decision,
            confirmation=inputs.confirmation,
            prize=inputs.prize,
            qualification=inputs.qualification,
            costs=inputs.costs,
            clocked=inputs.clocked,
            winner=inputs.decision.winner if isinstance(inputs.decision.winner, Winner) else None,
            best=best,
            best_name=source_name(best) if best else "",
            rules=reasons.rules(inputs, say),
            questions=reasons.questions(inputs, say),
            open=sum(isinstance(rule, Unknown) for rule in inputs.decision.rules),
            next_steps=reasons.next_steps(inputs, say),
            glossary=[(say(word), say(meaning)) for word, meaning in words.glossary(inputs.clocked).items()],
            counts=totals(table),
            attempts=_attempts(table, say),
            patterns=rows(patterns(table)),
            plot=Markup(plot.inline(drawing, alternative)),
            per_case=_per_case(inputs, say),
            profiles=_profiles(inputs),
            price_row=_price_row(inputs),
            tornado=_tornado(inputs),
            amendments=changes(inputs.terms),
            changed_after=said_of(inputs.terms, say),
            only_longer=bool(lengths(inputs.terms)),
            not_shown=not_shown(inputs, say),
            meaning=say(words.MEANING[inputs.decision.outcome]),
            stop=say(words.STOPS[inputs.decision.stop]),
            language=inputs.language,
            heat=Markup(heat.drawing(map_, say)) if map_ else "",
            heat_told=heat.told(map_, say) if map_ else "",
            caught=[{**row, "why": say(words.reason(Reason(row["reason"])))} for row in caught(table)],
            difference=origin.difference(inputs),
        )
    )


def compile_templates(language: Language) -> None:
    """Compile what `page` is made with, so that it finds that done."""
    environment = _environment(language)
    for name in environment.list_templates(extensions=["j2"]):
        environment.get_template(name)


@functools.lru_cache(maxsize=2)
def _environment(language: Language) -> "jinja2.Environment":
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("kerneltrial.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_harmless,
    )
    environment.globals["_"] = marked_up(language)
    environment.filters.update(
        usd=amounts.usd,
        number=amounts.number,
        factor=amounts.factor,
        share=lambda fraction: amounts.percent(amounts.decimal(fraction)),
        plain=amounts.plain,
        plural=amounts.plural,
        short=words.short,
        opened=words.opened,
        sentence=sentence_in(language),
        told=recorded(language),
        kind=lambda value: type(value).__name__,
    )
    return environment


def _harmless(value: Any) -> Any:
    """Every text that is put out, apart from markup made here, shows what it hides."""
    return words.visible(value) if type(value) is str else value


def _attempts(table: "pd.DataFrame", say: Say) -> list[dict[str, Any]]:
    """Rows of the attempts table, with fates and reasons in words."""
    fates = {fate.value: say(text) for fate, text in words.FATES.items()}
    return [
        {
            **row,
            "state": fates[row["fate"]],
            "why": say(words.reason(Reason(row["reason"]))) if row["reason"] else "",
            "parameters": ", ".join(f"{name}\u00a0{value}" for name, value in sorted(row["parameters"].items())),
        }
        for row in rows(table)
    ]


def _per_case(inputs: ReportInputs, say: Say) -> list[dict[str, Any]]:
    """The winner beside the baseline, by performance case: confirmed latencies, else the search's own figures."""
    outcome = inputs.confirmation.outcome
    cases = {case.name: case for case in inputs.lock.cases.cases}
    order = dimensions(inputs.lock.contract)

    def shape(name: str) -> dict[str, str]:
        return {"shape": shaped(cases[name].dimensions, order) if name in cases else ""}

    def row(case: ConfirmedCase | CaseLatency, by: str) -> dict[str, Any]:
        warm = ", ".join(cases[case.case].warm) if case.case in cases else ""
        return {**latencies(case, by, warm, say), **shape(case.case)}

    if isinstance(outcome, Confirmed):
        return [row(case, say("%(n)s fresh processes", n=case.processes)) for case in outcome.cases]
    winner = inputs.decision.winner
    chosen = winner.candidate if isinstance(winner, Winner) else None
    figures = next((s.figures for s in inputs.standings if s.proposed and s.candidate == chosen), None)
    if isinstance(figures, Timed):
        return [row(case, say("the search, not confirmed")) for case in figures.cases]
    return [{**_counted(case), **shape(case.case)} for case in figures.cases] if isinstance(figures, Counted) else []


def _profiles(inputs: ReportInputs) -> list[tuple[str, str]]:
    """What a profiler's counters say of baseline and best, or why there are none; nothing where none were asked for."""
    if inputs.lock.protocol.profile == "none":
        return []
    winner = inputs.decision.winner
    chosen = winner.candidate if isinstance(winner, Winner) else None
    figures = next((s.figures for s in inputs.standings if s.proposed and s.candidate == chosen), None)
    found = [("the baseline", inputs.qualification.profile)]
    if isinstance(figures, Timed):
        found.append(("the best candidate", figures.profile))
    return [
        (name, f"{p.sentence} (case {p.case})" if isinstance(p, Profiled) else f"no counters: {p.why}")
        for name, p in found
    ]


def _price_row(inputs: ReportInputs) -> list[str]:
    """Whose price, of what, where, from which source and day."""
    prices = inputs.terms.now.prices
    return [text for text in (prices.provider, prices.sku, prices.region, prices.source, prices.date) if text]


def _tornado(inputs: ReportInputs) -> list[dict[str, Any]]:
    """The bars of the tornado plot, with their places in per cent of its width."""
    paid = inputs.decision.payback
    if not isinstance(paid, Payback):
        return []
    swings = paid.forecast.swings
    low = min(paid.months_middle, *(swing.months_low for swing in swings))
    high = max(paid.months_middle, *(swing.months_high for swing in swings))
    span = float(high - low) or 1.0
    return [
        {
            "title": words.SWINGS[swing.name],
            "left": f"{100 * float(swing.months_low - low) / span:.1f}",
            "width": f"{100 * float(swing.months_high - swing.months_low) / span:.1f}",
            "middle": f"{100 * float(paid.months_middle - low) / span:.1f}",
            "low": swing.months_low,
            "high": swing.months_high,
        }
        for swing in swings
    ]


def _counted(case: CaseCounts) -> dict[str, Any]:
    counts = case.counts
    return {
        "case": case.case,
        "baseline": amounts.number(case.baseline_score, 4),
        "best": amounts.number(case.score, 4),
        "ratio": case.ratio,
        "counts": {
            **{f"{name.replace('_', ' ')} instructions": count for name, count in sorted(counts.instructions.items())},
            "global memory sectors": counts.global_transactions,
            "shared memory accesses": counts.shared_accesses,
            "shared memory bank conflicts": counts.shared_conflicts,
            "barriers": counts.barriers,
            "blocks": counts.blocks,
            "threads a block": counts.threads_per_block,
            "shared bytes a block": counts.shared_bytes,
        },
    }
