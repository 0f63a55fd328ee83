"""The compilers, each in a child of its own: what goes in, what comes out, and how their ends are told."""

import functools
import importlib.metadata
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from kerneltrial.build import toolkit
from kerneltrial.build.messages import (
    AssemblyRequest,
    Compiled,
    CompilerReply,
    NumbaParameter,
    NumbaRequest,
    NvrtcRequest,
    Refusal,
)
from kerneltrial.build.problem import BuildProblem
from kerneltrial.records.contract import Contract
from kerneltrial.records.reason import Reason
from kerneltrial.records.record import Record
from kerneltrial.sandbox.conversation import Ended
from kerneltrial.sandbox.limits import Limits, View
from kerneltrial.sandbox.nursery import Nursery

_LONGEST_REPLY = 128 << 20
_REASONS = {"error": Reason.DOES_NOT_COMPILE, "limit": Reason.COMPILE_LIMIT, "missing": Reason.ENTRY_MISSING}


class No(NamedTuple):
    """Why there is no binary."""

    reason: Reason
    detail: str
    log: str = ""


class Headers(NamedTuple):
    """Where headers are found, and what their folders are called in records."""

    folders: tuple[Path, ...]
    names: dict[str, str]


def headers(contract: Contract, folder: Path) -> Headers:
    """Folders of the contract, relative to `folder`, and of the toolkit. Raises `BuildProblem` where one is absent."""
    own = {word: (folder / word).resolve() for word in contract.include_folders}
    absent = [word for word, path in own.items() if not path.is_dir()]
    if absent:
        raise BuildProblem(f"build: include folder {absent[0]!r} of the contract is no folder (looked in {folder})")
    found = toolkit.include_folders()
    return Headers((*own.values(), *found), toolkit.path_names(found, own))


class Compilers:
    """NVRTC, numba and nvJitLink behind a nursery, for one architecture."""

    def __init__(self, nursery: Nursery, arch: str, limits: Limits) -> None:
        self._nursery = nursery
        self._arch = arch
        self._limits = limits

    def nvrtc(self, source: bytes, options: tuple[str, ...], sources: Headers) -> Compiled | No:
        """Compile CUDA C++. The child reads the folders with headers and nothing else."""
        view = View(read=tuple(map(str, sources.folders)), python=False)
        return self._ask("kerneltrial.build.nvrtc:serve", NvrtcRequest(source=source, options=options), view)

    def numba(self, source: bytes, kernels: Mapping[str, tuple[NumbaParameter, ...]]) -> Compiled | No:
        """Compile Python, then assemble. Of the child that ran the candidate only the PTX is believed.

        Raises
        ------
        BuildProblem
            numba cannot compile on this host.
        """
        if self._numba_absent:
            raise BuildProblem(f"build: {self._numba_absent}")
        request = NumbaRequest(source=source, kernels=dict(kernels), arch=self._arch)
        made = self._ask("kerneltrial.build.numba_ptx:serve", request, numba_view(), trusted=False)
        if isinstance(made, No):
            return made
        version = f"numba-cuda {importlib.metadata.version('numba-cuda')}"
        return self.assembled(Compiled(ptx=made.ptx, cubin=b"", log="", compiler=version))

    def assembled(self, made: Compiled) -> Compiled | No:
        """Add machine code and resources to PTX."""
        request = AssemblyRequest(ptx=made.ptx, arch=self._arch)
        code = self._ask("kerneltrial.build.nvjitlink:serve", request, View(read=_packages(), python=False))
        if isinstance(code, No):
            return code
        return Compiled(ptx=made.ptx, cubin=code.cubin, log=code.log, compiler=f"{made.compiler}, {code.compiler}")

    @functools.cached_property
    def _numba_absent(self) -> str:
        """What this host lacks for numba, asked before any candidate runs: a candidate could say anything."""
        function = "kerneltrial.build.numba_ptx:tell_absent"
        with self._nursery.open(function, b"", self._limits, numba_view()) as conversation:
            answer = conversation.ask(b"", self._limits.wall_s)
        return f"numba cannot be started: {answer.detail}" if isinstance(answer, Ended) else answer.decode()

    def _ask(self, function: str, request: Record, view: View, trusted: bool = True) -> Compiled | No:
        with self._nursery.open(function, b"", self._limits, view, _LONGEST_REPLY) as conversation:
            answer = conversation.ask(msgspec.msgpack.encode(request), self._limits.wall_s)
        if isinstance(answer, Ended):
            return _ended(answer, trusted)
        try:
            reply = msgspec.msgpack.decode(answer, type=CompilerReply)
        except msgspec.MsgspecError as problem:  # a Python candidate can write whatever it likes to its socket
            return No(Reason.DOES_NOT_COMPILE, f"the compiler's process gave no proper answer: {problem}")
        if isinstance(reply, Compiled):
            return reply
        return _refused(reply, trusted)


def _packages() -> tuple[str, ...]:
    """Where the toolkit's libraries and device code lie: wheels, or the system's toolkit."""
    return tuple(map(str, (*toolkit.nvidia_packages(), *toolkit.system_toolkits())))


def numba_view() -> View:
    """What a child sees that runs a Python candidate."""
    return View(read=_packages())


def _ended(ended: Ended, trusted: bool) -> No:
    if ended.how in ("wall", "cpu", "memory"):
        return No(Reason.COMPILE_LIMIT, ended.detail, ended.detail)
    if ended.how == "exit" and not trusted:  # a compiler that breaks is killed by a signal; this one was left
        return No(Reason.DOES_NOT_COMPILE, f"the source ended the process that compiles it: {ended.detail}")
    return No(Reason.COMPILER_DIED, ended.detail, ended.detail)


def _refused(reply: Refusal, trusted: bool) -> No:
    if reply.why == "absent" and trusted:
        raise BuildProblem(f"build: {reply.detail}")
    return No(_REASONS.get(reply.why, Reason.DOES_NOT_COMPILE), reply.detail, reply.log)
