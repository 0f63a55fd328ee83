"""Which card is there, and what a measurement on it depends on; no context is made."""

from typing import Any

from kerneltrial.devices.cuda import state
from kerneltrial.devices.cuda.driver import CudaError, bindings, call, require_driver
from kerneltrial.devices.device import DeviceProblem
from kerneltrial.records.device import Device

_ATTRIBUTES = {
    "multiprocessors": "MULTIPROCESSOR_COUNT",
    "l2_bytes": "L2_CACHE_SIZE",
    "shared_bytes_per_block": "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
    "shared_bytes_per_multiprocessor": "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR",
    "registers_per_multiprocessor": "MAX_REGISTERS_PER_MULTIPROCESSOR",
    "threads_per_multiprocessor": "MAX_THREADS_PER_MULTIPROCESSOR",
    "memory_bus_bits": "GLOBAL_MEMORY_BUS_WIDTH",
}


def attribute(name: str, handle: Any) -> int:
    """A device attribute by the end of its name, such as L2_CACHE_SIZE."""
    enum = bindings().CUdevice_attribute
    return int(call("cuDeviceGetAttribute", getattr(enum, f"CU_DEVICE_ATTRIBUTE_{name}"), handle))


def capability(handle: Any) -> tuple[int, int]:
    """Compute capability, such as (9, 0)."""
    return attribute("COMPUTE_CAPABILITY_MAJOR", handle), attribute("COMPUTE_CAPABILITY_MINOR", handle)


def arch_of(major: int, minor: int) -> str:
    """What is compiled for: from 9.0 on the architecture-specific target (`a`), where Hopper's own instructions are."""
    return f"sm_{major}{minor}" + ("a" if major >= 9 else "")


def runs_here(arch: str, major: int, minor: int) -> bool:
    """Whether machine code for `arch` loads on this capability (CUDA programming guide, "Binary Compatibility").

    Architecture-specific code (`a`) needs the very capability; family code (`f`) and plain code the same major
    version and no higher minor.
    """
    digits = arch.removeprefix("sm_").rstrip("af")
    if not digits.isdigit() or len(digits) < 2:
        return False
    wanted = int(digits[:-1]), int(digits[-1])
    if arch.endswith("a"):
        return wanted == (major, minor)
    return wanted[0] == major and wanted[1] <= minor


def probe() -> Device:
    """The first visible card.

    Raises
    ------
    DeviceProblem
        No driver, no card, or a driver older than the toolkit.
    """
    version = require_driver()
    try:
        return _describe(call("cuDeviceGet", 0), version)
    except CudaError as error:
        raise error.problem() from error


def _describe(handle: Any, version: int) -> Device:
    major, minor = capability(handle)
    name = call("cuDeviceGetName", 128, handle)
    text = name.split(b"\0")[0].decode() if isinstance(name, bytes) else str(name)
    fingerprint = {
        "cuda_driver_api": f"{version // 1000}.{version % 1000 // 10}",
        "compute_capability": f"{major}.{minor}",
        "memory_bytes": str(int(call("cuDeviceTotalMem", handle))),
    }
    fingerprint |= {field: str(attribute(enum, handle)) for field, enum in _ATTRIBUTES.items()}
    fingerprint |= state.fixed(bus_id(handle))
    return Device(kind="cuda", arch=arch_of(major, minor), name=text, fingerprint=fingerprint)


def bus_id(handle: Any) -> str:
    """PCI bus id: how the card is named to NVML, whose numbering differs under CUDA_VISIBLE_DEVICES."""
    text = call("cuDeviceGetPCIBusId", 32, handle)
    return text.split(b"\0")[0].decode() if isinstance(text, bytes) else str(text)


def require_arch(arch: str, device: Device) -> None:
    """Raise `DeviceProblem` where code for `arch` does not run on `device`."""
    major, minor = (int(part) for part in device.fingerprint["compute_capability"].split("."))
    if not runs_here(arch, major, minor):
        raise DeviceProblem(
            f"cuda: the trial is locked for {arch}, this card ({device.name}) runs {device.arch}: "
            "use the card of the lock, or start a new trial"
        )
