"""An oracle that takes too long on one case: one line that names it, whatever the oracle does meanwhile."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from kerneltrial.inputs import oracle
from kerneltrial.inputs.patience import TookTooLongError, limited
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.records.contract import Array, Contract, Range, Tolerance

CONTRACT = Contract(
    name="double",
    description="",
    arguments=(
        Array(name="x", role="input", dtype="float32", shape=("n",)),
        Array(name="y", role="output", dtype="float32", shape=("n",)),
    ),
    dimensions={"n": Range(minimum=1, maximum=9)},
    tolerances={"y": Tolerance()},
    operations="n",
    bytes="8*n",
)
GOOD = "def oracle(inputs, dims):\n    return {'y': 2.0 * inputs['x'].astype(np.float64)}\n"
SMALL = {"x": np.zeros(3, np.float32)}
LARGE = {"x": np.zeros(8, np.float32)}


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle, "LEAST_LIMIT_S", 0.2)


def _line(folder: Path, text: str) -> str:
    path = folder / "oracle.py"
    path.write_text("import numpy as np\n" + text)
    found = oracle.load(path)
    found.answer(CONTRACT, SMALL, {"n": 3})
    start = time.monotonic()
    with pytest.raises(InputProblem) as caught:
        found.answer(CONTRACT, LARGE, {"n": 8}, "wide")
    assert time.monotonic() - start < 20
    return str(caught.value)


LOOPS = {
    "a plain loop": "while dims['n'] > 3:\n        pass",
    "one that catches what is raised in it": """for _ in range(3):
        try:
            while dims['n'] > 3:
                pass
        except BaseException:
            pass""",
    "one that sleeps": "import time\n    while dims['n'] > 3:\n        time.sleep(0.01)",
}


@pytest.mark.parametrize("how", LOOPS)
def test_a_loop_on_a_larger_case_is_one_line(tmp_path: Path, how: str) -> None:
    line = _line(tmp_path, GOOD.replace("return", f"{LOOPS[how]}\n    return"))
    assert line.startswith(f"{tmp_path / 'oracle.py'}: oracle() gave no answer in case wide (n=8) within 0 s: it loops")
    assert "smaller" in line


def test_terms_have_the_limit_too(tmp_path: Path) -> None:
    text = "def terms(inputs, dims):\n    while dims['n'] > 3:\n        pass\n    return {}\n"
    assert "terms() gave no answer in case wide (n=8)" in _line(tmp_path, GOOD + text)


@pytest.mark.parametrize("how", ["while True:\n    pass\n", "import time\nwhile True:\n    time.sleep(0.01)\n"])
def test_a_loop_outside_of_its_functions_is_one_line(tmp_path: Path, how: str) -> None:
    path = tmp_path / "oracle.py"
    path.write_text(f"{how}{GOOD}")
    with pytest.raises(InputProblem, match="did not come to its end within 0 s") as caught:
        oracle.load(path)
    assert "\n" not in str(caught.value)
    path.write_text(f"import numpy as np\n{GOOD}")
    assert oracle.load(path).answer(CONTRACT, SMALL, {"n": 3}).outputs["y"].shape == (3,)


def test_in_another_thread(tmp_path: Path) -> None:
    lines: list[str] = []
    text = GOOD.replace("return", "while dims['n'] > 3:\n        pass\n    return")
    asking = threading.Thread(target=lambda: lines.append(_line(tmp_path, text)))
    asking.start()
    asking.join(30)
    assert "in case wide" in lines[0]


def test_nothing_is_raised_behind_a_call_in_time() -> None:
    for _ in range(200):
        with limited(60):
            pass
    assert threading.active_count() < 100
    with pytest.raises(TookTooLongError), limited(0.05):
        time.sleep(0.3)
    time.sleep(0.1)


@pytest.mark.parametrize("seconds", [60, 0.05])
def test_a_profiler_goes_on_behind_a_call(seconds: float) -> None:
    """CPython 3.11 goes round in circles at the next call where an exception was taken back before it came."""
    text = (
        "import cProfile, contextlib, time\nfrom kerneltrial.inputs.patience import limited, TookTooLongError\n"
        f"with contextlib.suppress(TookTooLongError), limited({seconds}): time.sleep(0.3)\n"
        "print(cProfile.Profile().runcall(lambda: 'went on'))"
    )
    done = subprocess.run([sys.executable, "-c", text], timeout=60, check=False, capture_output=True, text=True)
    assert done.stdout == "went on\n", done.stderr


def test_the_alarm_is_off_behind_a_call() -> None:
    text = (
        "import time\nfrom kerneltrial.inputs.patience import limited\n"
        "with limited(0.3, grace_s=0.1): pass\ntime.sleep(1)"
    )
    assert subprocess.run([sys.executable, "-c", text], timeout=60, check=False).returncode == 0


def test_what_hears_nothing_ends_with_its_process() -> None:
    """A power of large integers is one call in C, which holds Python's lock."""
    text = "from kerneltrial.inputs.patience import limited\nwith limited(0.2, grace_s=1):\n    3 ** (10 ** 10)"
    done = subprocess.run([sys.executable, "-c", text], timeout=60, check=False)
    assert done.returncode == -signal.SIGALRM


def test_a_larger_case_may_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle, "LEAST_LIMIT_S", 600.0)
    assert oracle.limit_s({"x": (1024,)}) < 601
    assert oracle.limit_s({"x": (2**31,), "y": (1,)}) > 2600
