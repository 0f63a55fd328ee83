"""Launches an exported kernel by its plan, and the baseline where the winner does not fit. Needs cuda.core alone.

`kerneltrial export loader` copies this file as `runtime.py` beside `plans.py` and the binaries; it imports nothing of
kerneltrial. An array is an address (int), a `cuda.core.Buffer`, or anything with `__cuda_array_interface__`.
"""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Dimensions = Mapping[str, int]
_KINDS: dict[str, Any] = {
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
}
_STATIC_LIMIT = 48 * 1024  # above it a kernel must be allowed its dynamic shared memory by attribute


@dataclass(frozen=True)
class Launch:
    """One launch in numbers. Each of `args` is the name of a buffer, or (kind, value) such as ("int32", 7)."""

    entry: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    args: tuple[str | tuple[str, float], ...]
    cluster: tuple[int, ...] = (1, 1, 1)
    shared_bytes: int = 0
    cooperative: bool = False


@dataclass(frozen=True)
class Array:
    """An array of the contract at some dimensions: bytes of one element, and its shape."""

    item_bytes: int
    shape: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        total = self.item_bytes
        for extent in self.shape:
            total *= extent
        return total


@dataclass(frozen=True)
class Scratch:
    """A buffer of the kernel's own; `initial` is uninitialised, zeroed (each call) or self_restoring (zeroed once)."""

    size_bytes: int
    initial: str


@dataclass(frozen=True)
class Code:
    """One of the two kernels: how it is launched, and its binaries beside this file, NAME.cubin and NAME.ptx.

    `launches` gives None where no variant of the plan holds. `arch` is what the cubin is for, such as sm_90a, or empty.
    """

    name: str
    arch: str
    launches: Callable[[Dimensions], tuple[Launch, ...] | None]
    scratch: Callable[[Dimensions], dict[str, Scratch]]
    entries: tuple[str, ...]


@dataclass(frozen=True)
class Promise:
    """What the contract says: arrays at some dimensions, (minimum, maximum, multiple of) of each, alignment."""

    arrays: Callable[[Dimensions], dict[str, Array]]
    ranges: Mapping[str, tuple[int, int, int]]
    alignment_bytes: int


