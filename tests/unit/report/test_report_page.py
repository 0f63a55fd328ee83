"""The page: complete, harmless, honest about example terms and amendments, the same bytes for the same records."""

import dataclasses
import errno
import html
import json
import os
import re
import subprocess
import sys
import unicodedata
from dataclasses import replace
from decimal import Decimal
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from regenerate import FOLDER
from trial_pieces import HOSTILE, Trial, receipt, report_inputs, terms
from trial_stories import STORIES, go_shaped, on_cpu, too_small

import kerneltrial.records
from kerneltrial.decide.decision import decide
from kerneltrial.decide.grounds import Grounds
from kerneltrial.records.confirmation import Confirmation, NotTimed
from kerneltrial.records.plan import LaunchPlan
from kerneltrial.records.reason import Finding, Reason
from kerneltrial.report import reasons, words
from kerneltrial.report.amendments import changes, said_of
from kerneltrial.report.inputs import ReportInputs
from kerneltrial.report.render import contents, render
from kerneltrial.report.texts import plain
from kerneltrial.store.canonical import convert, digest
from kerneltrial.store.problem import StoreProblem

VOID = {"meta", "br", "col"}


class Page(HTMLParser):
    """Tags, attributes, and the text of each innermost block."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.blocks: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)
        if tag in ("p", "dd", "dt", "td", "th", "li", "h2", "figcaption"):
            self.blocks.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"{tag} closes nothing"

    def handle_data(self, data: str) -> None:
        if self.blocks and "style" not in self.open:
            self.blocks[-1] += data


ALL = {**STORIES, "too_small": too_small, "go_by_example": lambda: go_shaped(example=True)}


@cache
def made(name: str) -> dict[str, bytes]:
    return contents(report_inputs(ALL[name]()))


def rendered(name: str) -> str:
    return made(name)["report.html"].decode()


@pytest.fixture(scope="module", params=ALL)
def told(request: pytest.FixtureRequest) -> tuple[Trial, str]:
    return ALL[request.param](), rendered(request.param)


def test_page_is_well_formed_and_says_the_verdict_first(told: tuple[Trial, str]) -> None:
    trial, text = told
    page = Page(text)
    assert page.open == []
    assert f"<strong>{trial.decision.outcome}</strong>" in text
    assert text.index("<strong>") < text.index("Reasons")


def test_every_rule_and_every_attempt_is_there(told: tuple[Trial, str]) -> None:
    trial, text = told
    shown = html.unescape(text)
    for rule in trial.decision.rules:
        assert words.RULES[rule.rule] in shown
        assert words.visible(words.sentence(rule.seen)) in shown
        assert rule.asked in shown
    for candidate in report_inputs(trial).candidates:
        assert candidate in shown
    attempts = sum(len(iteration.proposal.attempts) for iteration in trial.iterations)
    assert len(re.findall(r'<th scope="row">\d+ <span class="small">in iteration', text)) == attempts


def test_nothing_of_a_candidate_is_markup(told: tuple[Trial, str]) -> None:
    page = Page(told[1])
    assert not {"script", "img", "iframe", "object", "link", "form", "base"} & set(page.tags)
    names = {name for name, _ in page.attributes}
    assert not {name for name in names if name.startswith("on")}
    assert not {"src", "action"} & names
    links = [value for name, value in page.attributes if name in ("href", "xlink:href")]
    assert all(value.startswith("#") for value in links)
    assert {value[1:] for value in links} <= {value for name, value in page.attributes if name == "id"}


def test_page_needs_no_network(told: tuple[Trial, str]) -> None:
    text = told[1]
    assert "default-src 'none'" in text
    assert set(re.findall(r"https?://[^\"' <]+", text)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    assert "url(http" not in text
    assert "@import" not in text
    assert len(text.encode()) < 3_000_000


def test_hostile_text_is_shown_and_harmless() -> None:
    text = rendered("failures")
    shown = html.unescape(text)
    assert words.visible(HOSTILE) in shown
    assert "{{ 7*7 }}" in shown
    assert "<script" not in text
    hidden = {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs") and c not in "\n\t"}
    assert hidden == set()
    assert "\\u202e" in text


def test_a_long_log_is_cut_on_the_page_and_whole_in_history() -> None:
    trial = STORIES["failures"]()
    log = "x" * 19_990 + "the end"
    entries = [msgspec.structs.replace(entry, detail=log) for entry in trial.iterations[0].build.candidates]
    build = msgspec.structs.replace(trial.iterations[0].build, candidates=tuple(entries))
    longer = (replace(trial.iterations[0], build=build), *trial.iterations[1:])
    files = contents(replace(report_inputs(trial), iterations=longer))
    assert b"the end" not in files["report.html"]
    assert b"(15,997 more characters in history.json)" in files["report.html"]
    assert log.encode() in files["history.json"]


def test_other_files_hide_nothing_either() -> None:
    for name in ("decision.json", "history.json", "summary.json"):
        assert all(32 <= byte < 127 or byte == 10 for byte in made("failures")[name]), name


FIGURE = re.compile(r"\$[\d,]+\.\d\d|GPU hours|\d months(?! is)|calls? a month")


def test_example_terms_are_marked_beside_each_figure() -> None:
    text = rendered("go_by_example")
    blocks = Page(text).blocks
    figures = [block for block in blocks if FIGURE.search(block)]
    assert len(figures) > 15
    policy = (
        "the pilot pays for itself within 12 months",
        "the most that any kernel could save pays for",
        "GPU hours a month saved over",
    )
    marks = ("example terms", "†")  # the second has the first as its title
    unmarked = [block for block in figures if not any(p in block for p in (*marks, *policy))]
    assert unmarked == []


def test_own_terms_are_not_marked() -> None:
    assert not any(mark in rendered("go") for mark in ("example terms", "†"))


def test_amendments_are_shown_as_post_hoc_with_what_changed() -> None:
    shown = html.unescape(rendered("failures"))
    assert "Post hoc." in shown
    assert "policy.minimum_effect: 0.02 → 0.1" in shown
    assert "prices.gpu_hour_usd: 3.79 → 0.02" in shown
    assert "workload.example: false → true" in shown
    assert "Post hoc" not in rendered("go")


def _amended(*, prices: bool) -> ReportInputs:
    """The story of a GO with a third iteration asked for after the lock, and another price where `prices` says so."""
    inputs = report_inputs(STORIES["go"]())
    first = inputs.terms.first
    now = msgspec.structs.replace(first, iterations=first.iterations + 1)
    if prices:
        now = msgspec.structs.replace(now, prices=msgspec.structs.replace(now.prices, gpu_hour_usd=Decimal("9.99")))
    terms = msgspec.structs.replace(inputs.terms, now=now, amendments=(now,))
    return dataclasses.replace(inputs, terms=terms, decision=msgspec.structs.replace(inputs.decision, post_hoc=True))


@pytest.mark.parametrize("name", ["report.html", "report.md"])
def test_a_longer_trial_alone_is_not_called_changed_thresholds(name: str) -> None:
    inputs = _amended(prices=False)
    first = inputs.terms.first.iterations
    shown = html.unescape(contents(inputs)[name].decode()).replace("\\", "")
    assert f"Only iterations was changed after the lock ({first} → {first + 1})" in shown
    assert "Post hoc." in shown
    assert "That the number of attempts was fixed" in shown
    assert "That the thresholds were fixed" not in shown
    both = html.unescape(contents(_amended(prices=True))[name].decode())
    assert "Only iterations" not in both
    assert "That the thresholds were fixed" in both


def test_cpu_page_never_calls_a_count_a_speedup() -> None:
    blocks = Page(rendered("cpu")).blocks
    assert any("a ratio of weighted counts, not a speedup" in block for block in blocks)
    told = " ".join(" ".join(block.split()) for block in blocks)
    assert told.count("Asked: a speedup above 1.02×, at the lower end of its interval") == 1
    assert told.count("speedup") == told.count("not a speedup") + 1
    assert not any("µs" in block for block in blocks)


def test_what_the_trial_does_not_show_names_what_was_not_checked() -> None:
    shown = html.unescape(rendered("cpu"))
    section = shown[shown.index("What this trial does not show") :]
    assert section.count("memcheck and initcheck need a GPU") == 1  # of the best and of the baseline: said once
    assert "How fast any kernel is" in section
    assert "Calls, hours or prices are an example's: workload.example is true" in section
    assert "kerneltrial verify" in section


def test_equal_records_give_equal_bytes_in_another_process(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from trial_pieces import report_inputs
from trial_stories import STORIES
from kerneltrial.report.render import render
render(report_inputs(STORIES["cpu"]()), Path(sys.argv[1]))
"""
    package = Path(kerneltrial.records.__file__).parents[2]  # the one under test, wherever an installed one lies
    environment = {
        **os.environ,
        "PYTHONHASHSEED": "7",
        "PYTHONPATH": f"{FOLDER}{os.pathsep}{package}",
        "TZ": "Asia/Seoul",
    }
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, env=environment)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == made("cpu")


