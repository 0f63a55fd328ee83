"""The card, open in this process: primary context, stream, sizes."""

from typing import Any

from kerneltrial.devices.cuda import probe
from kerneltrial.devices.cuda.driver import CudaError, call, release
from kerneltrial.devices.cuda.places import Fences, Pool, Staging, fences
from kerneltrial.devices.cuda.queue import Queue
from kerneltrial.devices.cuda.scrub import Scrub
from kerneltrial.devices.cuda.state import Nvml
from kerneltrial.devices.cuda.sweep import Sweep
from kerneltrial.records.device import Device
from kerneltrial.records.reason import Finding


class Context:
    """One card in one process. `spent` is the fault that ended it, or None: after a fault nothing works any more.

    Raises
    ------
    DeviceProblem
        No driver, no card, a card that code for `arch` does not run on, or one that cannot be opened.
    """

    def __init__(self, arch: str) -> None:
        self.device: Device = probe.probe()
        probe.require_arch(arch, self.device)
        self.device = Device(kind="cuda", arch=arch, name=self.device.name, fingerprint=self.device.fingerprint)
        self.spent: Finding | None = None
        self._sweep: Sweep | None = None
        self._fences: Fences | None = None
        self._scrub: Scrub | CudaError | None = None
        self._staging: Staging | None = None
        self.pool = Pool()
        try:
            self._handle: Any = call("cuDeviceGet", 0)
            call("cuCtxSetCurrent", call("cuDevicePrimaryCtxRetain", self._handle))
            self.queue = Queue()
        except CudaError as error:
            raise error.problem() from error
        self.nvml = Nvml(probe.bus_id(self._handle))

    @property
    def memory_bytes(self) -> int:
        """The card's memory; 0 where it is not known."""
        return int(self.device.fingerprint.get("memory_bytes", 0))

    @property
    def sweep(self) -> Sweep:
        """Made on first use, since only timing needs it."""
        if self._sweep is None:
            fingerprint = self.device.fingerprint
            self._sweep = Sweep(int(fingerprint["l2_bytes"]), int(fingerprint["multiprocessors"]), self.queue.stream)
        return self._sweep

    @property
    def fences(self) -> Fences:
        """What virtual memory can do here; looked at on first use."""
        if self._fences is None:
            self._fences = fences(self._handle)
        return self._fences

    @property
    def staging(self) -> Staging:
        """Made on first use, since timing does not need it."""
        if self._staging is None:
            self._staging = Staging()
        return self._staging

    def scrub(self, byte: int) -> str:
        """Fill all shared memory with `byte`, in stream order; says why that cannot be ("" where it can)."""
        if self._scrub is None:
            fingerprint = self.device.fingerprint
            try:
                shared = int(fingerprint["shared_bytes_per_block"])
                self._scrub = Scrub(int(fingerprint["multiprocessors"]), shared, self.queue.stream)
            except CudaError as error:
                self._scrub = error
        if isinstance(self._scrub, CudaError):
            return str(self._scrub)
        self._scrub.enqueue(byte)
        return ""

    def close(self) -> None:
        """Give everything back."""
        self.pool.empty()
        if self._fences is not None:
            self._fences.empty()
        if self._staging is not None:
            self._staging.free()
        if isinstance(self._scrub, Scrub):
            self._scrub.free()
        if self._sweep is not None:
            self._sweep.free()
        self.queue.close()
        release("cuDevicePrimaryCtxRelease", self._handle)
