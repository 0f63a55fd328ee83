"""The front of the `cpu` device: PTX run on the host, with checks and counts in place of times."""

import platform
from collections.abc import Sequence
from dataclasses import dataclass

from kerneltrial.devices.cpu.arena import Arena
from kerneltrial.devices.cpu.cooperative import run_together
from kerneltrial.devices.cpu.generator import Level
from kerneltrial.devices.cpu.kernel import Kernel, compile_kernel
from kerneltrial.devices.cpu.launch import refusal, run_launch
from kerneltrial.devices.cpu.launched import Launched
from kerneltrial.devices.cpu.logs import CallCounter, Tallies
from kerneltrial.devices.cpu.parallel import run_blocks
from kerneltrial.devices.cpu.parser import parse
from kerneltrial.devices.cpu.refusals import printable
from kerneltrial.devices.device import Binary, Conditions, Refused, Run, Samples, TimingRequest, Values
from kerneltrial.devices.machine_code import MachineCode
from kerneltrial.inputs.calls import Call, ResolvedLaunch
from kerneltrial.records.counts import Counts
from kerneltrial.records.device import Device
from kerneltrial.records.reason import Finding, Reason
from kerneltrial.records.roofline import Ceilings

ARCH = "sm_80"
"""PTX is compiled for this architecture: the newest whose instructions the table covers."""

_LONGEST_PRINT = 1500


def open_cpu() -> "OpenedCpu":
    """The device; opening it costs nothing, loading brings LLVM in."""
    return OpenedCpu()


class OpenedCpu:
    """Implements `devices.device.Opened`."""

    def __init__(self) -> None:
        self.machine_code = MachineCode()

    @property
    def device(self) -> Device:
        return Device(kind="cpu", arch=ARCH, name=platform.machine(), fingerprint=_fingerprint())

    def load(self, binary: Binary) -> "LoadedCpu":
        """Read the PTX; raises `Refused` where it cannot be read."""
        return LoadedCpu(binary, self.machine_code)

    def time(self, request: TimingRequest, values: Sequence[Values]) -> Samples:
        raise Refused(Finding(reason=Reason.NOT_MEASURED, detail="the cpu device counts; it gives no times"))

    def ceilings(self) -> Ceilings:
        raise Refused(Finding(reason=Reason.NOT_MEASURED, detail="the cpu device counts; it has no ceilings of speed"))


def _fingerprint() -> dict[str, str]:
    from importlib.metadata import version

    # Of a folder that a child may not read all of, `version` gives None (seen with links into another environment).
    return {"llvmlite": version("llvmlite") or "unknown", "machine": platform.machine()}


@dataclass
class _Ended:
    """How the launches of a call went."""

    launched: list[Launched]
    finding: Finding | None
    arena: Arena


