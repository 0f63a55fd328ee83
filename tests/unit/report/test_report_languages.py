"""The page in other languages: every text has a translation, figures and records are the same in all."""

import ast
import re
from dataclasses import replace
from pathlib import Path

import pytest
from trial_pieces import HOSTILE, report_inputs
from trial_stories import STORIES

import kerneltrial.report
from kerneltrial.report import words
from kerneltrial.report.render import contents
from kerneltrial.report.texts import catalogue, marked_up, plain

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
    for table in (words.MEANING, words.FATES, words.RULES, words.STOPS, words.SWINGS, words._REASONS):
        found |= set(table.values())
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
