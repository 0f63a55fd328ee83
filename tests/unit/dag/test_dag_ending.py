"""The last lines of a run: the verdict where the trial is whole, what the failed stage said where it is not."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kerneltrial.dag import graph
from kerneltrial.dag.ending import Ending


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    for stage, iteration in graph.jobs(1):
        record = tmp_path / graph.record_path("tiny", stage, iteration)
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_text("{}")
    page = tmp_path / graph.reports("tiny")
    page.mkdir(parents=True)
    (page / "summary.json").write_text(json.dumps({"outcome": "NO-GO", "meaning": "Keep the baseline."}))
    (tmp_path / "results/tiny/logs").mkdir()
    return tmp_path


def test_a_whole_trial_ends_with_its_verdict_and_the_page(whole: Path) -> None:
    assert Ending("tiny", 1, whole).lines() == ("NO-GO: Keep the baseline.", "report: reports/tiny/report.html")


@pytest.mark.parametrize(("proposed", "lines"), [(0, 3), (1, 2)])
def test_a_trial_in_which_nothing_was_judged_says_so(whole: Path, proposed: int, lines: int) -> None:
    told = {"outcome": "INCONCLUSIVE", "meaning": "m", "counts": {"attempts": 12, "proposed": proposed}}
    (whole / "reports/tiny/summary.json").write_text(json.dumps(told))
    said = Ending("tiny", 1, whole).lines()
    assert len(said) == lines
    assert ("nothing was judged: no attempt (12) gave a candidate" in said[1]) == (proposed == 0)


@pytest.mark.parametrize(
    ("failed", "unknown", "line"),
    [
        (["prize"], ["own_terms"], "failed: prize"),
        ([], ["own_terms", "reviewer_receipt"], "unknown: own_terms, reviewer_receipt"),
        ([], list("abcdefg"), "unknown: a, b, c, d, e and 2 more"),
    ],
)
def test_the_rules_that_the_verdict_hangs_on_are_named(whole: Path, failed: list, unknown: list, line: str) -> None:
    told = {"outcome": "NO-GO", "meaning": "m", "failed_rules": failed, "unknown_rules": unknown}
    (whole / "reports/tiny/summary.json").write_text(json.dumps(told))
    assert Ending("tiny", 1, whole).lines()[1:-1] == (line,)


def test_a_part_of_a_trial_ends_without_a_word(whole: Path) -> None:
    assert Ending("tiny", 2, whole).lines() == ()
    (whole / "results/tiny/decision.json").unlink()
    assert Ending("tiny", 1, whole).lines() == ()


def test_a_failed_stage_has_the_last_word_and_an_earlier_runs_has_none(whole: Path) -> None:
    old = whole / "results/tiny/logs/lock.log"
    old.write_text("there is no oracle\n")
    os.utime(old, (1e9, 1e9))
    ending = Ending("tiny", 1, whole)
    (whole / "results/tiny/logs/terms.log").write_text("done\n")
    (whole / "results/tiny/logs/qualify.log").write_text("baseline.cu: does not compile\n")
    ending.failed = True
    assert ending.lines() == ["qualify stopped: baseline.cu: does not compile"]


@pytest.mark.parametrize(
    ("words", "quiet"),
    [
        ("--cores 1", False),
        ("--quiet", False),
        ("--quiet rules --config all=1", False),
        ("--quiet all", True),
        ("-q rules all --cores 1", True),
        ("--quiet=all", True),
    ],
)
def test_where_snakemake_says_nothing_what_stopped_is_not_said_twice(
    whole: Path, monkeypatch: pytest.MonkeyPatch, words: str, quiet: bool
) -> None:
    monkeypatch.setattr("sys.argv", ["snakemake", *words.split()])
    ending = Ending("tiny", 1, whole)
    (whole / "results/tiny/logs/qualify.log").write_text("baseline.cu: does not compile\n")
    ending.failed = True
    assert len(ending.lines()) == (not quiet)


def test_a_stage_that_left_an_empty_log_has_a_reason_too(whole: Path) -> None:
    ending = Ending("tiny", 1, whole)
    (whole / "results/tiny/logs/qualify.log").write_text("")
    ending.failed = True
    (line,) = ending.lines()
    assert line.startswith("qualify stopped: it left no word")


def test_what_is_no_log_says_nothing_and_ends_nothing(whole: Path) -> None:
    ending = Ending("tiny", 1, whole)
    (whole / "results/tiny/logs/lock.log").mkdir()
    (whole / "results/tiny/logs/qualify.log").write_bytes(b"\xffthere is no oracle\n")
    ending.failed = True
    assert ending.lines() == ["qualify stopped: \ufffdthere is no oracle"]


def test_it_comes_when_the_process_ends_on_standard_error(whole: Path) -> None:
    code = (
        "from pathlib import Path\nfrom kerneltrial.dag.ending import Ending\n"
        "Ending('tiny', 1, Path('.')).when_the_process_ends()\nprint('jobs')"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=whole, capture_output=True, text=True, timeout=60)
    assert done.stdout == "jobs\n"
    assert done.stderr.splitlines()[-1] == "report: reports/tiny/report.html"


def _judged(whole: Path, *attempts: dict[str, object]) -> list[str]:
    told = {"outcome": "NO-GO", "meaning": "m", "counts": {"attempts": len(attempts), "proposed": len(attempts)}}
    for name, value in (("summary", told), ("history", {"attempts": attempts})):
        (whole / f"reports/tiny/{name}.json").write_text(json.dumps(value))
    return list(Ending("tiny", 1, whole).lines())


def test_where_no_attempt_was_right_it_is_said_what_was_wrong_with_the_first(whole: Path) -> None:
    wrong = {"attempt": 1, "proposed": True, "valid": False, "detail": "a.cu(3): error\x1b[2J", "reason": "r"}
    right = {**wrong, "attempt": 2, "valid": True}
    assert _judged(whole, wrong)[1:-1] == ["attempt 1: a.cu(3): error\\x1b[2J"]
    assert _judged(whole, {**wrong, "detail": ""})[1:-1] == ["attempt 1: r"]
    assert _judged(whole, wrong, right)[1:-1] == []
    assert _judged(whole, {**wrong, "proposed": False})[1:-1] == []
