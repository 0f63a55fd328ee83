"""What the page says of how the figures were come by: looks, drift, compilers, counters."""

import html
import re
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from trial_pieces import SQUARE, WIDE, Trial, interval, plan, report_inputs
from trial_stories import STORIES, go_shaped

from kerneltrial.records.compilers import CompilerLatency, Compilers, NoCompiler
from kerneltrial.records.confirmation import NoWinner, Throughput
from kerneltrial.records.profile import NoProfile, Profiled
from kerneltrial.records.residency import AsStated
from kerneltrial.report.not_shown import not_shown
from kerneltrial.report.render import contents
from kerneltrial.report.texts import plain

GO = go_shaped()


def page(trial: Trial) -> str:
    return " ".join(html.unescape(contents(report_inputs(trial))["report.html"].decode()).split())


def with_confirmed(**changes: Any) -> Trial:
    outcome = msgspec.structs.replace(GO.confirmation.outcome, **changes)
    return trial(confirmation=msgspec.structs.replace(GO.confirmation, outcome=outcome))


def trial(**changes: Any) -> Trial:
    return Trial(**{**{name: getattr(GO, name) for name in Trial.__dataclass_fields__}, **changes})


@pytest.mark.parametrize(
    ("narrow", "processes", "said"),
    [
        (True, 5, "it ended after 5. Every speedup over the baseline was then known to 0.25 %"),
        (
            False,
            10,
            "it ended after 10. It was the last that the protocol allows; not every speedup was known that closely",
        ),
    ],
)
def test_where_a_confirmation_ended_and_why(narrow: bool, processes: int, said: str) -> None:
    looked = msgspec.structs.replace(GO.confirmation.outcome.looked, narrow=narrow, processes=processes)
    text = page(with_confirmed(looked=looked))
    assert "lets a confirmation end after 5 or 10 processes" in text
    assert said in text
    assert "Student's t at 96.4 %, so that they hold at 95 %" in text


def test_a_ratio_that_moved_is_told_beside_its_case_and_a_steady_one_is_not() -> None:
    square, wide = GO.confirmation.outcome.cases
    assert "the speedup moved by" not in page(GO)
    moving = msgspec.structs.replace(wide, drift=interval(1.02, 0.005))
    assert page(with_confirmed(cases=(square, moving))).count("the speedup moved by 1.020×") == 1


def test_what_a_short_call_takes_among_many_is_told() -> None:
    square, wide = GO.confirmation.outcome.cases
    assert "of many in a graph" not in page(GO)
    short = msgspec.structs.replace(square, throughput=Throughput(candidate_us=2.15, baseline_us=2.4))
    assert "one call of many in a graph takes 2.150 µs, the baseline's 2.400 µs" in page(
        with_confirmed(cases=(short, wide))
    )


def test_cold_calls_stand_beside_the_warm_ones() -> None:
    square, wide = GO.confirmation.outcome.cases
    cold = msgspec.structs.replace(square, cold_us=9.5, baseline_cold_us=12.25)
    text = page(with_confirmed(cases=(cold, wide)))
    assert '"Cold, baseline, µs">12.25</td>' in text
    assert '"Cold, best, µs">9.500</td>' in text


def test_calls_that_find_the_l2_as_stated_stand_beside_warm_and_cold_ones() -> None:
    square, wide = GO.confirmation.outcome.cases
    assert "all else in memory" not in page(GO)
    found = AsStated(us=8.5, baseline_us=11.25, speedup=interval(1.324, 0.01), process_ratios=(1.324,) * 5)
    changed = with_confirmed(cases=(msgspec.structs.replace(square, stated=found), wide))
    cases = tuple(
        msgspec.structs.replace(case, residency={"b": "warm", "a": "cold"}) if case.name == SQUARE else case
        for case in GO.lock.cases.cases
    )
    lock = msgspec.structs.replace(GO.lock, cases=msgspec.structs.replace(GO.lock.cases, cases=cases))
    text = page(trial(confirmation=changed.confirmation, lock=lock))
    assert text.count("with b in the L2 and all else in memory 8.500 µs, the baseline's 11.25 µs (1.324×)") == 1