def test_best_kernel_is_handed_over_as_it_was_proposed(tmp_path: Path) -> None:
    trial = go_shaped()
    reported = render(report_inputs(trial), tmp_path)
    best = report_inputs(trial).best
    assert (tmp_path / "best.cu").read_bytes() == trial.sources[best.source]
    assert convert(LaunchPlan, yaml.safe_load((tmp_path / "best.plan.yaml").read_text())) == best.plan
    assert reported.no_winner == ""
    assert reported.files == {path.name: digest(path.read_bytes()) for path in tmp_path.iterdir()}


def test_a_numba_winner_is_best_py(tmp_path: Path) -> None:
    trial = go_shaped()
    numba = next(c for c in report_inputs(trial).candidates.values() if c.language == "numba_cuda")
    winner = msgspec.structs.replace(trial.decision.winner, candidate=numba.id)
    decision = msgspec.structs.replace(trial.decision, winner=winner)
    files = contents(replace(report_inputs(trial), decision=decision))
    assert files["best.py"].startswith(b"from numba import cuda")
    assert "best.cu" not in files


def test_without_a_winner_there_is_no_best_kernel_and_an_old_one_goes(tmp_path: Path) -> None:
    render(report_inputs(go_shaped()), tmp_path)
    reported = render(report_inputs(STORIES["failures"]()), tmp_path)
    assert not list(tmp_path.glob("best.*"))
    summary = json.loads((tmp_path / "summary.json").read_bytes())
    assert summary["best"] == {"state": "none", "why": reported.no_winner}
    assert "right on the public cases" in reported.no_winner


