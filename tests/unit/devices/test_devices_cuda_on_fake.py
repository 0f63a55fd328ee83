"""Timing on a card whose truth is known: every clock reads what the kernels take, and honours its own rules."""

import ctypes
from statistics import median
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from cuda import bindings as cuda_bindings
from fake_card import GRAPH_GAP_US, FakeCard, FakeCublasLt, FakeCupti

from kerneltrial.devices.cuda import activity, cold_clock, cupti_clock, energy, memory, timing, vendors
from kerneltrial.devices.cuda.driver import CudaError
from kerneltrial.devices.cuda.launches import Module
from kerneltrial.devices.cuda.memory import Guarded
from kerneltrial.devices.device import Binary, Conditions, Refused, TimingRequest
from kerneltrial.inputs.calls import Buffer, Call, Pointer, Product, ResolvedLaunch
from kerneltrial.records.reason import Reason
from kerneltrial.store.canonical import canonical

BINARY = Binary(ptx="", cubin=b"x")
N = 16


def call_of(*entries: str, zeroed: bool = False) -> Call:
    """a (4 x 4) and b in, c out; each entry writes c."""
    buffers = [
        Buffer(name=name, role=role, dtype="float32", shape=(4, 4), initial=initial)
        for name, role, initial in (("a", "input", "given"), ("b", "input", "given"), ("c", "output", "poisoned"))
    ]
    if zeroed:
        buffers.append(Buffer(name="s", role="scratch", dtype="float32", shape=(4,), initial="zeroed"))
    launches = tuple(
        ResolvedLaunch(
            entry=entry, grid=(1, 1, 1), block=(1, 1, 1), cluster=(1, 1, 1), cooperative=False, shared_bytes=0,
            parameters=tuple(Pointer(buffer="c") for _ in range(8)),
        )
        for entry in entries
    )  # fmt: skip
    return Call(buffers=tuple(buffers), launches=launches)


def writes(value: float):
    return lambda pointers: ctypes.memmove(pointers[0], (ctypes.c_float * N)(*([value] * N)), 4 * N)


@pytest.fixture
def card(monkeypatch) -> FakeCard:
    made = FakeCard({"slow": 12.0, "fast": 8.0, "first": 3.0, "second": 2.0})
    for name in ("slow", "fast", "first", "second"):
        made.effects[name] = writes(1.0)
    monkeypatch.setattr(cuda_bindings, "driver", made)
    return made


@pytest.fixture
def cupti(card, monkeypatch) -> None:
    one = activity.Recorder(FakeCupti(card))
    monkeypatch.setattr(cupti_clock, "recorder", lambda: one)


def timed(card: FakeCard, a: Call, b: Call, clock: str, **more):
    request = TimingRequest(
        baseline=BINARY, baseline_call=a, candidate=BINARY, candidate_call=b, rounds=10, clock=clock, seed=3, **more
    )
    modules = {key: Module(b"x") for key in ("a", "a2", "b")}
    values = [{name: np.full((4, 4), seed, np.float32) for name in ("a", "b")} for seed in (1, 2)]
    return timing.time(card.context(), modules, request, values)


def test_the_cupti_clock_reads_spans_and_no_gaps(card, cupti):
    samples = timed(card, call_of("slow"), call_of("fast"), "cupti")
    assert samples.clock == "cupti"
    assert median(samples.warm_us["a"]) == pytest.approx(12.0, abs=0.032)
    assert median(samples.warm_us["b"]) == pytest.approx(8.0, abs=0.032)
    assert median(samples.cold_us["a"]) == pytest.approx(18.0, abs=0.064)
    assert samples.resolution_us == pytest.approx(0.032)
    assert card.recording is None  # nothing goes on recording


def test_the_graph_clock_reads_spans_and_the_gaps_between(card):
    samples = timed(card, call_of("slow"), call_of("fast"), "graph")
    assert samples.clock == "graph"
    assert median(samples.warm_us["a"]) == pytest.approx(12.0 + GRAPH_GAP_US)
    assert median(samples.cold_us["a"]) == pytest.approx(18.0 + GRAPH_GAP_US)
    assert samples.device_state["clock_choice"] == "asked for"
    assert "calls before each warm reading" in samples.device_state["warm_up"]


