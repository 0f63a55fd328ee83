"""For applications: the kernel that this run is about, ready to be called.

    from kerneltrial.loader import load

    kernel = load()
    outputs = kernel(inputs, dims)                       # NumPy arrays in, NumPy arrays out, on any device
    kernel.launch(addresses, dims, stream)               # on a card: your own device pointers, your own stream

kerneltrial runs the application with the baseline and with the candidate, many times in turn, and says by the
environment which it is. An application in another language reads KERNELTRIAL_PTX, KERNELTRIAL_CUBIN and
KERNELTRIAL_PLAN itself. On a machine without a card the same PTX runs in a limited child of the `cpu` device.
"""

import atexit
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kerneltrial.records.build import Abi
from kerneltrial.records.contract import Contract
from kerneltrial.records.device import Device
from kerneltrial.records.plan import LaunchPlan
from kerneltrial.records.problem import Problem
from kerneltrial.records.record import Record
from kerneltrial.store.canonical import canonical, decode

if TYPE_CHECKING:
    import numpy as np

    from kerneltrial.devices.device import Run, Values
    from kerneltrial.inputs.calls import Call

KERNEL, PLAN, PTX, CUBIN, COUNTS = (f"KERNELTRIAL_{name}" for name in ("KERNEL", "PLAN", "PTX", "CUBIN", "COUNTS"))
_EVERY = 64  # calls between two looks at the card's free memory


class LoaderProblem(Problem):
    """There is no kernel to load, or it did not run."""


class Told(Record):
    """What an application is told of the kernel, beside its binaries."""

    contract: Contract
    plan: LaunchPlan
    abi: Abi
    device: Device


def load(folder: str | Path | None = None) -> "Kernel":
    """The kernel in `folder`, by default the one that this run is about; raises LoaderProblem where there is none."""
    place = folder or os.environ.get(KERNEL)
    if not place:
        raise LoaderProblem(f"{KERNEL} is not set: kerneltrial sets it where it runs the application")
    path = Path(place) / "kernel.json"
    try:
        told = decode(Told, path.read_bytes())
    except OSError as fault:
        raise LoaderProblem(f"{path}: cannot be read ({fault.strerror}); name the folder of a kernel") from None
    except ValueError as fault:  # msgspec's own, and text that is none
        raise LoaderProblem(f"{path}: does not say what kernel it is ({fault}); have the trial write it anew") from None
    return OnCard(told, Path(place)) if told.device.kind == "cuda" else OnHost(told, Path(place))


class Kernel:
    """A kernel that can be called; it counts its calls for the trial."""

    def __init__(self, told: Told, folder: Path) -> None:
        self.told = told
        self.calls = 0
        self.peak_bytes = 0
        self._ptx = (folder / "kernel.ptx").read_text()
        self._cubin = (folder / "kernel.cubin").read_bytes()
        self._resolved: dict[tuple[tuple[str, int], ...], Call] = {}
        counts = os.environ.get(COUNTS)
        if counts:
            atexit.register(self._tell, Path(counts))

    def __call__(self, inputs: "Values", dims: Mapping[str, int]) -> "dict[str, np.ndarray[Any, Any]]":
        """Outputs and inouts by name, in the contract's shapes; raises LoaderProblem where the call ended badly."""
        from kerneltrial.inputs.dtypes import from_bytes

        call = self._call(dims)
        run = self._run(call, inputs)
        self.calls += 1
        if not run.completed or run.findings:
            raise LoaderProblem(
                f"the kernel did not run: {run.findings[0].detail if run.findings else 'no reason given'}"
            )
        shapes = {buffer.name: buffer for buffer in call.buffers}
        return {name: from_bytes(data, shapes[name].dtype, shapes[name].shape) for name, data in run.outputs.items()}

    def launch(self, addresses: Mapping[str, int], dims: Mapping[str, int], stream: Any = 0) -> None:
        """Put one call on `stream`: device addresses by the contract's names. Only on a card."""
        raise LoaderProblem("the cpu device has no device pointers; call the kernel with arrays instead")

    def _run(self, call: "Call", inputs: "Values") -> "Run":
        raise NotImplementedError

    def _call(self, dims: Mapping[str, int]) -> "Call":
        from kerneltrial.inputs.resolve import resolve

        key = tuple(sorted(dims.items()))
        wanted = set(self.told.contract.dimensions)
        if set(dims) != wanted:
            named = ", ".join(sorted(dims)) or "none"
            takes = ", ".join(sorted(wanted))
            raise LoaderProblem(
                f"the kernel {self.told.contract.name} takes the dimensions {takes}; given were {named}"
            )
        if key not in self._resolved:
            self._resolved[key] = resolve(self.told.plan, self.told.contract, dict(dims), self.told.abi)
        return self._resolved[key]

    def _tell(self, path: Path) -> None:
        path.write_bytes(canonical({"calls": self.calls, "peak_bytes": self.peak_bytes}))


