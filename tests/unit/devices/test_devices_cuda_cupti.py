"""The CUPTI clock without a card: records become spans, a false CUPTI is seen through, clocks that differ are told."""

import ctypes
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from kerneltrial.devices.cuda import activity
from kerneltrial.devices.cuda.activity import Absent, Activity, Recorder, resolution_us, spans_us, window_us
from kerneltrial.devices.cuda.cupti_buffers import Buffers, Unfit
from kerneltrial.devices.cuda.cupti_clock import disagreement, wrong_base

KERNEL, MEMSET, COPY = 10, 7, 5


@dataclass
class Raw:
    kind: int
    start: int
    end: int
    name: str = "k"


class FakeCupti:
    """Hands out what was put into it when it is flushed, as CUPTI does."""

    ActivityKind = SimpleNamespace(CONCURRENT_KERNEL=KERNEL, MEMSET=MEMSET)

    def __init__(self, refuses: str = "") -> None:
        self.refuses = refuses
        self.waiting: list[Raw] = []
        self.enabled: set[int] = set()

    def activity_register_callbacks(self, requested, completed) -> None:
        assert requested()[0] > 0
        self.completed = completed

    def activity_enable(self, kind: int) -> None:
        if self.refuses:
            raise RuntimeError(self.refuses)
        self.enabled.add(kind)

    def activity_disable(self, kind: int) -> None:
        self.enabled.discard(kind)

    def activity_flush_all(self, flag: int) -> None:
        found, self.waiting = self.waiting, []
        self.completed(found)


def test_kernels_and_memsets_are_kept_in_order_of_their_start_and_copies_are_not():
    cupti = FakeCupti()
    recorder = Recorder(cupti)
    recorder.start()
    cupti.waiting = [Raw(KERNEL, 30, 40), Raw(COPY, 1, 2), Raw(MEMSET, 10, 20, "unused")]
    assert recorder.drain() == (Activity("", 10, 20), Activity("k", 30, 40))
    assert recorder.drain() == ()
    recorder.stop()
    assert cupti.enabled == set()


def test_a_refusal_says_why():
    recorder = Recorder(FakeCupti("INSUFFICIENT_PRIVILEGES"))
    with pytest.raises(Absent, match="INSUFFICIENT_PRIVILEGES"):
        recorder.start()


KERNEL_LAYOUT = np.dtype(
    {"names": ["kind", "start", "end", "name"], "formats": ["i4", "u8", "u8", "u8"], "offsets": [0, 40, 48, 104],
     "itemsize": 208}
)  # fmt: skip
MEMSET_LAYOUT = np.dtype({"names": ["kind", "start", "end"], "formats": ["i4", "u8", "u8"], "offsets": [0, 16, 24],
                          "itemsize": 72})  # fmt: skip
SIZES = {KERNEL: 208, MEMSET: 72, COPY: 64}


class Library:
    """As much of CUPTI as is called past its binding: the walk over a buffer by the size of each kind of record."""

    registered: tuple = ()
    code = 0

    def cuptiActivityRegisterCallbacks(self, requested, completed) -> int:  # noqa: N802
        self.registered = requested, completed
        return self.code

    def cuptiActivityGetNextRecord(self, buffer, valid, at) -> int:  # noqa: N802
        record = at._obj
        here = record.value
        place = buffer.value if here is None else here + SIZES[ctypes.c_int32.from_address(here).value]
        if place >= buffer.value + valid.value:
            return 12
        record.value = place
        return 0


def binding(**more) -> SimpleNamespace:
    layouts = {"activity_kernel9_dtype": np.dtype("i4"), "activity_kernel10_dtype": KERNEL_LAYOUT,
               "activity_memset4_dtype": MEMSET_LAYOUT, "activity_cdp_kernel_dtype": np.dtype("i4")}  # fmt: skip
    return SimpleNamespace(ActivityKind=FakeCupti.ActivityKind, **(layouts | more))


def records(*raw: Raw) -> tuple[bytes, list]:
    """Records as they lie in a buffer, and what must live as long."""
    found, names = b"", []
    for one in raw:
        if one.kind == KERNEL:
            names.append(ctypes.create_string_buffer(one.name.encode()))
            found += np.array((one.kind, one.start, one.end, ctypes.addressof(names[-1])), KERNEL_LAYOUT).tobytes()
        elif one.kind == MEMSET:
            found += np.array((one.kind, one.start, one.end), MEMSET_LAYOUT).tobytes()
        else:
            found += np.int32(one.kind).tobytes() + bytes(SIZES[one.kind] - 4)
    return found, names


