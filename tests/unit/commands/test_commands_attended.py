"""A stage that ends without a word of its own: what attends it says how."""

import subprocess
import sys
from pathlib import Path

import pytest

STAGE = """
import os, sys
from pathlib import Path
from kerneltrial.commands import attended
log = Path(sys.argv[sys.argv.index("--log") + 1]) if "--log" in sys.argv else None
def main():
    {body}
    return {status}
sys.exit(attended.run(main))
"""


def _ran(folder: Path, body: str, status: int = 0, log: bool = True) -> tuple[subprocess.CompletedProcess[str], str]:
    words = [sys.executable, "-c", STAGE.format(body=body, status=status), *(["--log", "logs/x.log"] if log else [])]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=60)
    written = folder / "logs/x.log"
    return done, written.read_text() if written.is_file() else ""


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("os.kill(os.getpid(), 9)", "its process was ended by SIGKILL: killed from outside, or for want of memory"),
        ("os.kill(os.getpid(), 15)", "its process was ended by SIGTERM"),
        ("os._exit(0)", "its process ended with exit status 0 before its record was written"),
        ("os._exit(7)", "its process ended with exit status 7 before its record was written"),
    ],
)
def test_how_it_ended_stands_in_the_log_and_on_standard_error(tmp_path: Path, body: str, told: str) -> None:
    done, log = _ran(tmp_path, body)
    assert done.returncode == 3
    assert log.startswith(told)
    assert done.stderr == f"kerneltrial: {log}"
    assert log.count("\n") == 1


def test_what_a_stage_says_itself_stays_and_so_does_its_status(tmp_path: Path) -> None:
    write = "log.parent.mkdir(exist_ok=True); log.write_text('there is no oracle\\n')"
    done, log = _ran(tmp_path, write, status=3)
    assert (done.returncode, log, done.stderr) == (3, "there is no oracle\n", "")
    done, log = _ran(tmp_path, write.replace("there is no oracle", "done"))
    assert (done.returncode, log, done.stderr) == (0, "done\n", "")


def test_an_earlier_runs_word_is_not_taken_for_this_ones(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/x.log").write_text("done\n")
    assert "SIGKILL" in _ran(tmp_path, "os.kill(os.getpid(), 9)")[1]


def test_without_a_log_nobody_attends(tmp_path: Path) -> None:
    done, log = _ran(tmp_path, "os._exit(5)", log=False)
    assert (done.returncode, done.stderr, log) == (5, "", "")


def test_a_fault_of_our_own_is_not_blamed_on_the_trials_python(tmp_path: Path) -> None:
    done, log = _ran(tmp_path, "''.join([7])")
    assert done.returncode == 3
    assert log.startswith("a fault of kerneltrial ended it (TypeError: ")
    assert log.count("\n") == 1
    assert "oracle" not in log + done.stderr
    assert "Traceback" in done.stderr
    assert done.stderr.endswith(f"kerneltrial: {log}")


def test_what_was_said_is_not_said_twice_where_the_log_finds_no_place(tmp_path: Path) -> None:
    taken = "open('logs', 'w').close()"  # a file where the folder belongs
    done, _ = _ran(tmp_path, f"{taken}; print('kerneltrial: the disk is full', file=sys.stderr)", status=3)
    assert (done.returncode, done.stderr) == (3, "kerneltrial: the disk is full\n")
    (tmp_path / "logs").unlink()
    done, _ = _ran(tmp_path, taken)
    assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / "logs").unlink()
    done, _ = _ran(tmp_path, f"{taken}; os._exit(0)")
    assert done.returncode == 3
    assert done.stderr.startswith("kerneltrial: its process ended with exit status 0")
    assert done.stderr.count("\n") == 1


def test_a_log_that_cannot_be_cleared_stops_the_stage(tmp_path: Path) -> None:
    (tmp_path / "logs/x.log").mkdir(parents=True)
    done, _ = _ran(tmp_path, "print('at work')")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    assert "logs/x.log: cannot be read or written (Is a directory)" in done.stderr