@pytest.mark.parametrize("clock", ["cupti", "graph"])
def test_a_short_call_has_a_throughput_too_and_the_outputs_stay_the_candidates(card, cupti, clock):
    card.effects["fast"] = writes(5.0)
    samples = timed(card, call_of("slow"), call_of("fast"), clock)
    assert samples.throughput_us["a"] == pytest.approx(12.0 + GRAPH_GAP_US)
    assert samples.throughput_us["b"] == pytest.approx(8.0 + GRAPH_GAP_US)
    assert samples.outputs[0]["c"] == np.full(N, 5.0, np.float32).tobytes()
    card.durations["fast"] = 11.0
    assert timed(card, call_of("slow"), call_of("fast"), clock).throughput_us == {}


@pytest.mark.parametrize(("event_gap_us", "code_us"), [(0.0, 0.0), (1.2, 0.0), (1.2, 0.7)])
def test_what_lies_around_a_cold_call_is_taken_off_but_for_one_gap(card, event_gap_us, code_us):
    """On the card a kernel that follows an event waits longer; a reading less an empty pair would hold that wait.

    And one that follows another behind a sweep waits for its code, which is no gap that a call has.
    """
    card.event_gap_us, card.code_us = event_gap_us, code_us
    samples = timed(card, call_of("slow"), call_of("fast"), "graph")
    assert median(samples.cold_us["a"]) == pytest.approx(18.0 + GRAPH_GAP_US)
    assert median(samples.cold_us["b"]) == pytest.approx(12.0 + GRAPH_GAP_US)
    assert samples.device_state["cold_around_b"] == "an empty kernel"
    assert float(samples.device_state["cold_empty_pair_us_b"]) == 0.0


@pytest.mark.parametrize("clock", ["cupti", "graph", "events", "events-10-100"])
@pytest.mark.parametrize(("warm", "share"), [(("b",), 2 / 3), (("a", "c"), 1 / 3), (("a", "b", "c"), 0.0)])
def test_stated_buffers_are_in_the_l2_when_a_call_starts_and_others_are_not(card, cupti, clock, warm, share):
    """Each of three buffers is a third of what a call works on; one that misses all of it takes half as long again."""
    card.working_bytes, card.event_gap_us = 3 * 4 * N, 1.2
    samples = timed(card, call_of("slow"), call_of("fast"), clock, warm=warm, order="abba")
    gap = 0.0 if clock == "cupti" else GRAPH_GAP_US
    assert set(samples.stated_us) == set(samples.cold_us) == {"a", "a2", "b", "b2"}
    for key, us in (("a", 12.0), ("a2", 12.0), ("b", 8.0), ("b2", 8.0)):
        assert len(samples.stated_us[key]) == 10
        assert median(samples.stated_us[key]) == pytest.approx(us * (1 + 0.5 * share) + gap, abs=0.064)
        assert median(samples.cold_us[key]) == pytest.approx(1.5 * us + gap, abs=0.064)


def test_stated_buffers_are_read_where_the_call_finds_them_and_whole(card):
    card.working_bytes, places = 3 * 4 * N, []
    card.effects["fast"] = lambda pointers: places.append(pointers[0])
    samples = timed(card, call_of("slow"), call_of("fast"), "graph", warm=("b", "c"))
    assert {nbytes for _, nbytes in card.read} == {4 * N}
    starts = {start for start, _ in card.read}
    assert len(starts) == 4  # of two input sets, each with b of its own and a slot for c
    assert len(starts.intersection(places)) == 2
    assert samples.device_state["stated_residency"].endswith("to empty the L2, then b (64 bytes), c (64 bytes)")


