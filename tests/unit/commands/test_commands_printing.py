"""An oracle that prints: a line that says how much and where, and on failure the last line of it."""

from pathlib import Path

import pytest

from kerneltrial.__main__ import main


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Path:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "mine"]) == 0
    monkeypatch.chdir(tmp_path / "mine")
    capfd.readouterr()
    return tmp_path / "mine"


def _printing(folder: Path, more: str = "") -> None:
    oracle = folder / "cases/scale_add/oracle.py"
    words = "_right = oracle\ndef oracle(inputs, dims):\n    print('working\\n' * 5000)\n"
    oracle.write_text(f"{oracle.read_text()}\nprint('loaded')\n{words}{more}    return _right(inputs, dims)\n")


def test_what_an_oracle_prints_lies_beside_the_log_of_its_stage(
    started: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _printing(started)
    assert main(["lock"]) == 0
    told = capfd.readouterr().err
    kept = "results/scale_add/logs/lock.oracle.txt"
    assert f"kerneltrial: lock: the oracle printed 5,002 lines (40,008 bytes): {kept}\n" in told
    assert "working" not in told
    assert (started / kept).read_text().startswith("loaded\nworking\n")


def test_what_an_oracle_printed_last_is_told_where_it_fails(started: Path, capfd: pytest.CaptureFixture[str]) -> None:
    _printing(started, "    print('no more room')\n    raise ValueError('boom')\n")
    assert main(["lock"]) == 3
    told = capfd.readouterr().err
    assert told.count("\n") == 1
    assert "boom" in told
    assert told.endswith("; the last line that it printed: 'no more room'\n")
    assert main(["doctor"]) == 3
    assert "the last line that it printed: 'no more room'" in capfd.readouterr().out
