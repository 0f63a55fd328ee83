"""From a candidate's source to a binary: one interface for every language, each compile in a child of its own."""

import codecs
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from kerneltrial.build import includes, ptx_text, toolkit
from kerneltrial.build.compilers import Compilers, No, headers
from kerneltrial.build.entries import entries
from kerneltrial.build.messages import Compiled
from kerneltrial.build.nvrtc import STANDARD
from kerneltrial.build.resources import Resources, resources, without_times
from kerneltrial.build.signatures import signatures
from kerneltrial.inputs.resolve import PlanProblem, parameter_sizes
from kerneltrial.inputs.toolchain import toolchain
from kerneltrial.records.build import Abi, Built, Cubin, Entry, NoCubin, NotBuilt
from kerneltrial.records.candidate import Candidate
from kerneltrial.records.contract import Contract
from kerneltrial.records.reason import Reason
from kerneltrial.sandbox.limits import Limits
from kerneltrial.sandbox.nursery import Nursery
from kerneltrial.store.canonical import canonical
from kerneltrial.store.objects import Objects

LIMITS = Limits(wall_s=90.0, cpu_s=60, memory_bytes=4 << 30)
_ABI: dict[str, Abi] = {"cuda_cpp": "pointer", "numba_cuda": "numba_array"}
MAXIMUM_PTX_BYTES = 16 << 20
_DETAIL = 2000


