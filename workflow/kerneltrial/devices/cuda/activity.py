"""CUPTI activity records: when the card itself says that each kernel and each memset began and ended.

`cupti-python` is NVIDIA's binding. CUPTI calls back when a buffer of records is full or flushed; records are copied
there at once, by `cupti_buffers` where that can be, else from the binding's objects. One recorder serves a process, as
CUPTI allows one set of callbacks.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from math import gcd
from typing import Any

from kerneltrial.devices.cuda.cupti_buffers import Buffers, Unfit, loaded

_BUFFER_BYTES = 1 << 20  # CUPTI asks for a new one after every flush, and a reading is some 60 KiB of records
_NS_A_US = 1000.0
_FORCED = 1


def _refused(error: Exception) -> str:
    """CUPTI's word, and what to do where it wants permission."""
    text = str(error)
    if "PRIVILEGE" in text.upper() or "PERMISSION" in text.upper():
        text += (
            "; the driver lets only administrators profile: NVreg_RestrictProfilingToAdminUsers=0 allows everybody, "
            "and clock: graph needs no permission"
        )
    return f"CUPTI refused: {text}"


class Absent(Exception):
    """CUPTI cannot be had, or its records are not what was launched; the text says why."""


@dataclass(frozen=True)
class Activity:
    """One kernel (by its name) or memset (name empty) on the card, in nanoseconds of CUPTI's clock."""

    name: str
    start_ns: int
    end_ns: int


class Recorder:
    """Records of kernels and memsets between `start` and `stop`."""

    def __init__(self, cupti: Any) -> None:
        self._cupti = cupti
        self._kinds = (cupti.ActivityKind.CONCURRENT_KERNEL, cupti.ActivityKind.MEMSET)
        self._found: list[Activity] = []
        self._running = False
        self.slow = ""  # why records are not read where they lie
        try:
            with suppress(Exception):  # it only loads CUPTI; what is wrong with it shows below
                cupti.get_timestamp()
            self._buffers = Buffers(cupti, loaded(), self._keep)
            self._buffers.register()
        except Unfit as why:
            self.slow = str(why)
            self._register_objects()
        except Exception as error:  # cupti-python's error class moved between versions; each names its result code
            raise Absent(_refused(error)) from error

    def _register_objects(self) -> None:
        try:
            self._cupti.activity_register_callbacks(lambda: (_BUFFER_BYTES, 0), self._completed)
        except Exception as error:  # as above
            raise Absent(_refused(error)) from error

    def start(self) -> None:
        """Begin to record; raise `Absent` where CUPTI refuses, for want of permission or beside another profiler."""
        if self._running:
            return
        try:
            for kind in self._kinds:
                self._cupti.activity_enable(kind)
        except Exception as error:  # as above
            raise Absent(_refused(error)) from error
        self._running = True

    def drain(self) -> tuple[Activity, ...]:
        """What was recorded since the last drain, in order of start; the stream must have been waited for."""
        try:
            self._cupti.activity_flush_all(_FORCED)
        except Exception as error:  # as above
            raise Absent(f"CUPTI gave no records: {error}") from error
        found, self._found = self._found, []
        return tuple(sorted(found, key=lambda activity: (activity.start_ns, activity.end_ns)))

    def stop(self) -> None:
        """End recording, drop what is left."""
        if self._running:
            self._running = False
            for kind in self._kinds:
                self._cupti.activity_disable(kind)
            self.drain()

    def _completed(self, activities: Sequence[Any]) -> None:
        kernel = self._kinds[0]
        for one in activities:
            if one.kind in self._kinds:
                self._keep(str(one.name) if one.kind == kernel else "", int(one.start), int(one.end))

    def _keep(self, name: str, start_ns: int, end_ns: int) -> None:
        self._found.append(Activity(name, start_ns, end_ns))


@cache
def recorder() -> Recorder:
    """The process's recorder; raise `Absent` where cupti-python or CUPTI is not there."""
    try:
        from cupti import cupti
    except ImportError as error:
        raise Absent(f"cupti-python cannot be imported ({error}): the extra gpu brings it") from error
    except Exception as error:  # the loader's own errors, when libcupti is not found
        raise Absent(f"CUPTI cannot be loaded: {error}") from error
    return Recorder(cupti)


def spans_us(activities: Sequence[Activity], calls: int) -> tuple[float, ...]:
    """Microseconds from the first start to the last end of each of so many equal calls, in order.

    Raises
    ------
    Absent
        The records are not the same number for each call: some were lost, or not all of them are these calls'.
    """
    if not activities or len(activities) % calls:
        raise Absent(f"CUPTI gave {len(activities)} records for {calls} equal calls")
    each = len(activities) // calls
    parts = [activities[i : i + each] for i in range(0, len(activities), each)]
    return tuple((max(a.end_ns for a in part) - min(a.start_ns for a in part)) / _NS_A_US for part in parts)


def window_us(activities: Sequence[Activity]) -> float:
    """Microseconds from the first start to the last end of all."""
    return (max(a.end_ns for a in activities) - min(a.start_ns for a in activities)) / _NS_A_US


def resolution_us(activities: Sequence[Activity]) -> float:
    """The step of the time stamps: the greatest common divisor of their distances, in microseconds."""
    stamps = sorted({stamp for a in activities for stamp in (a.start_ns, a.end_ns)})
    return gcd(*(later - stamps[0] for later in stamps[1:])) / _NS_A_US if len(stamps) > 1 else 1 / _NS_A_US
