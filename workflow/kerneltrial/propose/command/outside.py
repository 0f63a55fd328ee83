"""Run the program in a confined child, judge its tries, and keep what came of it.

What the program sees: a folder of its own with prompt.md, schema.json and its files; the system's programs and Python
to execute; no network, no other file of the host, no variable of its environment.
"""

import os
import sys
import sysconfig
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

import kerneltrial
from kerneltrial.propose.command.run import Given, Run, Runs
from kerneltrial.propose.prompt.scrub import scrub
from kerneltrial.propose.proposer import Draft, TriedDraft
from kerneltrial.propose.reply_schema import draft_of, reply_schema
from kerneltrial.records.asking import Command
from kerneltrial.records.proposal import TryRight, TryWrong, Unusable
from kerneltrial.records.reason import Reason
from kerneltrial.sandbox.conversation import Conversation
from kerneltrial.sandbox.endings import Ended
from kerneltrial.sandbox.limits import Limits, View
from kerneltrial.sandbox.nursery import Nursery
from kerneltrial.sandbox.scratch import scratch_folder
from kerneltrial.store.canonical import canonical, digest
from kerneltrial.store.printed import printed

INSIDE = "kerneltrial.propose.command.inside"
MAXIMUM_FILE_BYTES = 256_000_000
LONGEST_REPLY = 8_000_000
_GRACE_S = 5.0
_ASKED_TOO_OFTEN = 50  # tries beyond the bound that end the program
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")


@dataclass(frozen=True)
class Judged:
    """A draft's outcome, which is recorded, and what its program is told beside it: JSON types, by name."""

    outcome: TryRight | TryWrong
    told: Mapping[str, Any] = field(default_factory=dict)


Judge = Callable[[Draft], Judged]


@dataclass(frozen=True)
class Program:
    """An external program. `files` are put beside the prompt, by relative path."""

    command: Command
    files: Mapping[str, bytes]
    languages: tuple[str, ...]
    runs: Runs

    def propose(self, prompt: str, sample: int, judge: Judge) -> Run:
        """Return the run on this prompt: the recorded one, or a new one whose tries `judge` judges."""
        schema = canonical(reply_schema(self.languages))
        given = Given(
            command=self.command,
            program={name: digest(content) for name, content in sorted(self.files.items())},
            prompt=digest(prompt.encode()),
            schema=digest(schema),
            sample=sample,
        )
        found = self.runs.find(given)
        if found is not None:
            return found
        files = {**self.files, "prompt.md": prompt.encode(), "schema.json": schema}
        return self.runs.keep(self._run(given, files, judge))

    def draft(self, run: Run, parents: tuple[str, ...]) -> Draft | Unusable:
        """The draft that a run left, or why there is none."""
        if run.problem:
            return Unusable(reason=Reason.UNUSABLE_REPLY, detail=run.problem)
        return draft_of(_json(run.left.encode()), self.languages, parents)

    def _run(self, given: Given, files: Mapping[str, bytes], judge: Judge) -> Run:
        with scratch_folder() as folder, Nursery((INSIDE,)) as nursery:
            order = {
                "words": list(self.command.words),
                "folder": str(folder),
                "files": dict(files),
                "wall_s": float(self.command.wall_s),
                "python_path": str(_packages()),
            }
            with self._opened(nursery, folder, order) as child:
                return self._conversation(given, child, judge, folder)

    def _opened(self, nursery: Nursery, folder: Path, order: Mapping[str, Any]) -> Conversation:
        command = self.command
        limits = Limits(
            wall_s=command.wall_s + 2 * _GRACE_S,
            cpu_s=command.cpu_s,
            memory_bytes=command.memory_bytes,
            file_bytes=MAXIMUM_FILE_BYTES,
            processes=command.processes,
        )
        execute = (*_SYSTEM, *_python(), str(folder))
        view = View(read=(str(_packages()),), write=(str(folder),), execute=execute)
        argument = msgspec.msgpack.encode(order)
        return nursery.open(f"{INSIDE}:serve", argument, limits, view, LONGEST_REPLY)

    def _conversation(self, given: Given, child: Conversation, judge: Judge, folder: Path) -> Run:
        """Answer tries until the program ends."""
        tries: list[TriedDraft | Unusable] = []
        deadline = time.monotonic() + self.command.wall_s + _GRACE_S
        answer = b""
        for asked in range(self.command.tries + _ASKED_TOO_OFTEN):
            told = child.ask(answer, max(0.1, deadline - time.monotonic()))
            if isinstance(told, Ended):
                return Run(given=given, tries=tuple(tries), left="", problem=_said(told.detail, folder))
            event = _event(told)
            if event["kind"] == "end":
                return self._ended(given, tries, event, folder)
            if asked < self.command.tries:
                tried, told_of = self._judged(event["draft"], judge)
                tries.append(tried)
                answer = _answer(tried, told_of, self.command.tries - len(tries))
            else:
                answer = canonical({"verdict": "none", "detail": "no tries are left: write proposal.json and end"})
        return Run(given=given, tries=tuple(tries), left="", problem="the program asked for tries without an end")

    def _judged(self, data: bytes, judge: Judge) -> tuple[TriedDraft | Unusable, Mapping[str, Any]]:
        draft = draft_of(_json(data), self.languages)
        if isinstance(draft, Unusable):
            return draft, {}
        judged = judge(draft)
        return TriedDraft(draft=draft, outcome=judged.outcome), judged.told

    def _ended(self, given: Given, tries: list[TriedDraft | Unusable], event: dict[str, Any], folder: Path) -> Run:
        left = event["left"].decode(errors="replace")
        how = "was still running at its limit" if event["status"] is None else f"ended with status {event['status']}"
        said = _said(event["output"].decode(errors="replace"), folder)
        problem = "" if left.strip() else f"the program {how} and left no proposal.json; it said: {said or 'nothing'}"
        return Run(given=given, tries=tuple(tries), left=left, problem=problem)


def _answer(tried: TriedDraft | Unusable, more: Mapping[str, Any], left: int) -> bytes:
    outcome: object = tried.outcome if isinstance(tried, TriedDraft) else tried
    told: dict[str, Any] = msgspec.to_builtins(outcome)
    if isinstance(tried, Unusable):
        told = {"verdict": "wrong", "stage": "propose", **told}
    return canonical({**more, **told, "tries_left": left})


def _event(told: bytes) -> dict[str, Any]:
    """What the child says; anything else than a try or an end is taken as an end without a proposal."""
    nothing: dict[str, Any] = {"kind": "end", "status": None, "left": b"", "output": b"it broke the conversation"}
    try:
        event = msgspec.msgpack.decode(told)
    except (msgspec.DecodeError, RecursionError):
        return nothing
    if not isinstance(event, dict):
        return nothing
    if event.get("kind") == "try" and isinstance(event.get("draft"), bytes):
        return event
    status = event.get("status")
    fine = all(isinstance(event.get(name), bytes) for name in ("left", "output")) and isinstance(status, int | None)
    return event if event.get("kind") == "end" and fine else nothing


def _json(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return None


def _said(text: str, folder: Path) -> str:
    return printed(scrub(" ".join(text.split()), (folder,)))[-600:]


def _packages() -> Path:
    """The folder that this package lies in: Python must be able to list it to find the package."""
    return Path(os.path.abspath(kerneltrial.__file__)).parents[1]


def _python() -> tuple[str, ...]:
    """Where this Python lies, so that the program can start it."""
    places = (sys.prefix, sys.base_prefix, os.path.dirname(os.path.realpath(sys.executable)))
    return tuple(dict.fromkeys([*places, sysconfig.get_path("stdlib")]))
