"""compute-sanitizer's four tools over calls of a binary, each in a process of its own, all in one limited child.

The child is one like a runner's: no network, no secrets, limits on time and files. It starts the tool, and the tool
starts `devices.cuda.sanitized`, which holds the candidate's machine code and nothing else that a proposer wrote.
"""

import json
import os
import shutil
import site
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import msgspec

from kerneltrial.devices.cuda.sanitized import Laid, SanitizeRequest
from kerneltrial.devices.cuda.sanitizer_log import read
from kerneltrial.devices.device import Binary, Values
from kerneltrial.devices.messages import pack
from kerneltrial.devices.runner import view
from kerneltrial.inputs.calls import Call
from kerneltrial.records.record import Record
from kerneltrial.records.sanitizer import TOOLS, Looked, NotLooked, Sanitized, Tool
from kerneltrial.sandbox.conversation import Ended
from kerneltrial.sandbox.limits import Limits
from kerneltrial.sandbox.nursery import Nursery

NAME: Final = "compute-sanitizer"
_USUAL: Final = ("/usr/local/cuda/bin/compute-sanitizer", "/usr/local/cuda/compute-sanitizer/compute-sanitizer")
_LOG_BYTES: Final = 1 << 20
_PRINTED: Final = 50  # reports a tool
# A child has no network: the tool talks to the program through a socket in the file system.
_SOCKETS: Final = {"NV_COMPUTE_SANITIZER_LOCAL_CONNECTION_OVERRIDE": "uds"}
_GRACE_S: Final = 30.0
_LIMITS: Final = {"cpu_s": 3600, "memory_bytes": 0, "file_bytes": 1 << 32, "processes": 64}


class Start(Record):
    """Which program, in which folder, and how long each tool may take."""

    program: str
    folder: str
    limit_s: float


class Said(Record):
    """What one tool gave: its log, the end of what it and the program printed, and why it was ended ("")."""

    log: str
    printed: str
    ended: str


class Sanitizer:
    """Runs calls under every tool (`judge.setup.Sanitizes`), at most `limit_s` seconds each."""

    def __init__(self, nursery: Nursery, arch: str, limit_s: float) -> None:
        self._nursery = nursery
        self._arch = arch
        self._limit_s = limit_s

    def request(self, binary: Binary, asked: Sequence[tuple[str, Call, Values]]) -> bytes:
        """What the program under the tools is handed: equal for equal binaries, calls and values."""
        calls = tuple(Laid(call=call, values=pack(call, values)) for _, call, values in asked)
        return msgspec.msgpack.encode(SanitizeRequest(arch=self._arch, binary=binary, calls=calls))

    def look(self, request: bytes, cases: tuple[str, ...]) -> Sanitized:
        """Run every call, each of a case, under every tool; raises `SandboxProblem` where no child can be had."""
        program = found()
        if not program:
            why = f"{NAME} is not installed: it comes with the CUDA toolkit, and as nvidia-cuda-sanitizer-api"
            return Sanitized(tools=tuple(NotLooked(tool=tool, why=why) for tool in TOOLS))
        with tempfile.TemporaryDirectory(prefix="kerneltrial-sanitizer-", dir="/tmp") as folder:
            said = self._said(Start(program=program, folder=folder, limit_s=self._limit_s), request)
        if isinstance(said, Ended):
            return Sanitized(tools=tuple(NotLooked(tool=tool, why=f"its child: {said.detail[:400]}") for tool in TOOLS))
        return Sanitized(tools=tuple(judged(tool, said[tool], cases) for tool in TOOLS))

    def _said(self, start: Start, request: bytes) -> dict[Tool, Said] | Ended:
        wall_s = start.limit_s + _GRACE_S
        limits = Limits(wall_s=wall_s, **_LIMITS)
        function = f"{__name__}:serve"
        with self._nursery.open(function, msgspec.msgpack.encode(start), limits, view("cuda")) as child:
            answer = child.ask(request, wall_s)
        return answer if isinstance(answer, Ended) else msgspec.msgpack.decode(answer, type=dict[Tool, Said])


