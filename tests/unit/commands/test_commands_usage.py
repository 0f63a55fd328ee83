"""A command line that is wrong: one line, of the command that was meant."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kerneltrial.__main__ import main
from kerneltrial.commands.arguments import COMMANDS
from kerneltrial.dag.graph import STAGES


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    return printed.err


@pytest.mark.parametrize("command", [*STAGES, *COMMANDS])
def test_a_wrong_option_is_one_line_that_names_the_help_of_its_command(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refused([command, "--qqq=3"], capsys)
    assert line.startswith(f"kerneltrial {command}: there is no option --qqq; ")
    assert f"`kerneltrial {command} --help`" in line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("propose --cofig x", "there is no option --cofig; did you mean --config?"),
        ("lock --lgo x", "there is no option --lgo; `"),  # the workflow's own options are not offered
        ("init -x", "there is no option -x"),
        ("verify a b", "'b' is a word too many"),
        ("compare a", "required: B"),
        ("propose --iteration x", "invalid int value: 'x'"),
        ("--qqq", "kerneltrial: there is no option --qqq; `kerneltrial --help`"),
        ("", "required: COMMAND"),
    ],
)
def test_what_is_wrong_is_named(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert said in refused(words.split(), capsys)


def test_a_word_after_two_dashes_is_no_option_and_a_beginning_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert "word too many" in refused(["compare", "a", "b", "--", "--qqq"], capsys)
    assert "invalid choice: 'x'" in refused(["rerun", "--dev", "x", "FILE"], capsys)


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert re.match(r"kerneltrial (\d|, )", capsys.readouterr().out)


@pytest.mark.parametrize(("encoding", "shown"), [("ascii", b"h\\xe9"), ("utf-8", "h\xe9".encode())])
def test_a_letter_that_the_terminal_lacks_is_shown_by_its_number(tmp_path: Path, encoding: str, shown: bytes) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kerneltrial", "init", "h\xe9"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(shown + b": a trial of ")


def test_help_begins_with_what_a_newcomer_does_first(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    told = capsys.readouterr().out
    places = [told.index(f"\n    {command} ") for command in ("init", "doctor", "rehearse", "verify", "lock", "report")]
    assert places == sorted(places)
    assert "`kerneltrial init DIR`, then `snakemake --cores 1`" in " ".join(told.split())