def test_records_are_read_where_they_lie_by_the_layout_of_the_newest_kind():
    kept, library = [], Library()
    buffers = Buffers(binding(), library, lambda *one: kept.append(one))
    buffers.register()
    requested, completed = library.registered
    for round_ in range(2):
        buffer, size, most = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t(7)
        requested(ctypes.pointer(buffer), ctypes.pointer(size), ctypes.pointer(most))
        content, names = records(
            Raw(MEMSET, 1, 2), Raw(KERNEL, 2**40, 2**40 + 5, "gemm"), Raw(COPY, 3, 4), Raw(KERNEL, 9, 12)
        )
        assert buffer.value % 8 == 0
        assert size.value >= len(content)
        assert most.value == 0
        ctypes.memmove(buffer.value, content, len(content))
        completed(None, 0, buffer.value, size.value, len(content))
        assert kept == [("", 1, 2), ("gemm", 2**40, 2**40 + 5), ("k", 9, 12)] * (round_ + 1)
        assert len(names) == 2
    assert len(buffers._free) == 1  # the memory is lent again


@pytest.mark.parametrize(
    "more",
    [
        {"activity_memset4_dtype": np.dtype("i4")},
        {"activity_kernel10_dtype": np.dtype([("start", "u8"), ("end", "u8"), ("name", "u8"), ("kind", "i4")])},
    ],
)
def test_a_layout_that_is_not_understood_is_not_read(more):
    with pytest.raises(Unfit):
        Buffers(binding(**more), Library(), print)


def test_a_cupti_that_takes_no_callbacks_is_read_by_the_bindings_objects(monkeypatch):
    library = Library()
    monkeypatch.setattr(activity, "loaded", lambda: library)
    cupti = FakeCupti()
    vars(cupti).update(vars(binding()))
    assert Recorder(cupti).slow == ""
    assert library.registered
    library.code = 15
    recorder = Recorder(cupti)
    assert "returned 15" in recorder.slow
    recorder.start()
    cupti.waiting = [Raw(KERNEL, 30, 40)]
    assert recorder.drain() == (Activity("k", 30, 40),)


def activities(*spans: tuple[int, int]) -> tuple[Activity, ...]:
    return tuple(Activity("k", start, end) for start, end in spans)


def test_a_calls_span_runs_from_its_first_start_to_its_last_end():
    # two calls of a memset and two kernels, of which the second outlasts the third
    two = activities((0, 500), (900, 3000), (1500, 2000), (9000, 9500), (9900, 12000), (10000, 12500))
    assert spans_us(two, 2) == (3.0, 3.5)
    assert window_us(two) == 12.5


@pytest.mark.parametrize("count", [0, 5])
def test_lost_records_are_no_times(count):
    with pytest.raises(Absent, match=f"{count} records for 3 equal calls"):
        spans_us(activities(*((i, i + 1) for i in range(count))), 3)


def test_the_resolution_is_the_step_of_the_time_stamps():
    assert resolution_us(activities((1000, 1064), (1320, 1384))) == pytest.approx(0.064)
    assert resolution_us(activities((7, 7))) == pytest.approx(0.001)


def test_clocks_that_agree_are_believed():
    # an H200's figures: matmuls and an axpy by cupti and by a graph of 50
    assert not disagreement({"a": 2.02, "b": 11.74, "c": 1.18}, {"a": 2.15, "b": 12.22, "c": 1.60})


@pytest.mark.parametrize(
    ("cupti", "graph", "why"),
    [(5.0, 4.0, "slows it"), (2.0, 4.0, "missing"), (236.0, 200.0, "slows it"), (100.0, 236.0, "missing")],
)
def test_clocks_that_differ_are_not(cupti, graph, why):
    assert why in disagreement({"a": 1.0, "b": cupti}, {"a": 1.0, "b": graph})


def test_a_batch_must_last_as_long_by_either_clock():
    assert not wrong_base(500.0, 505.0)
    assert wrong_base(500.0, 1000.0)
    assert wrong_base(0.5, 500.0)
