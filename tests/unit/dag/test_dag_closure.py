"""Ctrl-C while imports are looked through is heard afterwards: inside, it would be a panic of the library."""

import os
import signal
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from kerneltrial.dag import closure


@pytest.fixture
def interrupts() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a test in the background has it ignored
    closure._imports.cache_clear()
    yield
    closure._imports.cache_clear()
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_within_is_heard_at_the_end(interrupts: None, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = []

    def interrupted(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        ended.append(True)

    monkeypatch.setitem(sys.modules, "grimp", SimpleNamespace(build_graph=interrupted))
    with pytest.raises(KeyboardInterrupt):
        closure.modules("cost")
    assert ended
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