class CompiledShelf(Protocol):
    """Where answers of NVRTC lie between stages that compile the same source."""

    def known(self, request: bytes) -> Compiled | None:
        """What was answered to these bytes; None where they were never asked, or the answer was damaged."""

    def add(self, request: bytes, made: Compiled) -> None:
        """Keep an answer; never fails, as it can be made again."""


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
    shelf
        Where answers of NVRTC lie, if anywhere. Not used with include folders of the contract's own, as headers may
        change.
    """

    def __init__(
        self,
        nursery: Nursery,
        contract: Contract,
        arch: str,
        *,
        folder: Path = Path(),
        limits: Limits = LIMITS,
        shelf: CompiledShelf | None = None,
    ) -> None:
        self._contract = contract
        self._arch = arch
        self._headers = headers(contract, folder)
        self._compilers = Compilers(nursery, arch, limits)
        self._shelf = None if contract.include_folders else shelf

    def build_all(
        self, candidates: Sequence[tuple[Candidate, bytes]], objects: Objects
    ) -> tuple[Built | NotBuilt, ...]:
        """Build candidates, given with their sources, side by side; outcomes are in the order of the candidates."""
        with ThreadPoolExecutor(max_workers=max(1, min(os.cpu_count() or 1, len(candidates)))) as workers:
            return tuple(workers.map(lambda pair: self.build(pair[0], pair[1], objects), candidates))

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
        if isinstance(outcome, Compiled):
            found = self._listed(candidate, outcome)
            if not isinstance(found, No):
                return self._built(candidate, outcome, found, objects)
            outcome = found._replace(log=outcome.log)
        return NotBuilt(
            candidate=candidate.id,
            reason=outcome.reason,
            detail=self._scrubbed(outcome.detail)[:_DETAIL],
            log=objects.put(toolkit.bounded(self._scrubbed(outcome.log or outcome.detail))),
        )

    def _compiled(self, candidate: Candidate, source: bytes) -> Compiled | No:
        fault = includes.source_fault(source)
        if fault:
            return No(Reason.SOURCE_REFUSED, fault)
        source = source.removeprefix(codecs.BOM_UTF8)  # some editors write one; compilers here know none
        try:
            parameter_sizes(candidate.plan, self._contract, _ABI[candidate.language])
        except PlanProblem as problem:
            return No(problem.finding.reason, problem.finding.detail)
        if candidate.language == "numba_cuda":
            return self._compilers.numba(source, signatures(candidate.plan, self._contract))
        fault = includes.include_fault(source.decode(), self._may_include)
        if fault:
            return No(Reason.INCLUDE_REFUSED, fault)
        return self._nvrtc(source)

    def _nvrtc(self, source: bytes) -> Compiled | No:
        """What the compiler answers, or answered before."""
        if self._shelf is None:
            return self._compilers.nvrtc(source, self._options(), self._headers)
        request = canonical([toolchain(), self._options()]) + source
        known = self._shelf.known(request)
        if known is not None:
            return known
        made = self._compilers.nvrtc(source, self._options(), self._headers)
        if isinstance(made, Compiled):
            self._shelf.add(request, made)
        return made

    def _may_include(self, name: str) -> bool:
        return name in STANDARD or includes.known_header(name, self._headers.folders)

    def _options(self) -> tuple[str, ...]:
        return (
            f"--gpu-architecture={self._arch}",
            "--std=c++17",
            "--generate-line-info",
            "--ptxas-options=-v",
            *(f"-D{name}={value}" if value else f"-D{name}" for name, value in self._contract.defines.items()),
            *self._contract.options,
            *(f"-I{folder}" for folder in self._headers.folders),
        )

    def _cleaned(self, made: Compiled) -> Compiled | No:
        """Without this host's paths and without times, so that equal sources give equal records anywhere."""
        if len(made.ptx) > MAXIMUM_PTX_BYTES:
            return No(Reason.COMPILE_LIMIT, f"{len(made.ptx)} bytes of PTX; at most {MAXIMUM_PTX_BYTES} are allowed")
        try:
            ptx = self._scrubbed(made.ptx.decode())
        except UnicodeDecodeError:
            return No(Reason.DOES_NOT_COMPILE, "the PTX is not UTF-8", made.log)
        log = without_times(self._scrubbed(made.log))
        return Compiled(ptx=ptx.encode(), cubin=made.cubin, log=log, compiler=made.compiler)

    def _listed(self, candidate: Candidate, made: Compiled) -> tuple[Entry, ...] | No:
        """The entries that the plan launches, in its order, with the parameters that it passes."""
        abi = _ABI[candidate.language]
        wanted = parameter_sizes(candidate.plan, self._contract, abi)
        text = made.ptx.decode()
        try:
            found = entries(text)
        except ValueError as problem:
            return No(Reason.PARAMETERS_DIFFER, str(problem))
        for name, sizes in wanted.items():
            if name not in found:
                return No(Reason.ENTRY_MISSING, _missing(name, found))
            if found[name] != sizes:
                return No(Reason.PARAMETERS_DIFFER, _differ(name, found[name], sizes))
        used = resources(made.log)
        return tuple(_entry(name, sizes, used.get(name, Resources(0, 0, 0)), text) for name, sizes in wanted.items())

    def _built(self, candidate: Candidate, made: Compiled, found: tuple[Entry, ...], objects: Objects) -> Built:
        options = self._options() if candidate.language == "cuda_cpp" else (f"arch={self._arch}", "lineinfo")
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
        return toolkit.scrub(text, self._headers.names)


def _entry(name: str, sizes: tuple[int, ...], spent: Resources, ptx: str) -> Entry:
    """Shared memory is the larger of what the log says and what the text declares: a linker's log counts otherwise."""
    return Entry(
        name=name,
        parameters=sizes,
        registers=spent.registers,
        shared_bytes=max(spent.shared_bytes, ptx_text.shared_bytes(ptx, name)),
        spilled_bytes=spent.spilled_bytes,
    )


def _missing(name: str, found: Mapping[str, tuple[int, ...]]) -> str:
    there = ", ".join(sorted(found)) or "none"
    return f'the plan launches {name!r}, the binary has: {there}. A C++ kernel needs extern "C" to keep its name'


def _differ(name: str, found: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    return f"{name} takes parameters of {list(found)} bytes, the plan passes {list(wanted)}"
