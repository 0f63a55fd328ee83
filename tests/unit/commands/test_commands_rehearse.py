"""`kerneltrial rehearse`: what a trial would stop at after its lock, seen before it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kerneltrial.__main__ import main
from kerneltrial.commands.init import STARTER
from kerneltrial.records.qualification import COPY_OF_BASELINE


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("KERNELTRIAL_RUN", raising=False)
    shutil.copytree(STARTER, tmp_path / "mine")
    monkeypatch.chdir(tmp_path / "mine")
    return tmp_path / "mine"


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def _files(folder: Path) -> set[str]:
    return {os.fspath(path.relative_to(folder)) for path in folder.rglob("*") if "__pycache__" not in path.parts}


def test_a_trial_in_order_is_rehearsed_with_its_application_and_nothing_is_left(
    mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _edit(
        mine / "config.yaml",
        "  words: []                                      # such as",
        "  words: [python3, app.py]  #",
    )
    before = _files(mine)
    assert main(["rehearse"]) == 0
    printed = capsys.readouterr()
    assert "the reference and the application with the baseline" in printed.out
    assert "GO" not in printed.out
    assert printed.err == ""
    assert _files(mine) == before


def test_a_reference_that_is_the_baseline_is_said_to_be_no_second_opinion(
    mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (mine / "kernels/scale_add/baseline.cu").read_text()
    assert "scale_add(" in text
    (mine / "cases/scale_add/reference.cu").write_text(text.replace("scale_add(", "reference("))
    assert main(["rehearse"]) == 0
    assert f"but {COPY_OF_BASELINE}: until a plain kernel" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        (
            "kernels/scale_add/baseline.cu",
            "out[i] =",
            "out[i",
            "kernels/scale_add/baseline.cu: does_not_compile: basel",
        ),
        ("kernels/scale_add/baseline.cu", "if (i < n) out", "if (i < n - 1) out", "the baseline fails: output_not_wri"),
        ("cases/scale_add/oracle.py", "ALPHA = 1.5", "ALPHA = 1.6", "the baseline fails: wrong_values"),
        ("cases/scale_add/oracle.py", "import numpy as np", "", "cases/scale_add/oracle.py: oracle() raised NameError"),
        (
            "kernels/scale_add/candidates/float4.plan.yaml",
            "variants:",
            "variant:",
            "unknown key 'variant'",
        ),
        ("application/app.py", '"n": SAMPLES', '"m": SAMPLES', "takes the dimensions n; given were m"),
    ],
)
def test_what_a_trial_would_stop_at_is_said_and_nothing_is_locked(
    mine: Path, capsys: pytest.CaptureFixture[str], file: str, old: str, new: str, told: str
) -> None:
    _edit(
        mine / "config.yaml",
        "  words: []                                      # such as",
        "  words: [python3, app.py]  #",
    )
    _edit(mine / file, old, new)
    assert main(["rehearse"]) == 3
    printed = capsys.readouterr()
    assert told in printed.err
    assert printed.err.count("\n") == 1
    assert "kerneltrial-" not in printed.err
    assert "it is locked" not in printed.err
    assert not (mine / "results").exists()


def test_what_qualification_finds_after_a_lock_says_how_to_go_on(mine: Path) -> None:
    _edit(mine / "kernels/scale_add/baseline.cu", "out[i] =", "out[i")

    def ran(stage: str) -> subprocess.CompletedProcess[str]:  # a process each, as it holds the folder to its end
        words = [sys.executable, "-m", "kerneltrial", stage]
        return subprocess.run(words, capture_output=True, text=True, timeout=600)

    assert ran("lock").returncode == 0
    done = ran("qualify")
    assert done.returncode == 3
    assert "does_not_compile" in done.stderr
    assert done.stderr.rstrip().endswith("mend it, try `kerneltrial rehearse`, then `kerneltrial lock --new`")
