"""From a candidate's source to a binary: one interface for every language, each compile in a child of its own."""

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import msgspec

from kerneltrial.build import includes, ptx_text, toolkit
from kerneltrial.build.entries import entries
from kerneltrial.build.messages import Compiled, CompilerReply, NumbaRequest, NvrtcRequest, Refusal
from kerneltrial.build.problem import BuildProblem
from kerneltrial.build.resources import Resources, resources, without_times
from kerneltrial.build.signatures import signatures
from kerneltrial.inputs.resolve import PlanProblem, parameter_sizes
from kerneltrial.records.build import Abi, Built, Cubin, Entry, NoCubin, NotBuilt
from kerneltrial.records.candidate import Candidate
from kerneltrial.records.contract import Contract
from kerneltrial.records.device import DeviceKind
from kerneltrial.records.reason import Reason
from kerneltrial.sandbox.conversation import Ended
from kerneltrial.sandbox.limits import Limits, View
from kerneltrial.sandbox.nursery import Nursery
from kerneltrial.store.objects import Objects

LIMITS = Limits(wall_s=120.0, cpu_s=100, memory_bytes=4 << 30)
_ABI: dict[str, Abi] = {"cuda_cpp": "pointer", "numba_cuda": "numba_array"}
_PREPARE = {"cuda_cpp": "kerneltrial.build.nvrtc:prepare", "numba_cuda": "kerneltrial.build.numba_ptx:prepare"}
_DETAIL = 2000


def preload(languages: Iterable[str]) -> tuple[str, ...]:
    """What a nursery should hold before it compiles these languages."""
    return tuple(_PREPARE[language] for language in languages)


class _No(NamedTuple):
    """Why there is no binary."""

    reason: Reason
    detail: str
    log: str = ""


class _Sources(NamedTuple):
    """Where headers are found, and what their folders are called in records."""

    folders: tuple[Path, ...]
    names: dict[str, str]


