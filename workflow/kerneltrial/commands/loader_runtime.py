"""Launches an exported kernel by its plan, and the baseline where the winner does not fit. Needs cuda.core alone.

`kerneltrial export loader` copies this file as `runtime.py` beside `plans.py` and the binaries; it imports nothing of
kerneltrial. An array is an address (int), a `cuda.core.Buffer`, or anything with `__cuda_array_interface__`.
"""

import ctypes
import hashlib
import itertools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Dimensions = Mapping[str, int]
Launches = tuple["Launch", ...]
_KINDS: dict[str, Any] = {
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
}
_STATIC_LIMIT = 48 * 1024  # above it a kernel must be allowed its dynamic shared memory by attribute
_MOST_BYTES = 2**40  # of one buffer: no card holds more
# What CUDA launches at most: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
_MOST_GRID, _MOST_BLOCK, _MOST_THREADS, _MOST_SHARED = (2**31 - 1, 65535, 65535), (1024, 1024, 64), 1024, 227 * 1024
_MOST_CLUSTER = 16
# Types of elements that other libraries tell in other words: truth values are bytes, bfloat16 has no word of its own.
_ALSO = {"u1": ("b1",), "bf16": ("V2", "u2")}


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
    """An array of the contract at some dimensions.

    `kind` is the type of its elements as __cuda_array_interface__ says it (f4, i4, u1), bf16 for bfloat16; `written`
    says that the kernel writes it.
    """

    item_bytes: int
    shape: tuple[int, ...]
    kind: str
    written: bool

    @property
    def size_bytes(self) -> int:
        return self.item_bytes * math.prod(self.shape)


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
    """What the contract says: arrays at some dimensions, (minimum, maximum, multiple of) of each, alignment.

    `in_place`: outputs by name, each with an input whose memory may be passed for it too.
    """

    arrays: Callable[[Dimensions], dict[str, Array]]
    ranges: Mapping[str, tuple[int, int, int]]
    alignment_bytes: int
    in_place: Mapping[str, str]


class Altered(RuntimeError):
    """A file of this package is not what was exported."""


class Kernel:
    """The winner, with the baseline to fall back on. Binaries are loaded at the first call on a device.

    `files` are the SHA-256 of the package's other files, as they were exported; `Altered` is raised where one is absent
    or another, here and when a binary is loaded.
    """

    def __init__(self, folder: Path, promise: Promise, codes: Sequence[Code], files: Mapping[str, str]) -> None:
        self._folder = folder
        self._promise = promise
        self._codes = codes
        self._files = files
        self._loaded: dict[tuple[int, str], dict[str, Any] | str] = {}
        self._scratch: dict[tuple[Any, ...], Any] = {}
        for name in files:
            self._content(name)

    def __call__(self, stream: Any, arrays: Mapping[str, Any], dimensions: Dimensions) -> str:
        """Put the launches on `stream` and return whose they are: "winner", or "baseline".

        Raises ValueError where an array has another size, type or alignment than the contract says, or shares memory
        that it may not share, or where neither kernel takes these dimensions on this device; the text says why, for
        each. Nothing is launched then.
        """
        from cuda.core import Device

        device = Device()
        sizes = self._sizes(dimensions)
        addresses = self._addresses(arrays, sizes, device)
        why = []
        for code in self._codes:
            launches = self._fitting(code, sizes)
            kernels = launches if isinstance(launches, str) else self._kernels(code, device)
            if isinstance(launches, str) or isinstance(kernels, str):
                why.append(f"{code.name}: {kernels}")
                continue
            buffers = {**addresses, **self._scratch_of(code, sizes, device, stream)}
            for one in launches:
                _launch(stream, kernels[one.entry], one, buffers)
            return code.name
        raise ValueError(f"no kernel for {sizes}: " + "; ".join(why))

    def choice(self, dimensions: Dimensions) -> str:
        """Return which kernel these dimensions would get, were both loaded: "winner", "baseline", or "none"."""
        sizes = self._sizes(dimensions)
        return next((code.name for code in self._codes if not isinstance(self._fitting(code, sizes), str)), "none")

    def _fitting(self, code: Code, sizes: Dimensions) -> Launches | str:
        """A kernel's launches at these sizes, or why there are none. Only the winner was tried within the contract."""
        if code.name == "winner":
            for name, (least, most, step) in self._promise.ranges.items():
                size = sizes[name]
                if not (least <= size <= most and size % step == 0):
                    return f"{name}={size} is outside of the contract, {least} to {most} in steps of {step}"
        launches = code.launches(sizes)
        if launches is None:
            return "no variant of its plan holds"
        for name, scratch in code.scratch(sizes).items():
            if not 1 <= scratch.size_bytes <= _MOST_BYTES:
                return f"{name} would have {scratch.size_bytes} bytes"
        return next(filter(None, map(_beyond, launches)), "") or launches

    def _sizes(self, dimensions: Dimensions) -> dict[str, int]:
        """The dimensions as Python's own integers: those of other libraries may overflow."""
        if set(dimensions) != set(self._promise.ranges):
            raise ValueError(f"dimensions are {sorted(dimensions)}, the contract has {sorted(self._promise.ranges)}")
        found = {}
        for name, size in dimensions.items():
            try:
                found[name] = operator.index(size)
            except TypeError:
                raise ValueError(f"{name}={size!r} must be a whole number") from None
            if found[name] < 1:
                raise ValueError(f"{name}={size} must be at least 1")
        return found

    def _addresses(self, arrays: Mapping[str, Any], sizes: Dimensions, device: Any) -> dict[str, int]:
        wanted = self._promise.arrays(sizes)
        if set(arrays) != set(wanted):
            raise ValueError(f"arrays are {sorted(arrays)}, the contract has {sorted(wanted)}")
        found = {}
        for name, array in wanted.items():
            if min(array.shape) < 1 or array.size_bytes > _MOST_BYTES:
                raise ValueError(f"{name} would have the shape {array.shape}, which no array has")
            address = _pointer(name, arrays[name], array, device)
            if address < 1:
                raise ValueError(f"{name} has the address {address}, where no array lies")
            if address % self._promise.alignment_bytes:
                raise ValueError(f"{name} is not aligned to {self._promise.alignment_bytes} bytes")
            found[name] = address
        self._check_apart(found, wanted)
        return found

    def _check_apart(self, addresses: Mapping[str, int], wanted: Mapping[str, Array]) -> None:
        """Raise ValueError where the kernel would write memory of another array: it was not tried so."""
        for one, other in itertools.combinations(wanted, 2):
            if not (wanted[one].written or wanted[other].written):
                continue
            a, b = addresses[one], addresses[other]
            if a >= b + wanted[other].size_bytes or b >= a + wanted[one].size_bytes:
                continue
            allowed = self._promise.in_place.get(one) == other or self._promise.in_place.get(other) == one
            if a != b or not allowed:
                raise ValueError(f"{one} and {other} share memory, which the contract does not allow")

    def _content(self, name: str) -> bytes:
        """A file's bytes; raises `Altered` unless they are those that were exported."""
        path = self._folder / name
        content = path.read_bytes() if path.is_file() else b""
        found = hashlib.sha256(content).hexdigest()
        if found != self._files[name]:
            what = f"its SHA-256 is {found}, not {self._files[name]}" if path.is_file() else "it is missing"
            raise Altered(f"{path}: is not what was exported ({what}); export the kernel again")
        return content

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
            name = f"{code.name}.{kind}"
            if name not in self._files or (kind == "cubin" and digits != device.arch):
                why.append(f"no {kind} for sm_{device.arch}")
                continue
            content = self._content(name)
            try:
                module = make(content)
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