class Kernel:
    """The winner, with the baseline to fall back on. Binaries are loaded at the first call on a device."""

    def __init__(self, folder: Path, promise: Promise, codes: Sequence[Code]) -> None:
        self._folder = folder
        self._promise = promise
        self._codes = codes
        self._loaded: dict[tuple[int, str], dict[str, Any] | str] = {}
        self._scratch: dict[tuple[Any, ...], Any] = {}

    def __call__(self, stream: Any, arrays: Mapping[str, Any], dimensions: Dimensions) -> str:
        """Put the launches on `stream` and return whose they are: "winner", or "baseline".

        Raises ValueError where an array has another size or alignment than the contract says, or where neither kernel
        takes these dimensions on this device; the text says why, for each.
        """
        from cuda.core import Device

        addresses = self._addresses(arrays, dimensions)
        device = Device()
        why = []
        for code in self._codes:
            reason = self._unfit(code, dimensions)
            kernels = reason or self._kernels(code, device)
            if isinstance(kernels, str):
                why.append(f"{code.name}: {kernels}")
                continue
            buffers = {**addresses, **self._scratch_of(code, dimensions, device, stream)}
            for one in code.launches(dimensions) or ():
                _launch(stream, kernels[one.entry], one, buffers)
            return code.name
        raise ValueError(f"no kernel for {dict(dimensions)}: " + "; ".join(why))

    def choice(self, dimensions: Dimensions) -> str:
        """Return which kernel these dimensions would get, were both loaded: "winner", "baseline", or "none"."""
        return next((code.name for code in self._codes if not self._unfit(code, dimensions)), "none")

    def _unfit(self, code: Code, dimensions: Dimensions) -> str:
        """Why a kernel is not used for these dimensions, or nothing. Only the winner was tried within the contract."""
        if code.name == "winner":
            for name, (least, most, step) in self._promise.ranges.items():
                size = dimensions[name]
                if not (least <= size <= most and size % step == 0):
                    return f"{name}={size} is outside of the contract, {least} to {most} in steps of {step}"
        return "" if code.launches(dimensions) is not None else "no variant of its plan holds"

    def _addresses(self, arrays: Mapping[str, Any], dimensions: Dimensions) -> dict[str, int]:
        if set(dimensions) != set(self._promise.ranges):
            raise ValueError(f"dimensions are {sorted(dimensions)}, the contract has {sorted(self._promise.ranges)}")
        for name, size in dimensions.items():
            if size < 1:
                raise ValueError(f"{name}={size} must be at least 1")
        wanted = self._promise.arrays(dimensions)
        if set(arrays) != set(wanted):
            raise ValueError(f"arrays are {sorted(arrays)}, the contract has {sorted(wanted)}")
        found = {}
        for name, array in wanted.items():
            address, held = _pointer(name, arrays[name])
            if held is not None and held != array.size_bytes:
                raise ValueError(f"{name} has {held} bytes, the contract wants {array.size_bytes} ({array.shape})")
            if address % self._promise.alignment_bytes:
                raise ValueError(f"{name} is not aligned to {self._promise.alignment_bytes} bytes")
            found[name] = address
        return found

    def _kernels(self, code: Code, device: Any) -> dict[str, Any] | str:
        key = (device.device_id, code.name)
        if key not in self._loaded:
            self._loaded[key] = self._load(code, device)
        return self._loaded[key]

    def _load(self, code: Code, device: Any) -> dict[str, Any] | str:
        """The kernels by entry, or why there are none: machine code for this very card first, then PTX."""
        from cuda.core import ObjectCode

        why = []
        digits = "".join(letter for letter in code.arch if letter.isdigit())
        for kind, make in (("cubin", ObjectCode.from_cubin), ("ptx", ObjectCode.from_ptx)):
            path = self._folder / f"{code.name}.{kind}"
            if not path.is_file() or (kind == "cubin" and digits != device.arch):
                why.append(f"no {kind} for sm_{device.arch}")
                continue
            try:
                module = make(path.read_bytes())
                return {entry: module.get_kernel(entry) for entry in code.entries}
            except Exception as fault:  # the driver's own errors, of many kinds: whatever it is, the next is tried
                why.append(f"{kind}: {fault}")
        return ", ".join(why)

    def _scratch_of(self, code: Code, dimensions: Dimensions, device: Any, stream: Any) -> dict[str, int]:
        """Addresses of a call's scratch: one buffer a name and stream, kept for later calls and made larger by need."""
        found = {}
        for name, scratch in code.scratch(dimensions).items():
            key = (device.device_id, int(stream.handle), code.name, name)
            fresh = key not in self._scratch or self._scratch[key].size < scratch.size_bytes
            if fresh:
                self._scratch[key] = device.allocate(scratch.size_bytes, stream=stream)
            buffer = self._scratch[key]
            if scratch.initial == "zeroed" or (fresh and scratch.initial == "self_restoring"):
                buffer.fill(0, stream=stream)
            found[name] = int(buffer.handle)
        return found


def _pointer(name: str, array: Any) -> tuple[int, int | None]:
    """Address, and size in bytes where the array says it; raises ValueError for what is no device array."""
    if isinstance(array, int):
        return array, None
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is not None:
        if interface.get("strides") is not None:
            raise ValueError(f"{name} is not contiguous")
        size = int(interface["typestr"][2:])
        for extent in interface["shape"]:
            size *= extent
        return int(interface["data"][0]), size
    if hasattr(array, "handle") and hasattr(array, "size"):
        return int(array.handle), int(array.size)
    raise ValueError(f"{name} is a {type(array).__name__}; give an address, a Buffer or __cuda_array_interface__")


def _launch(stream: Any, kernel: Any, one: Launch, buffers: Mapping[str, int]) -> None:
    from cuda.core import LaunchConfig, launch

    if one.shared_bytes > _STATIC_LIMIT:
        kernel.attributes.max_dynamic_shared_size_bytes = one.shared_bytes
    extra: dict[str, Any] = {}
    if one.cluster != (1, 1, 1):
        extra["cluster"] = one.cluster
    if one.cooperative:
        extra["is_cooperative"] = True
    # cuda.core's grid counts clusters
    grid = tuple(blocks // size for blocks, size in zip(one.grid, one.cluster, strict=True))
    config = LaunchConfig(grid=grid, block=one.block, shmem_size=one.shared_bytes, **extra)
    launch(stream, config, kernel, *(_argument(word, buffers) for word in one.args))


def _argument(word: str | tuple[str, float], buffers: Mapping[str, int]) -> Any:
    if isinstance(word, str):
        return buffers[word]  # cuda.core takes an int as a pointer
    kind, value = word
    return _KINDS[kind](value)
