"""The CUPTI clock without a card: records become spans, a false CUPTI is seen through, clocks that differ are told."""

from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from kerneltrial.devices.cuda.activity import Absent, Activity, Recorder, resolution_us, spans_us, window_us
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
