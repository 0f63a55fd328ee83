"""The page in other languages: every text has a translation, figures and records are the same in all."""

import ast
import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from trial_pieces import HOSTILE, report_inputs
from trial_stories import STORIES

import kerneltrial.decide
import kerneltrial.report
from kerneltrial.report import words
from kerneltrial.report.render import contents
from kerneltrial.report.texts import catalogue, marked_up, plain, recorded

ROOM = Path(kerneltrial.report.__path__[0])
STATES = ("attempts", "proposed", "built", "valid", "held", "passed", "failed", "unknown")
PLACE = re.compile(r"%\((\w+)\)s")


def texts() -> set[str]:
    """All texts that templates and modules say."""
    found = set(STATES)
    for path in sorted((ROOM / "templates").glob("*.j2")):
        found |= set(re.findall(r'_\("((?:[^"\\]|\\.)*)"', path.read_text()))
    for path in sorted(ROOM.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "say":
                found |= {node.args[0].value} if isinstance(node.args[0], ast.Constant) else set()
    for table in (words.MEANING, words.FATES, words.RULES, words.STOPS, words.SWINGS, words._REASONS, words.GLOSSARY):
        found |= set(table.values())
    found |= {question for question, _ in words.QUESTIONS} | set(words.GLOSSARY)
    return found


def test_the_catalogue_has_every_text_and_no_other() -> None:
    assert set(catalogue("ko")) == texts()


def test_a_translation_has_the_same_places_to_fill_in() -> None:
    for text, translated in catalogue("ko").items():
        assert sorted(PLACE.findall(text)) == sorted(PLACE.findall(translated)), text
        assert '"' not in translated, "texts stand in attributes too"
        assert "<" not in translated


def test_a_text_without_values_keeps_its_per_cent_signs() -> None:
    assert plain("en")("5 % faster") == "5 % faster"
    assert plain("en")("%(n)s %%", n=5) == "5 %"


def test_values_in_markup_are_escaped_and_show_what_they_hide() -> None:
    said = marked_up("en")("from iteration %(n)s", n=HOSTILE)
    assert "<script>" not in said
    assert "\u202e" not in said


@pytest.mark.parametrize("story", STORIES)
def test_the_korean_page_is_korean_and_its_figures_are_the_same(story: str) -> None:
    english = report_inputs(STORIES[story]())
    pages = {one.language: contents(one) for one in (english, replace(english, language="ko"))}
    korean = pages["ko"]["report.html"].decode()
    assert '<html lang="ko">' in korean
    assert all(text in korean for text in ("이유", "시도", "이 시험이 보여 주지 않는 것", "비용과 회수"))
    assert "What this trial does not show" not in korean
    for name in ("decision.json", "history.json"):
        assert pages["ko"][name] == pages["en"][name]
    money = re.compile(r"\$[\d,]+\.\d\d|\d+\.\d{3}×")
    assert sorted(money.findall(korean)) == sorted(money.findall(pages["en"]["report.html"].decode()))


def test_the_markdown_says_the_verdict_and_nothing_in_it_is_markup() -> None:
    text = contents(report_inputs(STORIES["failures"]()))["report.md"].decode()
    assert text.startswith("# NO-GO: ")
    assert "## What this trial does not show" in text
    assert "<script>" not in text
    assert not re.search(r"(?<!\\)<", text)
    korean = contents(replace(report_inputs(STORIES["go"]()), language="ko"))["report.md"].decode()
    assert "회수" in korean


def test_the_markdown_says_what_to_do_and_how_sure_the_payback_is() -> None:
    go, cpu = (contents(report_inputs(STORIES[name]()))["report.md"].decode() for name in ("go", "cpu"))
    assert "100 % of 5,000 simulated futures pay back within 12 months: half of them within 5.05 months" in go
    assert "## What to do next" not in go
    assert "1. Run the trial on a machine with the GPU that production uses (settles: " in cpu
    assert cpu.index("## What to do next") < cpu.index("## Reasons")


def test_what_was_not_tried_begins_in_korean() -> None:
    korean = contents(replace(report_inputs(STORIES["go"]()), language="ko"))["report.html"].decode()
    limits = korean[korean.index('id="limits"') : korean.index('id="check"')]
    headlines = re.findall(r"<li><strong>(.*?)</strong>", limits)
    assert len(headlines) > 5
    assert all(re.search("[가-힣]", headline) for headline in headlines), headlines


def sentences() -> set[str]:
    """What the rules of all stories say, and every whole sentence without places that rules hold."""
    found = set()
    for story in STORIES.values():
        for rule in report_inputs(story()).decision.rules:
            found |= {rule.asked, rule.seen, getattr(rule, "settled_by", rule.asked)}
    pieces = {"drawn shapes, far ones, and the performance cases on sealed values", "put your name here"}
    pieces |= {"no reason was recorded", "no finding was recorded"}
    room = Path(kerneltrial.decide.__path__[0])
    for path in (*room.glob("rules_*.py"), room / "payback.py"):
        tree = ast.parse(path.read_text())
        inner = {id(value) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for value in node.values}
        inner |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
        for node in ast.walk(tree):
            text = node.value if isinstance(node, ast.Constant) and id(node) not in inner else ""
            if isinstance(text, str) and text.count(" ") >= 2 and text[0].isalpha() and text[-1] != " ":
                found |= {text} - pieces
    return found


def test_every_sentence_of_a_rule_has_a_form_in_korean_and_keeps_its_figures() -> None:
    told = recorded("ko")
    for text in sorted(sentences()):
        if not text.startswith("NVIDIA"):
            assert re.search("[가-힣]", told(text)), text
        figures = re.compile(r"\d[\d.,]*\d|\d")
        left = [figure for figure in figures.findall(told(text)) if figure not in ("0", "95", "3", "1", "2")]
        assert all(figure in text for figure in left), text
        wanted = set(figures.findall(text)) - {"0", "95"}
        assert wanted <= set(figures.findall(told(text))) | {"2"}, text


def test_forms_have_the_same_places_in_both_languages() -> None:
    path = ROOM / "catalogue/ko_records.yaml"
    for text, translated in yaml.safe_load(path.read_text()).items():
        assert sorted(re.findall(r"\{\w\}", text)) == sorted(re.findall(r"\{\w\}", translated)), text


def test_what_no_rule_says_stays_as_it_was_recorded() -> None:
    assert recorded("ko")("words that nobody knows; there is no winner") == "words that nobody knows; 승자가 없습니다"
    assert recorded("en")("there is no winner") == "there is no winner"
    assert recorded("ko")("signed by {evil} %s") == "{evil} %s의 서명"