def _pointer(name: str, given: Any, array: Array, device: Any) -> int:
    """The address of an array; raises ValueError for what is no device array, or tells that it is not as `array`."""
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    interface = getattr(given, "__cuda_array_interface__", None)
    if interface is not None:
        shape, kind = tuple(interface["shape"]), interface["typestr"][1:]
        if shape != array.shape or kind not in (array.kind, *_ALSO.get(array.kind, ())):
            raise ValueError(f"{name} is {kind} of {shape}, the contract wants {array.kind} of {array.shape}")
        if not _is_contiguous(shape, interface.get("strides"), array.item_bytes):
            raise ValueError(f"{name} is not contiguous")
        if array.written and interface["data"][1]:
            raise ValueError(f"{name} is read-only, and the kernel writes it")
        return int(interface["data"][0])
    if hasattr(given, "handle") and hasattr(given, "size"):
        if int(given.size) != array.size_bytes:
            raise ValueError(f"{name} has {given.size} bytes, the contract wants {array.size_bytes} ({array.shape})")
        if getattr(given, "device_id", device.device_id) not in (device.device_id, -1):  # -1: no one device's
            raise ValueError(f"{name} is on device {given.device_id}, the current one is {device.device_id}")
        return int(given.handle)
    raise ValueError(f"{name} is a {type(given).__name__}; give an address, a Buffer or __cuda_array_interface__")


def _is_contiguous(shape: Sequence[int], strides: Sequence[int] | None, item_bytes: int) -> bool:
    """Whether elements lie one behind another in row-major order; `strides` in bytes, None where they do."""
    after = item_bytes
    for extent, stride in zip(reversed(shape), reversed(strides or ()), strict=bool(strides)):
        if extent != 1 and stride != after:
            return False
        after *= extent
    return True


def _beyond(one: Launch) -> str:
    """What of a launch is more than CUDA takes, or nothing; an integer that does not fit would be another one."""
    for field, sizes, limits in (("grid", one.grid, _MOST_GRID), ("block", one.block, _MOST_BLOCK)):
        if any(not 1 <= size <= limit for size, limit in zip(sizes, limits, strict=True)):
            return f"{one.entry}: {field} would be {sizes}, of at least 1 and at most {limits}"
    if math.prod(one.block) > _MOST_THREADS or not 0 <= one.shared_bytes <= _MOST_SHARED:
        return f"{one.entry}: {math.prod(one.block)} threads and {one.shared_bytes} bytes of shared memory are too many"
    if min(one.cluster) < 1 or math.prod(one.cluster) > _MOST_CLUSTER:
        return f"{one.entry}: cluster would be {one.cluster}, of 1 to {_MOST_CLUSTER} blocks"
    if any(blocks % size for blocks, size in zip(one.grid, one.cluster, strict=True)):
        return f"{one.entry}: grid {one.grid} is no multiple of cluster {one.cluster}"
    for kind, value in (word for word in one.args if not isinstance(word, str)):
        if kind.startswith("int") and not -(2 ** (int(kind[3:]) - 1)) <= value < 2 ** (int(kind[3:]) - 1):
            return f"{one.entry}: {value} does not fit {kind}"
    return ""


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
