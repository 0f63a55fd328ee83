"""The oracle's first run: whatever it does to its process, the lock has one line for it."""

import shutil
import time
from pathlib import Path

import pytest

from kerneltrial.commands.init import STARTER
from kerneltrial.inputs.config import read, sources
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.inputs.trial import read_trial
from kerneltrial.stages.oracle_apart import check_apart


def _asked(folder: Path, text: str, seconds: float = 60.0) -> None:
    shutil.copytree(STARTER, folder, dirs_exist_ok=True)
    path = folder / "cases/scale_add/oracle.py"
    path.write_text(text.format(right=path.read_text()))
    files = sources(read(folder / "config.yaml", {}), folder)
    check_apart(path, read_trial(files, folder), path.parent, seconds)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("import os\nos._exit(0)\n", "ended its process with exit status 0"),
        ("import os\nos.kill(os.getpid(), 15)\n", "ended its process by SIGTERM"),
        ("import sys\nsys.exit(3)\n", "does not run: SystemExit: 3"),
        ("import os\ndef oracle(inputs, dims):\n    os._exit(1)\n", "ended its process with exit status 1"),
        ("def oracle(inputs, dims):\n    return {{}}\n", "oracle() must return a mapping"),
    ],
)
def test_an_oracle_that_does_not_answer_is_one_line(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(InputProblem) as caught:
        _asked(tmp_path, text)
    assert told in str(caught.value)
    assert "oracle.py: " in str(caught.value)


@pytest.mark.parametrize(
    "text", ["while True:\n    pass\n", "import time\ndef oracle(inputs, dims):\n    time.sleep(1000)\n"]
)
def test_an_oracle_that_loops_is_stopped_in_time(tmp_path: Path, text: str) -> None:
    started = time.monotonic()
    with pytest.raises(InputProblem, match=r"oracle.py: gave no answer on the smallest case within 1 s: it loops"):
        _asked(tmp_path, text, 1.0)
    assert time.monotonic() - started < 30


def test_a_right_oracle_passes_and_nothing_of_it_stays_here(tmp_path: Path) -> None:
    _asked(tmp_path, "{right}\nSEEN = []\n")
