"""An NVIDIA card as a device of a trial: loads machine code, runs and times calls (DESIGN.md section 4)."""

from collections.abc import Sequence

from kerneltrial.devices.cuda import ceilings, timing
from kerneltrial.devices.cuda.context import Context
from kerneltrial.devices.cuda.driver import CudaError
from kerneltrial.devices.cuda.launches import Module
from kerneltrial.devices.cuda.loaded import CudaLoaded
from kerneltrial.devices.device import Binary, Refused, Samples, TimingRequest, Values
from kerneltrial.records.device import Device
from kerneltrial.records.reason import Finding, Reason
from kerneltrial.records.roofline import Ceilings

_WILL_NOT_LOAD = frozenset(
    {
        "CUDA_ERROR_NO_BINARY_FOR_GPU",
        "CUDA_ERROR_INVALID_IMAGE",
        "CUDA_ERROR_INVALID_SOURCE",
        "CUDA_ERROR_INVALID_PTX",
        "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
        "CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC",
        "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND",
    }
)


class CudaDevice:
    """See `devices.device.Opened`."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @property
    def device(self) -> Device:
        return self._context.device

    @property
    def machine_code(self) -> None:
        """None: cubins are machine code."""
        return None

    def load(self, binary: Binary) -> CudaLoaded:
        """Load machine code.

        Raises
        ------
        Refused
            The binary has no machine code, or it is none for this card.
        """
        return CudaLoaded(self._context, load_module(self._context, binary))

    def time(self, request: TimingRequest, values: Sequence[Values]) -> Samples:
        """Time a candidate beside the baseline, on one or more input sets.

        Raises
        ------
        Refused
            The clock is not there; or the candidate faulted, changed an input or wrote beside its buffers.
        DeviceProblem
            The card slowed down, is lost or full, or the baseline itself faulted.
        """
        baseline = load_module(self._context, request.baseline)
        baseline_again = load_module(self._context, request.baseline)
        candidate = load_module(self._context, request.candidate)
        modules = {"a": baseline, "a2": baseline_again, "b": candidate}
        try:
            return timing.time(self._context, modules, request, values)
        finally:
            for module in modules.values():
                module.unload()

    def ceilings(self) -> Ceilings:
        """What the card does at most, measured now; raises `DeviceProblem` where it cannot be."""
        try:
            return ceilings.measure(self._context)
        except CudaError as error:
            raise error.problem() from error

    def close(self) -> None:
        """Give the card back; a process that ends does so by itself."""
        self._context.close()


def load_module(context: Context, binary: Binary) -> Module:
    """See `CudaDevice.load`."""
    if context.spent is not None:
        raise Refused(context.spent)
    if not binary.cubin:
        detail = "the binary holds no machine code, and this device does not assemble PTX"
        raise Refused(Finding(reason=Reason.UNSUPPORTED_FEATURE, detail=detail))
    try:
        return Module(binary.cubin)
    except CudaError as error:
        if error.code not in _WILL_NOT_LOAD:
            raise error.problem() from error
        detail = f"{error.code}: this machine code does not load on {context.device.name} ({context.device.arch})"
        raise Refused(Finding(reason=Reason.UNSUPPORTED_FEATURE, detail=detail)) from error


def open_cuda(arch: str) -> CudaDevice:
    """Open the first visible card for code of `arch`, such as sm_90a.

    Raises
    ------
    DeviceProblem
        No driver, no card, a driver older than the toolkit, or a card that does not run `arch`.
    """
    return CudaDevice(Context(arch))
