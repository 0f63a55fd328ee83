"""What is kept for a whole run serves nurseries as processes of their own would; where it cannot, they start these."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kerneltrial.sandbox import kept, spent
from kerneltrial.sandbox.conversation import Ended
from kerneltrial.sandbox.limits import Limits, View
from kerneltrial.sandbox.nursery import Nursery
from kerneltrial.sandbox.problem import SandboxProblem

LIMITS = Limits(wall_s=20, cpu_s=10, memory_bytes=1 << 27)


@contextlib.contextmanager
def keeping(*names: str) -> Iterator[None]:
    kept.keep(names)
    try:
        yield
    finally:
        kept._kept.pop(names).close()  # it ends then


def test_what_a_kept_process_holds_beyond_comes_after() -> None:
    with keeping("sandbox_children", "json"):
        for wanted, own in ((("sandbox_children",), False), (("json",), True), ((), True)):
            with Nursery(wanted) as opened:
                assert (opened._server is not None) == own, wanted


def test_what_children_of_a_kept_process_use_is_in_the_account() -> None:
    before = spent.seconds()
    with keeping("sandbox_children"), Nursery(["sandbox_children"]) as opened:
        limits = Limits(wall_s=60, cpu_s=1, memory_bytes=1 << 27)
        with opened.open("sandbox_children:endless_loop", b"", limits, View()) as conversation:
            answer = conversation.ask(b"go", 30)
        assert isinstance(answer, Ended)
        assert spent.seconds() == before
    assert 0.9 < spent.seconds() - before < 10


def test_a_kept_process_that_cannot_import_is_told_of_by_ones_own() -> None:
    with (
        keeping("no_such_module"),
        Nursery(["no_such_module"]) as opened,
        pytest.raises(SandboxProblem, match="no_such_module"),
    ):
        opened.open("sandbox_children:echo", b"", LIMITS, View())


def test_a_kept_process_that_was_killed_is_replaced(tmp_path: Path) -> None:
    with keeping("sandbox_children"):
        with (
            Nursery(["sandbox_children"]) as opened,
            opened.open("sandbox_children:attempt", b"", LIMITS, View()) as conversation,
        ):
            assert conversation.ask(b"remember", 5) == b"1"
        (there,) = _keepers()
        os.kill(there, signal.SIGKILL)
        os.waitpid(there, 0)
        with (
            Nursery(["sandbox_children"]) as opened,
            opened.open("sandbox_children:attempt", b"", LIMITS, View()) as conversation,
        ):
            assert conversation.ask(b"remember", 5) == b"1"


def _keepers() -> list[int]:
    """Children of this process that keep what nurseries need."""
    found = []
    for listed in Path("/proc/self/task").glob("*/children"):
        for pid in listed.read_text().split():
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if b"kerneltrial.sandbox.server" in words and words[words.index(b"kerneltrial.sandbox.server") + 4] == b"1":
                found.append(int(pid))
    return found
