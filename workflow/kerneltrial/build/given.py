"""A baseline that is given as it runs in production: PTX, or machine code, with its launch plan and no source.

It is trusted, as the baseline always is, so what is wrong with it is one line for a person and no candidate's fault.
"""

from pathlib import PurePath
from typing import Literal

from kerneltrial.build import cubin, ptx_text
from kerneltrial.build.compilers import Compilers, No
from kerneltrial.build.entries import entries
from kerneltrial.build.messages import Compiled
from kerneltrial.build.problem import BuildProblem
from kerneltrial.build.resources import Resources, resources, without_times
from kerneltrial.devices.cuda.probe import runs_here
from kerneltrial.inputs.resolve import PlanProblem, parameter_sizes
from kerneltrial.records.build import Built, Cubin, Entry, NoCubin
from kerneltrial.records.contract import Contract
from kerneltrial.records.device import Device
from kerneltrial.records.plan import LaunchPlan
from kerneltrial.store.canonical import canonical, digest
from kerneltrial.store.objects import Objects

Kind = Literal["ptx", "cubin"]
Sizes = dict[str, tuple[int, ...]]
PREPARE = ("kerneltrial.build.nvjitlink:prepare",)


def kind_of(path: PurePath) -> Kind | None:
    """What a file holds by its name; None for a source."""
    kinds: dict[str, Kind] = {".ptx": "ptx", ".cubin": "cubin"}
    return kinds.get(path.suffix)


class Given:
    """Takes binaries for one contract and device.

    Parameters
    ----------
    compilers : Compilers
        Assembles PTX for the device's architecture.
    """

    def __init__(self, compilers: Compilers, contract: Contract, device: Device) -> None:
        self._compilers, self._contract, self._device = compilers, contract, device

    def build(self, kind: Kind, content: bytes, plan: LaunchPlan, objects: Objects) -> Built:
        """The build of a binary that is there already.

        Raises
        ------
        BuildProblem
            It is no such binary, is not for this device, or lacks what the plan launches.
        """
        wanted = self._wanted(plan)
        made, found = (self._from_ptx if kind == "ptx" else self._from_cubin)(content, wanted)
        identity = {"language": kind, "source": digest(content), "plan": plan}
        return Built(
            candidate=digest(canonical(identity)),
            abi="pointer",
            ptx=objects.put(made.ptx),
            cubin=Cubin(digest=objects.put(made.cubin), arch=self._device.arch) if made.cubin else NoCubin(),
            entries=found,
            compiler=made.compiler,
            options=(),
            log=objects.put(without_times(made.log).encode()),
            same_ptx_as=(),
        )

    def _wanted(self, plan: LaunchPlan) -> Sizes:
        try:
            return parameter_sizes(plan, self._contract, "pointer")
        except PlanProblem as problem:
            raise BuildProblem(str(problem)) from None

    def _from_ptx(self, content: bytes, wanted: Sizes) -> tuple[Compiled, tuple[Entry, ...]]:
        """On `cpu` it is interpreted as it is; a card gets it assembled for its architecture, by no driver."""
        try:
            text = content.rstrip(b"\0").decode()
            there = entries(text)
        except ValueError as problem:  # no UTF-8, or a parameter of an unknown form
            raise BuildProblem(f"is no PTX text that can be read: {problem}") from None
        if ".version" not in text or not there:
            raise BuildProblem("is no PTX text with a kernel in it (.version and .entry are looked for)")
        _require(wanted, there)
        made = Compiled(ptx=text.encode(), cubin=b"", log="", compiler="none: PTX as it was given")
        if self._device.kind == "cuda":
            assembled = self._compilers.assembled(made)
            if isinstance(assembled, No):
                raise BuildProblem(f"does not assemble for {self._device.arch}: {assembled.detail}")
            made = Compiled(
                ptx=made.ptx,
                cubin=assembled.cubin,
                log=assembled.log,
                compiler=f"{assembled.compiler.rpartition(', ')[2]}, of PTX as it was given",
            )
        used = resources(made.log)
        listed = [(name, used.get(name, Resources(0, 0, 0)), _shared(text, name)) for name in wanted]
        return made, tuple(
            Entry(
                name=name,
                parameters=wanted[name],
                registers=spent.registers,
                shared_bytes=max(spent.shared_bytes, shared),
                spilled_bytes=spent.spilled_bytes,
            )
            for name, spent, shared in listed
        )

    def _from_cubin(self, content: bytes, wanted: Sizes) -> tuple[Compiled, tuple[Entry, ...]]:
        if self._device.kind != "cuda":
            raise BuildProblem("is machine code, which only a card runs: give its PTX, or use `device: cuda`")
        try:
            machine = cubin.read(content)
        except ValueError as problem:
            raise BuildProblem(f"{problem}; take one out of a program or fat binary by `cuobjdump -xelf all`") from None
        digits = self._device.arch.removeprefix("sm_").rstrip("af")
        if not runs_here(f"sm_{machine.arch}", int(digits[:-1]), int(digits[-1])):
            raise BuildProblem(
                f"is machine code for sm_{machine.arch}, and this trial runs on {self._device.arch}: give a cubin for "
                "that, or the PTX"
            )
        _require(wanted, {name: kernel.parameters for name, kernel in machine.kernels.items()})
        made = Compiled(ptx=b"", cubin=content, log="", compiler="none: machine code as it was given")
        kernels = {name: machine.kernels[name] for name in wanted}
        return made, tuple(
            Entry(
                name=name,
                parameters=kernel.parameters,
                registers=kernel.registers,
                shared_bytes=kernel.shared_bytes,
                spilled_bytes=kernel.local_bytes,
            )
            for name, kernel in kernels.items()
        )


def _shared(text: str, name: str) -> int:
    try:
        return ptx_text.shared_bytes(text, name)
    except ValueError:  # an entry without parameters, written without their parentheses
        return 0


def _require(wanted: Sizes, there: Sizes) -> None:
    for name, sizes in wanted.items():
        if name not in there:
            raise BuildProblem(f"the plan launches {name!r}, and it has {', '.join(sorted(there)) or 'no kernel'}")
        if there[name] != sizes:
            raise BuildProblem(f"{name} takes parameters of {list(there[name])} bytes, the plan passes {list(sizes)}")