class Builder:
    """Compiles candidates for one contract and one architecture.

    Parameters
    ----------
    nursery
        Where children come from; `preload` says what it should hold.
    arch
        Such as sm_80 or sm_90a.
    folder
        What the contract's include folders are relative to.
    """

    def __init__(
        self,
        nursery: Nursery,
        contract: Contract,
        arch: str,
        device_kind: DeviceKind,
        *,
        folder: Path = Path(),
        limits: Limits = LIMITS,
    ) -> None:
        self._nursery = nursery
        self._contract = contract
        self._arch = arch
        self._kind = device_kind
        self._limits = limits
        self._sources = _sources(contract, folder)

    def build_all(
        self, candidates: Sequence[tuple[Candidate, bytes]], objects: Objects
    ) -> tuple[Built | NotBuilt, ...]:
        """Build candidates, given with their sources, side by side; outcomes are in the order of the candidates."""
        with ThreadPoolExecutor(max_workers=max(1, min(os.cpu_count() or 1, len(candidates)))) as workers:
            return tuple(workers.map(lambda pair: self.build(*pair, objects), candidates))

    def build(self, candidate: Candidate, source: bytes, objects: Objects) -> Built | NotBuilt:
        """Build one candidate. `Built.same_ptx_as` is left empty.

        Raises
        ------
        BuildProblem
            Where the compiler is absent or refuses the contract's options.
        """
        outcome = self._compiled(candidate, source)
        if isinstance(outcome, Compiled):
            outcome = self._cleaned(outcome)
            found = self._checked(candidate, outcome)
            if isinstance(found, tuple) and not isinstance(found, _No):
                return self._built(candidate, outcome, found, objects)
            outcome = found._replace(log=outcome.log)
        return NotBuilt(
            candidate=candidate.id,
            reason=outcome.reason,
            detail=self._scrubbed(outcome.detail)[:_DETAIL],
            log=objects.put(toolkit.bounded(self._scrubbed(outcome.log or outcome.detail))),
        )

    def _compiled(self, candidate: Candidate, source: bytes) -> Compiled | _No:
        fault = includes.source_fault(source)
        if fault:
            return _No(Reason.SOURCE_REFUSED, fault)
        try:
            parameter_sizes(candidate.plan, self._contract, _ABI[candidate.language])
        except PlanProblem as problem:
            return _No(problem.finding.reason, problem.finding.detail)
        if candidate.language == "numba_cuda":
            kernels = signatures(candidate.plan, self._contract)
            request = msgspec.msgpack.encode(NumbaRequest(source=source, kernels=kernels, arch=self._arch))
            return self._ask("kerneltrial.build.numba_ptx:serve", request, View(read=_numba_reads()))
        fault = includes.include_fault(
            source.decode(), lambda name: includes.known_header(name, self._sources.folders)
        )
        if fault:
            return _No(Reason.INCLUDE_REFUSED, fault)
        request = msgspec.msgpack.encode(NvrtcRequest(source=source, options=self._options()))
        view = View(read=tuple(map(str, self._sources.folders)), python=False)
        return self._ask("kerneltrial.build.nvrtc:serve", request, view)

    def _options(self) -> tuple[str, ...]:
        return (
            f"--gpu-architecture={self._arch}",
            "--std=c++17",
            "--generate-line-info",
            "--ptxas-options=-v",
            *(f"-D{name}={value}" if value else f"-D{name}" for name, value in self._contract.defines.items()),
            *self._contract.options,
            *(f"-I{folder}" for folder in self._sources.folders),
        )

    def _ask(self, function: str, request: bytes, view: View) -> Compiled | _No:
        with self._nursery.open(function, b"", self._limits, view) as conversation:
            answer = conversation.ask(request, self._limits.wall_s)
        if isinstance(answer, Ended):
            return _ended(answer)
        try:
            reply = msgspec.msgpack.decode(answer, type=CompilerReply)
        except msgspec.MsgspecError as problem:  # a Python candidate can write whatever it likes to its socket
            return _No(Reason.DOES_NOT_COMPILE, f"the child gave no proper answer: {problem}")
        return reply if isinstance(reply, Compiled) else _refused(reply)

    def _cleaned(self, made: Compiled) -> Compiled:
        """Without this host's paths and without times, so that equal sources give equal records anywhere."""
        return msgspec.structs.replace(
            made,
            ptx=self._scrubbed(made.ptx.decode()).encode(),
            log=without_times(self._scrubbed(made.log)),
        )

    def _checked(self, candidate: Candidate, made: Compiled) -> tuple[Entry, ...] | _No:
        """The entries that the plan launches, in its order, with the parameters that it passes."""
        abi = _ABI[candidate.language]
        wanted = parameter_sizes(candidate.plan, self._contract, abi)
        text = made.ptx.decode()
        found, used = entries(text), resources(made.log)
        listed = []
        for name, sizes in wanted.items():
            if name not in found:
                return _No(Reason.ENTRY_MISSING, _missing(name, found))
            if found[name] != sizes:
                return _No(Reason.PARAMETERS_DIFFER, _differ(name, found[name], sizes))
            spent = used.get(name, Resources(0, 0, 0))
            shared = spent.shared_bytes if abi == "pointer" else ptx_text.shared_bytes(text, name)
            listed.append(
                Entry(
                    name=name,
                    parameters=sizes,
                    registers=spent.registers,
                    shared_bytes=shared,
                    spilled_bytes=spent.spilled_bytes,
                )
            )
        return tuple(listed)

    def _built(self, candidate: Candidate, made: Compiled, found: tuple[Entry, ...], objects: Objects) -> Built:
        if self._kind == "cuda" and not made.cubin:
            raise BuildProblem(f"build: no machine code for {self._arch}; install nvidia-nvjitlink of the same CUDA")
        options = self._options() if candidate.language == "cuda_cpp" else ("lineinfo", f"arch={self._arch}")
        return Built(
            candidate=candidate.id,
            abi=_ABI[candidate.language],
            ptx=objects.put(made.ptx),
            cubin=Cubin(digest=objects.put(made.cubin), arch=self._arch) if made.cubin else NoCubin(),
            entries=found,
            compiler=made.compiler,
            options=tuple(self._scrubbed(option) for option in options),
            log=objects.put(toolkit.bounded(made.log)),
            same_ptx_as=(),
        )

    def _scrubbed(self, text: str) -> str:
        return toolkit.scrub(text, self._sources.names)


def _sources(contract: Contract, folder: Path) -> _Sources:
    headers = toolkit.include_folders()
    own = {word: (folder / word).resolve() for word in contract.include_folders}
    absent = [word for word, path in own.items() if not path.is_dir()]
    if absent:
        raise BuildProblem(f"build: include folder {absent[0]!r} of the contract is no folder (looked in {folder})")
    return _Sources((*own.values(), *headers), toolkit.path_names(headers, own))


def _numba_reads() -> tuple[str, ...]:
    """numba reads device code and libraries of the toolkit, of wheels or of the system."""
    return tuple(map(str, (*toolkit.nvidia_packages(), *toolkit.system_toolkits())))


def _ended(ended: Ended) -> _No:
    if ended.how in ("wall", "cpu", "memory"):
        return _No(Reason.COMPILE_LIMIT, ended.detail, ended.detail)
    return _No(Reason.COMPILER_DIED, ended.detail, ended.detail)


def _refused(reply: Refusal) -> _No:
    if reply.why == "absent":
        raise BuildProblem(f"build: {reply.detail}")
    reason = {
        "error": Reason.DOES_NOT_COMPILE,
        "limit": Reason.COMPILE_LIMIT,
        "missing": Reason.ENTRY_MISSING,
    }[reply.why]
    return _No(reason, reply.detail, reply.log)


def _missing(name: str, found: Mapping[str, tuple[int, ...]]) -> str:
    there = ", ".join(sorted(found)) or "none"
    return f"the plan launches {name!r}, the binary has: {there}. A C++ kernel needs extern \"C\" to keep its name"


def _differ(name: str, found: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    return f"{name} takes parameters of {list(found)} bytes, the plan passes {list(wanted)}"