def test_without_a_statement_there_is_no_third_figure(card, cupti):
    samples = timed(card, call_of("slow"), call_of("fast"), "cupti")
    assert samples.stated_us is msgspec.UNSET
    assert card.read == []
    assert b"stated" not in canonical(msgspec.structs.replace(samples, outputs=()))


def test_what_lies_around_a_call_is_read_in_its_own_launch_configuration():
    launch = msgspec.structs.replace(
        call_of("slow").launches[0],
        grid=(7, 2, 1),
        block=(96, 1, 1),
        shared_bytes=2048,
        cluster=(1, 2, 1),
        cooperative=True,
    )
    like, bare = cold_clock.nothing_like(launch), cold_clock.nothing_like(None)
    assert (like.grid, like.block, like.shared_bytes) == ((7, 2, 1), (96, 1, 1), 2048)
    assert (like.entry, like.parameters, like.cluster, like.cooperative) == ("main", (), (1, 1, 1), False)
    assert (bare.grid, bare.block, bare.shared_bytes) == ((1, 1, 1), (1, 1, 1), 0)


@pytest.mark.parametrize(("one", "more"), [(2.0, 2.1), (2.0, 1.6), (9.0, 3.0), (2.0, -0.1), (2.0, 0.0)])
def test_empty_kernels_that_were_disturbed_are_not_believed(one, more):
    pair = 0.5
    taken, told = cold_clock.around(pair, one, more)
    assert taken == pair
    assert told["cold_around"].startswith("an empty pair")
    assert told["cold_one_empty_kernel_us"] == repr(one)


def test_a_plans_span_holds_its_memset_and_the_gaps_within(card, cupti):
    two = call_of("first", "second", zeroed=True)
    samples = timed(card, call_of("slow"), two, "cupti")
    assert median(samples.warm_us["b"]) == pytest.approx(0.5 + 2.0 + 3.0 + 2.0 + 2.0, abs=0.032)


def test_auto_takes_cupti_where_it_agrees_and_says_so(card, cupti):
    samples = timed(card, call_of("slow"), call_of("fast"), "auto")
    assert samples.clock == "cupti"
    choice = samples.device_state["clock_choice"]
    warm, cold = choice.split("; cold: ")
    assert warm.startswith("cupti and graph agree, us a call: a 12.0")
    assert cold.startswith("a 18.0")
    assert cold.count(" | ") == 3


@pytest.mark.parametrize(("slows", "clock"), [(1.02, "cupti"), (1.07, "graph"), (0.8, "graph")])
def test_auto_leaves_cupti_where_it_reads_cold_calls_otherwise_than_graphs(card, cupti, slows, clock):
    card.recording_slows_cold = slows
    samples = timed(card, call_of("slow"), call_of("fast"), "auto")
    assert samples.clock == clock
    if clock == "graph":
        assert "us for a cold call of a where a graph needs 18.250 us" in samples.device_state["clock_choice"]
    assert card.recording is None
    assert median(samples.cold_us["a"]) == pytest.approx(18.0 * 1.02 if clock == "cupti" else 18.25, abs=0.07)


def test_auto_leaves_cupti_where_recording_stretches_a_plan(card, cupti):
    # launched one by one, the plan's own gaps are 2 us; in a graph 0.25
    samples = timed(card, call_of("slow"), call_of("first", "second"), "auto")
    assert samples.clock == "graph"
    assert "recording slows it" in samples.device_state["clock_choice"]
    assert card.recording is None


def test_auto_leaves_cupti_where_it_loses_records(card, cupti, monkeypatch):
    monkeypatch.setattr(FakeCupti, "activity_flush_all", lambda self, flag: None)
    samples = timed(card, call_of("slow"), call_of("fast"), "auto")
    assert samples.clock == "graph"
    assert "0 records" in samples.device_state["clock_choice"]
    with pytest.raises(Refused) as caught:
        timed(card, call_of("slow"), call_of("fast"), "cupti")
    assert caught.value.finding.reason is Reason.NOT_MEASURED


