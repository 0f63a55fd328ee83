"""Which device there is, and opening one. What a device needs is imported only here, and late."""

import importlib.metadata
import importlib.util
import platform
from pathlib import Path
from typing import Literal

from kerneltrial.devices.device import DeviceProblem, Opened
from kerneltrial.inputs.installing import install
from kerneltrial.records.device import Device, DeviceKind

CPU_ARCH = "sm_80"
_DRIVER_SIGNS = ("/dev/nvidiactl", "/dev/dxg", "/proc/driver/nvidia/version")
_NEEDED = ("cuda.core", "cuda.bindings.driver")
_CPU_LIBRARIES = ("llvmlite", "numpy")


def open_device(kind: DeviceKind, arch: str) -> Opened:
    """Open a device in this process, for code of `arch`. Raises `DeviceProblem` where it cannot be opened."""
    if kind == "cuda":
        from kerneltrial.devices.cuda.device import open_cuda

        return open_cuda(arch)
    from kerneltrial.devices.cpu.device import open_cpu

    opened: Opened = open_cpu()
    return opened


def detect(wanted: Literal["auto", "cpu", "cuda"] = "auto") -> Device:
    """Say which device a trial gets here: for `auto` the GPU where one can be used, else the `cpu` device.

    Makes no context and imports nothing large where there is no driver. When there is a driver and the GPU cannot be
    used all the same, `auto` gives the `cpu` device, whose fingerprint says why under `gpu`.

    Raises
    ------
    DeviceProblem
        `cuda` is wanted and cannot be had.
    """
    why = "not asked for"
    if wanted != "cpu":
        why = _lacking()
        if not why:
            try:
                return _card()
            except DeviceProblem as problem:
                why = str(problem)
    if wanted == "cuda":
        raise DeviceProblem(f"cuda: {why.removeprefix('cuda: ')}; set `device: cpu`, or use a machine with a GPU")
    device = _host()
    return _with(device, "gpu", why) if wanted == "auto" and driver_is_there() else device


def driver_is_there() -> bool:
    """Whether an NVIDIA driver shows itself on this machine."""
    return any(Path(sign).exists() for sign in _DRIVER_SIGNS)


def _lacking() -> str:
    """What is missing for a GPU, in words, or an empty string."""
    if not driver_is_there():
        return "there is no NVIDIA driver on this machine"
    absent = [name for name in _NEEDED if not _importable(name)]
    if absent:
        return f"{' and '.join(absent)} cannot be imported: {install('gpu')}"
    return ""


def _importable(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


def _card() -> Device:
    from kerneltrial.devices.cuda.probe import probe

    return probe()


def _host() -> Device:
    fingerprint = {name: importlib.metadata.version(name) or "unknown" for name in _CPU_LIBRARIES}
    fingerprint["host_cpu"] = _host_cpu()
    return Device(kind="cpu", arch=CPU_ARCH, name=platform.machine(), fingerprint=fingerprint)


def _host_cpu() -> str:
    """The processor's model name, as Linux tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "unknown"
    names = (line.partition(":")[2].strip() for line in lines if line.startswith(("model name", "CPU part")))
    return next(names, "unknown")


def _with(device: Device, name: str, text: str) -> Device:
    return Device(kind=device.kind, arch=device.arch, name=device.name, fingerprint={**device.fingerprint, name: text})
