"""What an oracle prints is kept aside: the beginning, the end, and how much it was."""

import os
import subprocess
import sys
import threading

import pytest

from kerneltrial.inputs.heard import KEPT_BYTES, Heard, amount
from kerneltrial.inputs.problem import InputProblem


def _say() -> None:
    print("by print")
    print("to stderr", file=sys.stderr)
    os.write(1, b"from C\n")
    os.write(2, b"from C, to stderr\n")
    subprocess.run([sys.executable, "-I", "-S", "-c", "print('from a child')"], check=True)


def test_nothing_reaches_the_terminal_and_all_is_kept_in_order(capfd: pytest.CaptureFixture[str]) -> None:
    heard = Heard()
    print("before")
    with heard.aside():
        _say()
    print("after")
    assert capfd.readouterr() == ("before\nafter\n", "")
    text, size, lines = heard.taken()
    assert text == b"by print\nto stderr\nfrom C\nfrom C, to stderr\nfrom a child\n"
    assert (size, lines) == (len(text), 5)
    assert heard.taken() == (b"", 0, 0)


def test_of_much_the_beginning_and_the_end_are_kept() -> None:
    heard = Heard()
    for number in range(3):
        with heard.aside():
            print(f"begin {number}\n" + "x" * KEPT_BYTES + f"\nend {number}")
    text, size, lines = heard.taken()
    assert text.startswith(b"begin 0\nxxx")
    assert text.endswith(b"xxx\nend 2\n")
    assert len(text) < 2 * KEPT_BYTES + 40
    assert size == 3 * (KEPT_BYTES + len("begin 0\n\nend 0\n"))
    assert b"\n... %d bytes ...\n" % (size - 2 * KEPT_BYTES) in text
    assert lines == 9
    assert amount(size, lines) == f"the oracle printed 9 lines ({size:,} bytes)"


def test_the_last_line_is_told_with_what_is_wrong() -> None:
    heard = Heard()
    with pytest.raises(InputProblem, match=r"^it fails; the last line that it printed: 'why\\\\x1b\[2J'$"):
        _fail(heard, "first\nwhy\x1b[2J\n")
    with pytest.raises(InputProblem, match=r"^it fails$"):
        _fail(heard, "")


def _fail(heard: Heard, said: str) -> None:
    with heard.aside():
        print(said, end="")
        raise InputProblem("it fails")


def test_threads_may_be_inside_at_once_and_what_they_print_is_told_once(capfd: pytest.CaptureFixture[str]) -> None:
    heard, both = Heard(), threading.Barrier(2)

    def one() -> None:
        with heard.aside():
            both.wait()
            os.write(1, b"inside\n")  # in one piece, as the other thread writes too
            both.wait()

    threads = [threading.Thread(target=one) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("outside")
    assert capfd.readouterr() == ("outside\n", "")
    assert heard.taken() == (b"inside\n" * 2, 14, 2)


def test_a_stream_that_is_closed_is_none_to_lead_aside() -> None:
    program = (
        "from kerneltrial.inputs.heard import Heard\nimport os\nheard = Heard()\n"
        "with heard.aside():\n    print('said')\n"
        "os.write(2, repr(heard.taken()[0]).encode())\n"
    )
    done = subprocess.run(
        ["sh", "-c", f'exec "{sys.executable}" -c "$0" >&-', program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "b'said\\n'")