@pytest.mark.parametrize(("lost", "refused"), [("", False), ("slow", True), ("fast", True)])
def test_a_kernels_lost_record_is_noticed_and_a_fills_is_none_of_the_readings(card, cupti, monkeypatch, lost, refused):
    """CUPTI now and then tells one fill less (seen on an H200)."""
    plain, flushes = FakeCupti.activity_flush_all, []

    def loses(self, flag):
        flushes.append(flag)
        found = self._card.recording or []
        if len(flushes) > 30 and len(found) > 12:  # a warm reading
            first = next((place for place, one in enumerate(found) if one.name == lost), None)
            if first is not None:
                del found[first]
        plain(self, flag)

    monkeypatch.setattr(FakeCupti, "activity_flush_all", loses)
    if not refused:
        samples = timed(card, call_of("slow"), call_of("fast"), "cupti")
        assert median(samples.warm_us["b"]) == pytest.approx(8.0, abs=0.032)
        return
    with pytest.raises(Refused, match="records of kernels"):
        timed(card, call_of("slow"), call_of("fast"), "cupti")


def test_no_memory_is_had_while_a_graph_is_captured_so_a_sweep_is_made_before(card):
    context = card.context()
    with pytest.raises(CudaError, match="STREAM_CAPTURE_UNSUPPORTED from cuMemAlloc"):
        context.queue.graph(lambda: context.sweep.enqueue())
    context.sweep.enqueue()
    context.queue.graph(context.sweep.enqueue).free()


def test_auto_without_cupti_is_the_graph(card):
    samples = timed(card, call_of("slow"), call_of("fast"), "auto")
    assert samples.clock == "graph"
    assert "cupti" in samples.device_state["clock_choice"]


@pytest.fixture
def cublas(card, monkeypatch) -> FakeCublasLt:
    library = FakeCublasLt(card, (9.0, float("inf"), 7.0, 8.0), value=1.0)
    kinds = SimpleNamespace(COMPUTE_32F="32F", COMPUTE_64F="64F", COMPUTE_32F_FAST_TF32="TF32")
    monkeypatch.setattr(vendors, "_bindings", lambda: (library, SimpleNamespace(ComputeType=kinds)))
    return library


@pytest.mark.parametrize("clock", ["graph", "cupti", "events"])
@pytest.mark.parametrize("order", ["random", "abba"])
def test_cublas_is_timed_by_its_fastest_algorithm_beside_the_others(card, cupti, cublas, clock, order):
    vendor = Product(left="a", right="b", out="c")
    samples = timed(card, call_of("slow"), call_of("fast"), clock, order=order, vendors=(vendor,))
    assert samples.vendors_absent == {}
    assert median(samples.warm_us["cublas"]) == pytest.approx(7.0, abs=2.5 if clock == "events" else 0.3)
    assert len(samples.warm_us["cublas"]) == len(samples.cold_us["cublas"]) == 10
    assert samples.device_state["cublas_algorithm_chosen"] == "2"
    assert samples.device_state["cublas_algorithms_tried"] == "4"
    assert cublas.described["compute"] == "32F"
    assert (cublas.described["TRANSA"], cublas.described["TRANSB"]) == (0, 0)
    assert cublas.open == []
    assert samples.outputs[0]["c"] == np.ones(N, np.float32).tobytes()
    assert card.launched[-1] == "fast"  # what lies in the outputs is the candidate's


@pytest.mark.parametrize(("algorithm", "taken"), [(0, "0"), (3, "3"), (-1, "2"), (9, "2"), (1, "2")])
def test_the_algorithm_is_the_one_that_is_asked_for_if_it_runs_or_the_fastest(card, cublas, algorithm, taken):
    product = Product(left="a", right="b", out="c", algorithm=algorithm)
    samples = timed(card, call_of("slow"), call_of("fast"), "graph", vendors=(product,))
    assert samples.device_state["cublas_algorithm_chosen"] == taken


def test_transposed_factors_and_tf32_are_described_as_the_library_wants_them(card, cublas):
    vendor = Product(left="a", right="b", out="c", left_transposed=True, tf32=True)
    timed(card, call_of("slow"), call_of("fast"), "graph", vendors=(vendor,))
    assert cublas.described["compute"] == "TF32"
    assert (cublas.described["TRANSA"], cublas.described["TRANSB"]) == (0, 1)


