"""The parent's side of the child that holds a PyTorch problem: its graph, and its answers for values."""

import importlib.util
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from kerneltrial.commands.importing.messages import Answer, Cannot, Evaluate, Evaluated, Problem, Traced
from kerneltrial.inputs.installing import install
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.records.record import Record
from kerneltrial.sandbox.conversation import Conversation, Ended
from kerneltrial.sandbox.limits import Limits, View
from kerneltrial.sandbox.nursery import Nursery

CHILD = "kerneltrial.commands.importing.child"
_SECONDS = 120
MOST_NUMBERS = 1 << 26  # of all outputs, each of 8 bytes in an answer
_LONGEST = 8 * MOST_NUMBERS + (1 << 16)  # of an answer, in bytes
_LONGEST_GRAPH = 1 << 26
_MOST_MEMORY = 16 << 30
_PROCESSOR = ("/proc/cpuinfo", "/sys/devices/system/cpu")  # torch asks what the processor knows
_NOT_THERE = f"torch is not installed: {install('torch')}"


def require_torch() -> None:
    """Raise `InputProblem` where torch is not installed."""
    if importlib.util.find_spec("torch") is None:
        raise InputProblem(f"import: {_NOT_THERE}")


class ProcessEnded(InputProblem):
    """The problem's process is gone, or speaks no more as it should: nothing further can be asked of it."""


class Asked:
    """One problem in its child."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    def traced(self) -> Traced:
        """The model's graph; raises `InputProblem` with why there is none."""
        answer = self._answer(b"", _LONGEST_GRAPH)
        if not isinstance(answer, Traced):
            raise ProcessEnded("its process gave no graph")
        return answer

    def outputs(self, values: Mapping[str, NDArray[Any]], double: bool) -> tuple[bytes, ...]:
        """The model's outputs as bytes of float64 or int64; raises `InputProblem` where it raises."""
        given = {name: np.ascontiguousarray(one).tobytes() for name, one in values.items()}
        answer = self._answer(msgspec.msgpack.encode(Evaluate(values=given, double=double)))
        if not isinstance(answer, Evaluated):
            raise ProcessEnded("its process gave no outputs")
        return answer.outputs

    def _answer(self, request: bytes, longest: int = _LONGEST) -> Record:
        reply = self._conversation.ask(request, _SECONDS)
        if isinstance(reply, Ended):
            raise ProcessEnded(f"its process ended: {reply.detail}")
        if len(reply) > longest:
            raise ProcessEnded(f"its process gave no proper answer: {len(reply)} bytes")
        try:
            answer = msgspec.msgpack.decode(reply, type=Answer)
        except (msgspec.MsgspecError, RecursionError) as fault:  # the problem's code can write what it likes
            raise ProcessEnded(f"its process gave no proper answer: {fault}") from None
        if isinstance(answer, Cannot):
            raise InputProblem(answer.why)
        return answer


def _limits() -> Limits:
    """Of a problem's process: at most half of the machine's memory, since the parent's oracle needs some too."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Limits(wall_s=600, cpu_s=300, memory_bytes=min(_MOST_MEMORY, whole // 2))


@contextmanager
def nursery() -> Iterator[Nursery]:
    """A clean process that has imported torch."""
    with Nursery((f"{CHILD}:prepare",)) as opened:
        yield opened


@contextmanager
def asking(opened: Nursery, source: str) -> Iterator[Asked]:
    """A child with this problem: no network, no file of the user's, none that it could write."""
    spec = importlib.util.find_spec("torch")
    packages = () if spec is None or spec.origin is None else (str(Path(spec.origin).resolve().parents[1]),)
    view = View(read=(*packages, *_PROCESSOR))
    argument = msgspec.msgpack.encode(Problem(source=source))
    with opened.open(f"{CHILD}:serve", argument, _limits(), view, _LONGEST) as conversation:
        yield Asked(conversation)