def found() -> str:
    """The program's path, on the PATH, beside a toolkit, or in a package of Python's; empty where it is none."""
    packages = [
        path
        for folder in (*site.getsitepackages(), *sys.path)
        for path in sorted(Path(folder or ".").glob(f"nvidia/*/compute-sanitizer/{NAME}"))
    ]
    for place in (shutil.which(NAME), *_USUAL, *packages):
        if place and os.access(place, os.X_OK):
            return str(place)
    return ""


def judged(tool: Tool, said: Said, cases: tuple[str, ...]) -> Looked | NotLooked:
    """What a tool's log says; one that was cut short, or did not see every call, has not looked."""
    told = list(_told(said.printed))
    started = [line for line in told if "call" in line]
    buffers = {at: (name, size) for line in started for name, (at, size) in line["buffers"].items()}
    log = read(said.log, buffers)
    if log.faults:
        where = cases[: max(1, len(started))]
        over = f"case {where[-1]}" if tool == "memcheck" else f"cases {', '.join(where)}"
        named = tuple(msgspec.structs.replace(f, detail=f"{tool}, {over}: {f.detail}") for f in log.faults)
        return Looked(tool=tool, cases=where, findings=named, unchecked=())
    ended = next((line["ended"] for line in told if "ended" in line), None)
    why = said.ended or (ended or "") or log.trouble
    if not why and (ended is None or len(started) != len(cases)):
        why = f"the program under it ended early: {said.printed[-300:].strip()}"
    if why:
        return NotLooked(tool=tool, why=_one_line(why))
    warned = tuple(msgspec.structs.replace(w, detail=f"{tool} warns: {w.detail}") for w in log.warnings)
    return Looked(tool=tool, cases=cases, findings=(), unchecked=warned)


def _told(printed: str) -> Iterator[dict[str, Any]]:
    for line in printed.splitlines():
        if line.startswith("{"):
            try:
                yield json.loads(line)
            except ValueError:
                continue


def _one_line(text: str) -> str:
    return " ".join(text.split())[:400]


def serve(argument: bytes, requests: Any) -> None:
    """The child's function: all tools side by side, each with its own copy of the program."""
    start = msgspec.msgpack.decode(argument, type=Start)
    content = requests.get()
    if content is None:
        return
    asked = Path(start.folder) / "request"
    asked.write_bytes(content)
    with ThreadPoolExecutor(len(TOOLS)) as pool:
        said = dict(zip(TOOLS, pool.map(lambda tool: run_tool(start, tool, asked), TOOLS), strict=True))
    requests.reply(msgspec.msgpack.encode(said))


def run_tool(start: Start, tool: Tool, asked: Path) -> Said:
    """One tool over the request in the file `asked`."""
    log = Path(start.folder) / tool
    program = [sys.executable, "-P", "-m", "kerneltrial.devices.cuda.sanitized", str(asked)]
    words = [*command(start.program, tool, log), *program]
    try:
        done = subprocess.run(
            words,
            capture_output=True,
            timeout=start.limit_s,
            check=False,
            cwd=start.folder,
            env={**os.environ, **_SOCKETS},
        )
    except subprocess.TimeoutExpired:
        return Said(log=_beginning(log), printed="", ended=f"it did not end within {start.limit_s:g} s")
    except OSError as error:
        return Said(log="", printed="", ended=f"it cannot be started: {error}")
    printed = (done.stdout[-_LOG_BYTES:] + b"\n" + done.stderr[-4000:]).decode(errors="replace")
    return Said(log=_beginning(log), printed=printed, ended="")


def command(program: str, tool: Tool, log: Path) -> list[str]:
    """Words that start the tool; the program and its arguments follow them."""
    words = [
        program, "--tool", tool, "--log-file", str(log), "--print-limit", str(_PRINTED), "--show-backtrace", "no",
        "--target-processes", "application-only",
    ]  # fmt: skip
    # room behind each buffer, so that what runs over does not land in the next one; and no word of our own driver calls
    return words + (["--padding", "512", "--report-api-errors", "no"] if tool == "memcheck" else [])


def _beginning(log: Path) -> str:
    try:
        with log.open("rb") as opened:
            return opened.read(_LOG_BYTES).decode(errors="replace")
    except OSError:
        return ""