def test_a_vendor_with_another_result_is_absent(card, monkeypatch):
    library = FakeCublasLt(card, (9.0,), value=1.5)
    kinds = SimpleNamespace(ComputeType=SimpleNamespace(COMPUTE_32F=1))
    monkeypatch.setattr(vendors, "_bindings", lambda: (library, kinds))
    samples = timed(card, call_of("slow"), call_of("fast"), "graph", vendors=(Product(left="a", right="b", out="c"),))
    assert "another computation" in samples.vendors_absent["cublas"]
    assert "cublas" not in samples.warm_us
    assert library.open == []


@pytest.mark.parametrize("times", [(), (float("inf"),)])
def test_a_vendor_without_an_algorithm_is_absent(card, monkeypatch, times):
    library = FakeCublasLt(card, times)
    kinds = SimpleNamespace(ComputeType=SimpleNamespace(COMPUTE_32F=1))
    monkeypatch.setattr(vendors, "_bindings", lambda: (library, kinds))
    samples = timed(card, call_of("slow"), call_of("fast"), "graph", vendors=(Product(left="a", right="b", out="c"),))
    assert "algorithm" in samples.vendors_absent["cublas"]
    assert library.open == []


def test_a_vendor_that_is_not_installed_is_absent_here(card):
    samples = timed(card, call_of("slow"), call_of("fast"), "graph", vendors=(Product(left="a", right="b", out="c"),))
    assert "cublas" in samples.vendors_absent


class Meter:
    """A counter of energy that steps every 20 ms, and a run of 2 ms at 500 W."""

    def __init__(self) -> None:
        self.now = 0.013

    def run(self) -> None:
        self.now += 0.002

    def counter(self) -> int:
        return 7000 + int(self.now / 0.02) * 10_000  # 500 W for 20 ms are 10 J

    def clock(self) -> float:
        return self.now


def test_a_block_of_energy_runs_from_step_to_step():
    meter = Meter()
    assert energy.block_mj(meter.run, meter.counter, meter.clock) == pytest.approx(1000.0, rel=1e-6)  # 500 W x 2 ms
    assert 0.3 < meter.now < 0.36


def test_a_counter_that_stands_still_is_none():
    meter = Meter()
    with pytest.raises(energy.Absent, match="does not move"):
        energy.block_mj(meter.run, lambda: 5, meter.clock)


def test_energy_that_cannot_be_read_leaves_the_times_alone(card):
    samples = timed(card, call_of("slow"), call_of("fast"), "graph", energy=True)
    assert samples.energy_mj == {}
    assert "cannot be read" in samples.energy_absent
    assert len(samples.warm_us["a"]) == 10


def test_energy_is_read_of_both_in_turn(card, monkeypatch):
    made = iter(range(10**6))
    monkeypatch.setattr(energy, "_counter", lambda context: 10 * next(made))
    monkeypatch.setattr(energy, "_BLOCK_S", 0.0)
    samples = timed(card, call_of("slow"), call_of("fast"), "graph", energy=True)
    assert {key: len(values) for key, values in samples.energy_mj.items()} == {"a": 2, "b": 2}
    assert samples.outputs[0]["c"] == np.ones(N, np.float32).tobytes()


def test_plain_poison_lies_in_the_buffer_and_around_it(card, monkeypatch) -> None:
    """In pieces that repeat; a byte written beside the buffer shows, whichever side it is on."""
    monkeypatch.setattr(memory, "REPEAT_BYTES", 256)
    for offset in (0, 512):
        guarded = Guarded(Buffer(name="y", role="output", dtype="float32", shape=(150,), initial="poisoned"), 0, offset)
        guarded.poison(Conditions(poison="plain", seed=5))
        values = np.abs(guarded.download().view(np.float32))
        assert values.size == 150
        assert ((values >= 1 / 16) & (values < 16)).all()
        assert np.array_equal(values[:64], values[64:128])
        assert guarded.margins_intact()
        for beside in (guarded.address - 1, guarded.address + guarded.nbytes):
            byte = ctypes.c_uint8.from_address(beside)
            byte.value ^= 1
            assert not guarded.margins_intact()
            byte.value ^= 1
            assert guarded.margins_intact()
        guarded.free()