@pytest.mark.parametrize(("clock", "said"), [("graph", "timed in CUDA graphs"), ("cupti", "timed on a stream")])
def test_how_plans_of_several_launches_were_launched_is_told(clock: str, said: str) -> None:
    cases = tuple(msgspec.structs.replace(case, clock=clock) for case in GO.confirmation.outcome.cases)
    text = page(with_confirmed(cases=cases))  # its winner adds parts up in a second launch
    assert text.count("a plan of several launches takes as long") == 1
    assert said in text


def test_it_is_told_of_the_baseline_too_and_not_where_all_plans_have_one_launch() -> None:
    of_two = msgspec.structs.replace(GO.qualification, baseline_plan=plan(64, 2))
    without_a_winner = report_inputs(trial(decision=msgspec.structs.replace(GO.decision, winner=NoWinner(why="none"))))
    assert without_a_winner.best is None
    told = [
        [one.sentence for one in not_shown(replace(without_a_winner, qualification=qualified), plain("en"))]
        for qualified in (GO.qualification, of_two)
    ]
    assert [any("a plan of several launches" in sentence for sentence in one) for one in told] == [False, True]


def test_compilers_stand_beside_the_baseline_or_say_why_not() -> None:
    entries = (
        CompilerLatency(name="torch_eager", version="2.99", cases={SQUARE: 8.5, WIDE: 11.0}),
        NoCompiler(name="torch_compile", why="no C compiler here"),
    )
    assert "Beside compilers" not in page(GO)
    qualified = msgspec.structs.replace(GO.qualification, compilers=Compilers(entries=entries))
    text = page(trial(qualification=qualified))
    assert f"torch eager (2.99): {SQUARE} 8.50 µs, {WIDE} 11.0 µs" in text
    assert "torch compile: not measured: no C compiler here" in text


def test_counters_are_told_in_a_sentence_where_they_were_asked_for() -> None:
    profile = Profiled(case=SQUARE, counters={}, sentence="bound by DRAM at 91 % of the peak")
    qualified = msgspec.structs.replace(GO.qualification, profile=profile)
    assert "bound by DRAM" not in page(trial(qualification=qualified))  # nobody asked
    asked = msgspec.structs.replace(GO.lock, protocol=msgspec.structs.replace(GO.lock.protocol, profile="ncu"))
    text = page(trial(qualification=qualified, lock=asked))
    assert f"the baseline: bound by DRAM at 91 % of the peak (case {SQUARE})" in text
    assert "the best candidate: no counters: not asked for" in text
    absent = msgspec.structs.replace(GO.qualification, profile=NoProfile(why="ncu is not on the PATH"))
    assert "the baseline: no counters: ncu is not on the PATH" in page(trial(qualification=absent, lock=asked))


@pytest.mark.parametrize(
    ("story", "figures"),
    [
        ("go", ["Speedup of the best candidate: **1.318×**", "Saved a month: **\\$65.86**", "**5.05 months**"]),
        ("cpu", ["Counts, baseline over best candidate: **", "Payback of the pilot: **not known**"]),
        ("failures", ["Speedup of the best candidate: **none**", "Payback of the pilot: **not known**"]),
    ],
)
def test_the_markdown_has_the_three_figures_before_the_rules(story: str, figures: list[str]) -> None:
    text = contents(report_inputs(STORIES[story]()))["report.md"].decode()
    top = text[: text.index("| Rule |")]
    assert all(figure in top for figure in figures), top


def test_the_tornado_shows_where_the_payback_lies_as_it_is() -> None:
    text = contents(report_inputs(STORIES["go"]()))["report.html"].decode()
    bars = re.findall(r'margin-left:([\d.]+)%;width:([\d.]+)%"></span><span class="middle" style="left:([\d.]+)%', text)
    assert len(bars) >= 3
    assert len({middle for _, _, middle in bars}) == 1
    assert all(float(left) <= float(middle) <= float(left) + float(width) + 0.2 for left, width, middle in bars)