def test_a_trial_that_was_not_worth_trying_says_so() -> None:
    trial = too_small()
    assert trial.decision.outcome == "NO-GO"
    assert trial.decision.stop == "prize"
    summary = json.loads(made("too_small")["summary.json"])
    assert summary["failed_rules"] == ["prize"]
    assert "no kernel could save enough" in summary["stop"]["meaning"]
    assert summary["counts"] == {"attempts": 1, "proposed": 0, "built": 0, "valid": 0, "held": 0}


def test_an_attempt_that_had_nothing_left_to_propose_is_told_from_a_failed_one() -> None:
    told = "slots used, 1 with nothing left to propose"
    assert told in rendered("cpu")
    assert "slots used<" in rendered("go")


def test_a_trial_without_any_attempt_can_be_shown() -> None:
    trial = too_small()
    empty = contents(replace(report_inputs(trial), iterations=(), costs=()))
    assert b"Nothing was tried." in empty["report.html"]
    assert json.loads(empty["history.json"])["attempts"] == []


def test_a_winner_that_could_not_be_timed_again_has_no_count_and_no_speedup() -> None:
    trial = go_shaped()
    refused = Finding(reason=Reason.NOT_MEASURED, detail="the driver refused the graph")
    outcome = NotTimed(winner=trial.decision.winner.candidate, ratio=0.0, valid=False, findings=(refused,))
    files = contents(replace(report_inputs(trial), confirmation=Confirmation(outcome=outcome)))
    blocks = [block.strip() for block in Page(files["report.html"].decode()).blocks]
    assert "not measured" in blocks
    assert not any("0.000" in block for block in blocks)
    assert any("the search, not confirmed, clock: graph" in block for block in blocks)
    assert json.loads(files["summary.json"])["speed"] == {
        "state": "not_measured",
        "why": "the driver refused the graph",
    }