class OnHost(Kernel):
    """The `cpu` device in a limited child, as a candidate is not trusted."""

    def __init__(self, told: Told, folder: Path) -> None:
        super().__init__(told, folder)
        from kerneltrial.devices.device import Binary
        from kerneltrial.devices.preloading import preload
        from kerneltrial.devices.runner import Runner
        from kerneltrial.sandbox.nursery import Nursery

        self._nursery = Nursery(preload("cpu"))
        self._nursery.__enter__()
        atexit.register(self._nursery.__exit__, None, None, None)
        self._runner = Runner(self._nursery, "cpu", arch=told.device.arch)
        self._runner.__enter__()
        atexit.register(self._runner.__exit__, None, None, None)
        self._runner.load(Binary(ptx=self._ptx, cubin=b""))

    def _run(self, call: "Call", inputs: "Values") -> "Run":
        from kerneltrial.devices.device import Conditions

        return self._runner.run(call, inputs, Conditions(poison="nan", checks="bounds"))


class OnCard(Kernel):
    """An NVIDIA card, in the application's own context where it has one."""

    def __init__(self, told: Told, folder: Path) -> None:
        super().__init__(told, folder)
        self._module: Any = None
        self._opened: Any = None
        self._scratch: dict[tuple[str, int], int] = {}

    def launch(self, addresses: Mapping[str, int], dims: Mapping[str, int], stream: Any = 0) -> None:
        from kerneltrial.devices.cuda.launches import BoundLaunch, Module

        self._module = self._module or Module(self._cubin)
        call = self._call(dims)
        everywhere = {**addresses, **{b.name: self._scratch_of(b) for b in call.buffers if b.role == "scratch"}}
        missing = [b.name for b in call.buffers if b.name not in everywhere]
        if missing:
            raise LoaderProblem(f"launch: no address was given for {', '.join(missing)}")
        self._clear(call, everywhere, stream)
        for launch in call.launches:
            BoundLaunch(self._module, launch, everywhere, stream).enqueue()
        if self.calls % _EVERY == 0:
            self._look()
        self.calls += 1

    def _scratch_of(self, buffer: Any) -> int:
        """Scratch lives as long as the kernel; what restores itself is zeroed once."""
        from kerneltrial.devices.cuda.driver import call as driver
        from kerneltrial.devices.cuda.memory import buffer_bytes

        key = (buffer.name, buffer_bytes(buffer))
        if key not in self._scratch:
            self._scratch[key] = int(driver("cuMemAlloc", max(key[1], 1)))
            driver("cuMemsetD8", self._scratch[key], 0, key[1])
            driver("cuStreamSynchronize", 0)
        return self._scratch[key]

    def _clear(self, call: "Call", addresses: Mapping[str, int], stream: Any) -> None:
        from kerneltrial.devices.cuda.driver import call as driver
        from kerneltrial.devices.cuda.memory import buffer_bytes

        for buffer in call.buffers:
            if buffer.role == "scratch" and buffer.initial == "zeroed":
                driver("cuMemsetD8Async", addresses[buffer.name], 0, buffer_bytes(buffer), stream)

    def _run(self, call: "Call", inputs: "Values") -> "Run":
        from kerneltrial.devices.device import Binary, Conditions
        from kerneltrial.devices.opening import open_device

        self._opened = self._opened or open_device("cuda", self.told.device.arch).load(
            Binary(ptx=self._ptx, cubin=self._cubin)
        )
        run: Run = self._opened.run(call, inputs, Conditions(poison="nan", checks="bounds"))
        self._look()
        return run

    def _look(self) -> None:
        from kerneltrial.devices.cuda.driver import call as driver

        free, total = driver("cuMemGetInfo")
        self.peak_bytes = max(self.peak_bytes, int(total) - int(free))