class LoadedCpu:
    """Implements `devices.device.Loaded`. Each entry is compiled when it is first run, once a level of checks."""

    def __init__(self, binary: Binary, code: MachineCode) -> None:
        self._module = parse(binary.ptx)
        self._code = code
        self._has_printed = False
        self._kernels: dict[tuple[str, Level, bool], Kernel] = {}

    def kernel(self, entry: str, level: Level, cooperative: bool = False) -> Kernel | None:
        """The compiled entry, or None where there is none of this name."""
        function = self._module.functions.get(entry)
        if function is None or not function.entry:
            return None
        key = (entry, level, cooperative)
        if key not in self._kernels:
            self._kernels[key] = compile_kernel(self._module, function, level, self._code, cooperative)
        return self._kernels[key]

    def _kernel_of(self, launch: ResolvedLaunch, level: Level) -> Kernel | None:
        return self.kernel(launch.entry, level, launch.cooperative)

    def run(self, call: Call, values: Values, conditions: Conditions) -> Run:
        """One call on fresh memory; raises `Refused` for instructions and features that are not known here."""
        arena = self._arena(call, values, conditions, conditions.checks)
        ended = self._launch_all(call, arena, conditions, conditions.checks)
        findings = [ended.finding] if ended.finding else []
        if not findings and conditions.checks == "all":
            findings = [_unwritten(*found) for found in arena.unwritten()]
        return Run(
            completed=ended.finding is None,
            outputs=arena.outputs(),
            inputs_intact=arena.inputs_intact(),
            guards_intact=arena.guards_intact(),
            scratch_restored=arena.scratch_restored(),
            findings=tuple(findings),
            unchecked=tuple(
                Finding(reason=Reason.CHECK_ABSENT, detail=f"not checked on cpu: {what}")
                for what in self._unlooked(call, ended, conditions.checks)
            ),
            older=tuple(launched.older for launched in ended.launched if launched.older),
        )

    def _unlooked(self, call: Call, ended: "_Ended", level: Level) -> list[str]:
        """What this call, and not every one, leaves unchecked."""
        found = self._printed(ended)
        if level != "all":
            return found
        if not all(launched.races_checked for launched in ended.launched):
            found.append("races in global memory: too many blocks and threads, or too much memory")
        if any(launched.noncoherent for launched in ended.launched):
            found.append("loads by ld.global.nc (__ldg) of memory that the call writes: a card may give older bytes")
        if any((k := self._kernel_of(launch, level)) and k.partial_barriers for launch in call.launches):
            found.append("races within a block between threads that a barrier of some threads does not order")
        return found

    def _printed(self, ended: "_Ended") -> list[str]:
        """What the first call that printed told; nothing is kept of later ones, or each draw would tell its values."""
        prints = [launched.prints for launched in ended.launched if launched.prints and launched.prints.calls]
        if not prints or self._has_printed:
            return []
        self._has_printed = True
        calls = sum(p.calls for p in prints)
        texts = [text for p in prints for text in p.texts(ended.arena)]
        kept = f"printf, which no check compares; {calls} calls in the first run that printed: " + " | ".join(texts)
        return [kept[:_LONGEST_PRINT]]

    def count(self, call: Call, values: Values, conditions: Conditions) -> Counts:
        """Counts of one call."""
        arena = self._arena(call, values, conditions, "count")
        counter = CallCounter()
        ended = self._launch_all(call, arena, conditions, "count", counter)
        if ended.finding is not None:
            raise Refused(ended.finding)
        return counter.counts()

    def _arena(self, call: Call, values: Values, conditions: Conditions, level: Level) -> Arena:
        """Module-scope variables are laid out the same in every entry that uses them, so one image serves all."""
        images = [k.layout for launch in call.launches if (k := self._kernel_of(launch, level))]
        longest = max(images, key=lambda layout: len(layout.image), default=None)
        image = (bytes(longest.image), bytes(longest.image_flags)) if longest else (b"", b"")
        return Arena(call, values, conditions, image)

    def _launch_all(
        self, call: Call, arena: Arena, conditions: Conditions, level: Level, counter: CallCounter | None = None
    ) -> _Ended:
        budget = conditions.budget_instructions
        done: list[Launched] = []
        for launch in call.launches:
            kernel = self._kernel_of(launch, level)
            if kernel is None:
                return _Ended(done, _missing(launch), arena)
            wrong = refusal(kernel, launch)
            if wrong is not None:
                return _Ended(done, wrong, arena)
            tallies = counter.start(kernel) if counter else None
            launched = _run(kernel, launch, arena, budget, tallies)
            if counter and tallies:
                counter.add(kernel, launch, tallies, launched)
            done.append(launched)
            budget = launched.budget
            if launched.finding is not None:
                return _Ended(done, launched.finding, arena)
        return _Ended(done, None, arena)


def _run(
    kernel: Kernel, launch: ResolvedLaunch, arena: Arena, budget: int, tallies: Tallies | None
) -> Launched:  # fmt: skip
    if launch.cooperative:
        return run_together(kernel, launch, arena, budget, tallies)
    if tallies:
        return run_launch(kernel, launch, arena, budget, tallies)
    return run_blocks(kernel, launch, arena, budget)


def _missing(launch: ResolvedLaunch) -> Finding:
    return Finding(reason=Reason.ENTRY_MISSING, detail=f"the binary has no entry {printable(launch.entry)}")


def _unwritten(name: str, count: int, first: int) -> Finding:
    detail = f"{count} bytes of output {name} were never written, the first at byte {first}"
    return Finding(reason=Reason.OUTPUT_NOT_WRITTEN, detail=detail)