def test_a_winner_that_was_wrong_at_the_confirmation_is_no_go_in_plain_words() -> None:
    trial = go_shaped()
    wrong = Finding(reason=Reason.WRONG_VALUES, detail="square_256, draw 3: 9 of 65536 elements of C are wrong")
    outcome = msgspec.structs.replace(trial.confirmation.outcome, valid=False, findings=(wrong,))
    text, summary = decided_again(trial, confirmation=msgspec.structs.replace(trial.confirmation, outcome=outcome))
    shown = html.unescape(text)
    assert "<strong>NO-GO</strong>" in text
    assert "<b>Right on the public cases.</b> The winner was right in the search and wrong at the" in shown
    assert "wrong values, square_256, draw 3: 9 of 65536 elements of C are wrong" in shown
    assert "it was not right again there, so the figure counts for nothing" in shown
    assert summary["failed_rules"] == ["correct_on_public_cases"]
    assert summary["speed"]["state"] == "not_right_again"
    assert summary["speed"]["why"] == wrong.detail


def test_counts_of_a_winner_that_was_wrong_again_count_for_nothing() -> None:
    trial = on_cpu()
    wrong = Finding(reason=Reason.WRONG_VALUES, detail="draw 3: all of C is wrong")
    outcome = msgspec.structs.replace(trial.confirmation.outcome, valid=False, findings=(wrong,))
    text, summary = decided_again(trial, confirmation=Confirmation(outcome=outcome))
    assert summary["outcome"] == "NO-GO"
    assert summary["speed"] == {"state": "not_right_again", "why": wrong.detail, "count_ratio": 1.374773}
    assert "so the figure counts for nothing" in text


def decided_again(trial: Trial, **changes: Any) -> tuple[str, dict[str, Any]]:
    """Page and summary of a trial whose records were changed, with the decision that follows."""
    changed = replace(trial, **changes)
    grounds = Grounds(
        changed.lock,
        changed.terms,
        changed.qualification,
        changed.prize,
        changed.iterations,
        changed.confirmation,
        changed.decision.spent,
        receipt(changed.terms),
    )
    files = contents(report_inputs(replace(changed, decision=decide(grounds))))
    return files["report.html"].decode(), json.loads(files["summary.json"])


def test_prices_of_an_example_are_marked_though_the_workload_is_said_to_be_ones_own() -> None:
    trial = go_shaped()
    prices = msgspec.structs.replace(trial.terms.now.prices, source="example row, no quotation")
    text, summary = decided_again(trial, terms=terms(msgspec.structs.replace(trial.terms.now, prices=prices)))
    assert summary["outcome"] == "INCONCLUSIVE"
    assert summary["unknown_rules"] == ["own_terms"]
    assert summary["example_terms"] is True
    assert "prices.source is 'example row, no quotation'" in html.unescape(text)
    assert "example terms" in text


def test_a_full_disk_is_one_line_and_nothing_is_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreProblem, match="the disk is full"):
        render(report_inputs(on_cpu()), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_every_reason_reads_as_words() -> None:
    for code in Reason:
        assert "_" not in words.reason(code)


@pytest.mark.parametrize("story", ["failures", "go", "cpu"])
def test_the_markdown_says_the_pages_words_in_the_pages_order(story: str) -> None:
    """Rules in the same order; of terms that were changed, what was changed and in the same words."""
    inputs = report_inputs(STORIES[story]())
    text = contents(inputs)["report.md"].decode().replace("\\", "")
    shown = html.unescape(rendered(story))
    asked = reasons.questions(inputs, plain("en"))
    titles = [rule["title"] for question in asked for rule in question["rules"]]
    assert sorted(titles) == sorted(words.RULES[rule.rule] for rule in inputs.decision.rules)
    table = shown[shown.index('<h2 id="reasons">Reasons') :]
    assert sorted(titles, key=lambda title: text.index(f"| {title} |")) == titles
    assert sorted(titles, key=lambda title: table.index(f">{title}<")) == titles
    assert (said_of(inputs.terms, plain("en")) in text) == inputs.decision.post_hoc
    changed = [line for lines in changes(inputs.terms) for line in lines]
    assert all(line in text and line in shown for line in changed)
    assert ("Amendment 1: " in text) == bool(changed)
    for rule in inputs.decision.rules:
        assert words.sentence(rule.seen)[-1] in ".!?…"
        assert words.visible(words.sentence(rule.seen)) in shown