def reading(entry: str, *scratch: Buffer, **roles: str) -> Call:
    """a and b in, c out; the kernel is handed all three and scratch, the last one again up to eight pointers."""
    call = call_of(entry)
    changed = (msgspec.structs.replace(b, role=roles.get(b.name, b.role)) for b in call.buffers)
    buffers = (*changed, *scratch)
    names = [buffer.name for buffer in buffers]
    parameters = tuple(Pointer(buffer=name) for name in (names + [names[-1]] * 8)[:8])
    return Call(buffers=buffers, launches=(msgspec.structs.replace(call.launches[0], parameters=parameters),))


def scratch(initial: str) -> Buffer:
    return Buffer(name="s", role="scratch", dtype="float32", shape=(4, 4), initial=initial)


def floats(address: int):
    return (ctypes.c_float * N).from_address(address)


def ones(pointers: list[int]) -> None:
    floats(pointers[2])[:] = [1.0] * N


def doubles(card: FakeCard, found: list[bool]) -> None:
    """`fast` writes c = 2 a, and notes whether it found that there; `slow` writes ones."""

    def effect(pointers: list[int]) -> None:
        a, c = floats(pointers[0]), floats(pointers[2])
        found.append(c[0] == 2 * a[0])
        c[:] = [2 * value for value in a]

    card.effects |= {"slow": ones, "fast": effect}


@pytest.mark.parametrize("clock", ["graph", "cupti", "auto", "events"])
@pytest.mark.parametrize("us", [12.0, 9000.0])
def test_no_timed_call_finds_its_own_answer(card, cupti, clock, us):
    """Warm or cold, in a batch of whole cycles or in one of a slow kernel that is cut short."""
    found: list[bool] = []
    card.durations["slow"] = us
    doubles(card, found)
    samples = timed(card, reading("slow"), reading("fast"), clock)
    assert found
    assert not any(found)
    for seed, left in zip((1, 2), samples.outputs, strict=True):  # each set's, whichever slot it lies in
        assert left["c"] == np.full(N, 2.0 * seed, np.float32).tobytes()


@pytest.mark.parametrize("clock", ["graph", "cupti", "events"])
def test_no_timed_call_finds_its_own_answer_beside_an_inout(card, cupti, clock):
    found: list[bool] = []
    doubles(card, found)
    timed(card, reading("slow", b="inout"), reading("fast", b="inout"), clock)
    assert found
    assert not any(found)


@pytest.mark.parametrize("clock", ["graph", "cupti", "events"])
def test_a_reading_starts_with_scratch_that_holds_nothing_of_the_one_before(card, cupti, clock):
    """Timed launches: the first of a reading, and every cold one, finds poison."""
    held: list[bool] = []

    def effect(pointers: list[int]) -> None:
        kept = floats(pointers[3])
        held.append(kept[0] == 7.0)
        kept[:] = [7.0] * N

    card.effects |= {"slow": ones, "fast": effect}
    timed(card, reading("slow"), reading("fast", scratch("poisoned")), clock)
    assert held.count(False) > 2 * 10  # 10 rounds, warm and cold, and the rehearsal


def test_self_restoring_scratch_that_timed_launches_leave_full_is_refused(card):
    card.effects["slow"] = ones
    card.effects["fast"] = lambda pointers: floats(pointers[3]).__setitem__(0, 1.0)
    with pytest.raises(Refused) as caught:
        timed(card, reading("slow"), reading("fast", scratch("self_restoring")), "graph")
    assert caught.value.finding.reason is Reason.NOT_DETERMINISTIC
    assert "scratch s" in caught.value.finding.detail
