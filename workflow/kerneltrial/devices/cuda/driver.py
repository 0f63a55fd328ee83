"""The CUDA driver API, one checked call at a time, and what each error means for a trial.

Only the driver API of `cuda.bindings` is used: it needs the driver and nothing of the toolkit, and the functions that
are called here have the same form in CUDA 12 and 13.
"""

import sys
from typing import Any

from kerneltrial.devices.device import DeviceProblem
from kerneltrial.inputs.installing import install
from kerneltrial.records.reason import Finding, Reason

# After these the context is spent: no call in this process will succeed (CUDA driver API, "CUresult").
FAULTS = frozenset(
    {
        "CUDA_ERROR_ILLEGAL_ADDRESS",
        "CUDA_ERROR_LAUNCH_TIMEOUT",
        "CUDA_ERROR_ASSERT",
        "CUDA_ERROR_HARDWARE_STACK_ERROR",
        "CUDA_ERROR_ILLEGAL_INSTRUCTION",
        "CUDA_ERROR_MISALIGNED_ADDRESS",
        "CUDA_ERROR_INVALID_ADDRESS_SPACE",
        "CUDA_ERROR_INVALID_PC",
        "CUDA_ERROR_LAUNCH_FAILED",
        "CUDA_ERROR_TENSOR_MEMORY_LEAK",
    }
)
# A launch that the driver turns down; the context lives on.
TURNED_DOWN = frozenset(
    {
        "CUDA_ERROR_INVALID_VALUE",
        "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
        "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
        "CUDA_ERROR_INVALID_CLUSTER_SIZE",
        "CUDA_ERROR_NOT_SUPPORTED",
    }
)
_WHAT_TO_DO = {
    "CUDA_ERROR_OUT_OF_MEMORY": "too little free memory on the card: make the case smaller, or end what runs beside it",
    "CUDA_ERROR_NO_DEVICE": "no CUDA card is visible: check nvidia-smi and CUDA_VISIBLE_DEVICES, or use device=cpu",
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": "kernel driver and libcuda differ: restart after the driver's update",
    "CUDA_ERROR_SYSTEM_NOT_READY": "the system's fabric is not ready: check the fabric manager",
    "CUDA_ERROR_DEVICE_UNAVAILABLE": "another process holds the card exclusively: end it, or choose another card",
    "CUDA_ERROR_UNKNOWN": "the driver lost the card: see `dmesg` for its Xid, restart the card, then run again",
    "CUDA_ERROR_ECC_UNCORRECTABLE": "the card reported an uncorrectable memory error: have it checked before measuring",
}


class CudaError(Exception):
    """A driver call did not return CUDA_SUCCESS; `code` is the name of the result, `where` the call."""

    def __init__(self, code: str, where: str) -> None:
        super().__init__(f"{code} from {where}")
        self.code = code
        self.where = where

    @property
    def is_fault(self) -> bool:
        return self.code in FAULTS

    def finding(self, what: str) -> Finding:
        """The fault as a finding against the candidate; `what` names what was running."""
        reason = Reason.MISALIGNED if self.code == "CUDA_ERROR_MISALIGNED_ADDRESS" else Reason.DEVICE_FAULT
        return Finding(reason=reason, detail=f"{self.code} while {what} ran (seen at {self.where})")

    def lost(self) -> DeviceProblem:
        """A fault on a card that is gone is nobody's: the error as a fault of the device."""
        return DeviceProblem(
            f"cuda: the card is lost ({self.code} from {self.where}): see `dmesg` for its Xid, restart it, then run "
            "the same command again; what was measured is kept"
        )

    def problem(self) -> DeviceProblem:
        """The error as a fault of the device or of the set-up."""
        what_to_do = _WHAT_TO_DO.get(self.code, "see the CUDA driver API's description of this code")
        return DeviceProblem(f"cuda: {self.code} from {self.where}: {what_to_do}")


def bindings() -> Any:
    """The module `cuda.bindings.driver`, which has no types; raise `DeviceProblem` where it is not installed."""
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise DeviceProblem(f"cuda: cuda.bindings cannot be imported ({error}): {install('gpu')}") from error
    return driver


def call(function: str, *arguments: Any) -> Any:
    """Call a driver function; return its value (a tuple where there are several, None where there is none).

    Raises
    ------
    CudaError
        When the function returns anything but CUDA_SUCCESS.
    DeviceProblem
        When there is no driver, or it lacks the function.
    """
    try:
        result = getattr(bindings(), function)(*arguments)
    except (RuntimeError, OSError) as error:  # the bindings' way to say: no libcuda, or no such symbol in it
        raise DeviceProblem(_no_function(function, error)) from error
    code, values = result[0], result[1:]
    if int(code) != 0:
        raise CudaError(code.name, function)
    if not values:
        return None
    return values[0] if len(values) == 1 else values


def _no_function(function: str, error: Exception) -> str:
    if "cuda.pathfinder" in type(error).__module__ or "libcuda" in str(error):
        return "cuda: there is no NVIDIA driver (libcuda) on this machine: install it, or use device=cpu"
    line = str(error).splitlines()[0] if str(error) else type(error).__name__
    return f"cuda: the driver has no {function} ({line}): update the driver, or use device=cpu"


def release(function: str, *arguments: Any) -> None:
    """Free something. In a context that a fault has spent nothing can be freed, and the process is about to end."""
    try:
        call(function, *arguments)
    except CudaError as error:
        if not error.is_fault:
            print(f"kerneltrial: {error}", file=sys.stderr)


def require_driver() -> int:
    """Initialise the driver; return its CUDA version as 1000 * major + 10 * minor.

    Raises
    ------
    DeviceProblem
        No driver, no card, or a driver older than the toolkit's major version.
    """
    from importlib.metadata import version

    try:
        call("cuInit", 0)
        found = int(call("cuDriverGetVersion"))
    except CudaError as error:
        raise error.problem() from error
    wanted = int(version("cuda-bindings").split(".")[0])
    if found // 1000 < wanted:
        raise DeviceProblem(
            f"cuda: the driver speaks CUDA {found // 1000}.{found % 1000 // 10}, the toolkit here is CUDA {wanted}: "
            f"update the driver, or {install(f'cuda{found // 1000}')}"
        )
    return found
