"""CUPTI's records, read where they lie in its buffers.

`cupti-python` makes an object of each record, which takes longer than many a kernel: of a reading's time on an H200 it
was more than half. Here only what is wanted is read. How a record is laid out is what the binding says of its own CUPTI
(`activity_kernel10_dtype` and the like), and the walk over a buffer is CUPTI's (`cuptiActivityGetNextRecord`).
"""

import ctypes
import os
import re
from collections.abc import Callable
from typing import Any

_BUFFER_BYTES = 1 << 20
_ALIGNMENT = 8  # CUPTI, "ACTIVITY_RECORD_ALIGNMENT"
_NAMES = ("libcupti.so.13", "libcupti.so.12", "libcupti.so.14", "libcupti.so")
_SUCCESS = 0

_Requested = ctypes.CFUNCTYPE(
    None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_size_t)
)
_Completed = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
Keep = Callable[[str, int, int], None]
"""What is done with a record: its name (empty for a memset), first and last nanosecond."""


class Unfit(Exception):
    """This CUPTI cannot be read so; the text says why. The binding's own objects do as well, and take longer."""


class Buffers:
    """Memory that CUPTI fills, and what is read from it.

    Parameters
    ----------
    cupti
        The module `cupti.cupti`.
    library
        CUPTI itself, loaded.
    keep
        Called for each kernel and memset, in the order of the buffer.
    """

    def __init__(self, cupti: Any, library: Any, keep: Keep) -> None:
        kinds = cupti.ActivityKind
        self._kernel, self._memset = int(kinds.CONCURRENT_KERNEL), int(kinds.MEMSET)
        self._kernel_at = _offsets(cupti, "kernel", ("start", "end", "name"))
        self._memset_at = _offsets(cupti, "memset", ("start", "end"))
        self._library, self._keep = library, keep
        self._free: list[Any] = []
        self._lent: dict[int, Any] = {}
        self._callbacks = (_Requested(self._requested), _Completed(self._completed))  # kept, as CUPTI keeps pointers

    def register(self) -> None:
        """Have CUPTI call back here; raise `Unfit` where it does not want to."""
        code = self._library.cuptiActivityRegisterCallbacks(*self._callbacks)
        if code != _SUCCESS:
            raise Unfit(f"cuptiActivityRegisterCallbacks returned {code}")

    def _requested(self, buffer: Any, size: Any, most: Any) -> None:
        memory = self._free.pop() if self._free else ctypes.create_string_buffer(_BUFFER_BYTES + _ALIGNMENT)
        address = -(-ctypes.addressof(memory) // _ALIGNMENT) * _ALIGNMENT
        self._lent[address] = memory
        buffer[0], size[0], most[0] = address, _BUFFER_BYTES, 0

    def _completed(self, context: Any, stream: int, buffer: int, size: int, valid: int) -> None:
        if valid:
            self.read(buffer, valid)
        self._free.append(self._lent.pop(buffer))

    def read(self, buffer: int, valid: int) -> None:
        """Keep the kernels and memsets of a buffer that begins at this address and holds so many bytes."""
        record = ctypes.c_void_p(None)
        following, at = self._library.cuptiActivityGetNextRecord, ctypes.byref(record)
        while following(ctypes.c_void_p(buffer), ctypes.c_size_t(valid), at) == _SUCCESS:
            place = record.value
            assert place is not None
            kind = _integer(place, ctypes.c_int32)
            if kind == self._kernel:
                start, end, name = self._kernel_at
                text = self._name(_integer(place + name, ctypes.c_uint64))
                self._keep(text, _integer(place + start, ctypes.c_uint64), _integer(place + end, ctypes.c_uint64))
            elif kind == self._memset:
                start, end = self._memset_at
                self._keep("", _integer(place + start, ctypes.c_uint64), _integer(place + end, ctypes.c_uint64))

    def _name(self, address: int) -> str:
        found = ctypes.string_at(address).decode(errors="replace") if address else ""
        return found or "kernel without a name"


def _integer(address: int, kind: Any) -> int:
    return int(kind.from_address(address).value)


def _offsets(cupti: Any, what: str, fields: tuple[str, ...]) -> tuple[int, ...]:
    """Where these fields lie in the newest record of this kind that the binding knows, which is its CUPTI's own."""
    found = {
        int(match[1] or 1): name for name in dir(cupti) if (match := re.fullmatch(rf"activity_{what}(\d*)_dtype", name))
    }
    if not found:
        raise Unfit(f"cupti-python tells no layout of a {what}'s record")
    layout = getattr(cupti, found[max(found)]).fields or {}
    missing = [field for field in ("kind", *fields) if field not in layout]
    if missing or layout["kind"][1] != 0:
        raise Unfit(f"the layout of a {what}'s record has no {', '.join(missing) or 'kind at its start'}")
    return tuple(int(layout[field][1]) for field in fields)


def loaded() -> Any:
    """The CUPTI that this process has loaded already; raise `Unfit` where it is not found by its usual names."""
    for name in _NAMES:
        try:
            return ctypes.CDLL(name, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        except OSError:
            continue
    raise Unfit("CUPTI is loaded under another name than usual")
