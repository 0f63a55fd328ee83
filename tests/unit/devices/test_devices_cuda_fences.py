"""Fences and the filling of shared memory, on a pretended driver that knows what is mapped."""

import ctypes

import numpy as np
import pytest
from cuda import bindings as cuda_bindings
from cuda.bindings import driver as real
from fake_card import PAGE, FakeCard

from kerneltrial.devices.cuda.driver import CudaError
from kerneltrial.devices.cuda.launches import Module
from kerneltrial.devices.cuda.loaded import CudaLoaded
from kerneltrial.devices.cuda.places import Pool, Staging
from kerneltrial.devices.device import Conditions
from kerneltrial.inputs.calls import Buffer, Call, Pointer, ResolvedLaunch
from kerneltrial.records.reason import Reason

N = 250  # 1000 bytes: no multiple of 256
X = np.arange(N, dtype=np.float32)


def call_of(entry: str = "k") -> Call:
    buffers = (
        Buffer(name="x", role="input", dtype="float32", shape=(N,), initial="given"),
        Buffer(name="y", role="output", dtype="float32", shape=(N,), initial="poisoned"),
    )
    one = ResolvedLaunch(
        entry=entry, grid=(1, 1, 1), block=(1, 1, 1), cluster=(1, 1, 1), cooperative=False, shared_bytes=0,
        parameters=(Pointer(buffer="x"), Pointer(buffer="y"), *(Pointer(buffer="y") for _ in range(6))),
    )  # fmt: skip
    return Call(buffers=buffers, launches=(one,))


@pytest.fixture
def card(monkeypatch) -> FakeCard:
    made = FakeCard({"k": 5.0})
    made.seen = []
    made.effects["k"] = lambda pointers: made.seen.append((*pointers[:2], dict(made.mapped)))
    monkeypatch.setattr(cuda_bindings, "driver", made)
    return made


def run(card: FakeCard, context=None, **more):
    conditions = Conditions(**({"poison": "nan", "checks": "bounds"} | more))
    return CudaLoaded(context or card.context(), Module(b"x")).run(call_of(), {"x": X}, conditions)


@pytest.mark.parametrize(("fence", "offset"), [("start", 0), ("start", 16), ("end", 4), ("end", 16), ("end", 0)])
def test_each_buffer_lies_between_pages_that_are_not_mapped(card, fence, offset):
    context = card.context()
    told = run(card, context, fence=fence, offset_bytes=offset)
    assert told.completed
    assert (told.inputs_intact, told.guards_intact) == (True, True)
    ((x, y, mapped),) = card.seen
    assert len(mapped) == 2
    for address, allowed in ((x, "READ"), (y, "READWRITE")):
        ((start, (nbytes, may)),) = [(s, m) for s, m in mapped.items() if s <= address < s + m[0]]
        assert may == allowed
        assert not any(start - PAGE < s + m[0] and s < start + nbytes + PAGE for s, m in mapped.items() if s != start)
        if fence == "start":
            assert address - start in ({0} if offset == 0 else {0, 16, 32, 48})
        else:
            alignment = offset or 256
            assert address % alignment == 0
            assert 0 <= start + nbytes - (address + 4 * N) < alignment
    assert {may for _, may in card.mapped.values()} == {"READWRITE"}  # kept, and open to whoever comes next
    context.fences.empty()
    assert card.mapped == {}  # all is given back
    assert len(card._memory) == 1  # but for the flag of the queue


def test_fenced_pages_are_used_again_and_filled_anew(card):
    context = card.context()
    left = []

    def leaves(pointers):
        y = pointers[1]
        left.append((y, ctypes.string_at(y, 4 * N)))
        ctypes.memset(y, 1, 4 * N)

    card.effects["k"] = leaves
    for poison in ("nan", "huge", "nan"):
        assert run(card, context, poison=poison, fence="start").guards_intact
    assert len(card.mapped) == 2  # two buffers, however many calls
    assert [set(found) for _, found in left] == [{0xFF}, {0x7B}, {0xFF}]


def test_no_more_fenced_pages_are_kept_than_may_be(card):
    fences = card.context().fences
    large = [fences.take(24 << 20) for _ in range(4)]
    for pages in large:
        fences.give(pages)
    assert len(card.mapped) == 2  # 64 MiB at most


@pytest.mark.parametrize("together", [True, False])
def test_plain_memory_is_used_again_and_filled_anew(card, monkeypatch, together):
    monkeypatch.setattr(Staging, "nbytes", Staging.nbytes if together else 1)
    context = card.context()
    left = []

    def leaves(pointers):
        x, y = pointers[:2]
        left.append((x, y, ctypes.string_at(y - 8, 4 * N + 16)))
        ctypes.memset(y, 1, 4 * N)

    card.effects["k"] = leaves
    for poison in ("nan", "huge", "nan"):
        assert run(card, context, poison=poison).guards_intact
    assert len({(x, y) for x, y, _ in left}) <= 2  # the same memory, perhaps in another order
    assert [set(found) for _, _, found in left] == [{0xFF}, {0x7B}, {0xFF}]
    context.staging.free()
    context.pool.empty()
    assert len(card._memory) == 1


def test_a_full_card_gives_back_what_is_held_before_it_is_called_full(card, monkeypatch):
    pool, plain = Pool(), card.cuMemAlloc
    pool.give(pool.take(1 << 20), 1 << 20)

    def full_while_held(nbytes):
        return (real.CUresult.CUDA_ERROR_OUT_OF_MEMORY, 0) if card._memory else plain(nbytes)

    monkeypatch.setattr(card, "cuMemAlloc", full_while_held)
    assert pool.take(1 << 21)
    with pytest.raises(CudaError):
        pool.take(1 << 22)


def test_a_pool_holds_no_more_than_it_may(card):
    pool = Pool()
    for nbytes, kept in ((60 << 20, 4), (100 << 20, 4)):  # 64 MiB each; too large to be kept
        large = [pool.take(nbytes) for _ in range(6)]
        for start in large:
            pool.give(start, nbytes)
        assert len(card._memory) == kept


def test_an_end_that_fits_the_alignment_touches_the_fence(card):
    run(card, fence="end", offset_bytes=8)
    ((x, _, mapped),) = card.seen
    assert x + 4 * N in {start + nbytes for start, (nbytes, _) in mapped.items()}


@pytest.mark.parametrize("at", ["behind", "before", "input"])
def test_a_stray_access_is_a_fault_of_the_candidate_and_says_what_lay_around(card, at):
    def strays(pointers):
        x, y = pointers[:2]
        where = {"behind": x + 4 * N, "before": y - 1, "input": x}[at]
        card.touch(where, write=at == "input")

    card.effects["k"] = strays
    fence = "start" if at == "before" else "end"
    context = card.context()
    told = run(card, context, fence=fence, offset_bytes=0 if fence == "start" else 8)
    assert not told.completed
    assert [f.reason for f in told.findings] == [Reason.DEVICE_FAULT]
    assert "between pages that are not mapped" in told.findings[0].detail
    assert context.spent == told.findings[0]


def test_an_honest_read_faults_nowhere(card):
    def reads(pointers):
        for at in (0, 4 * N - 1):
            card.touch(pointers[0] + at)
            card.touch(pointers[1] + at, write=True)

    card.effects["k"] = reads
    for fence, offset in (("start", 0), ("end", 8)):
        assert run(card, fence=fence, offset_bytes=offset).completed


def test_a_write_into_what_is_left_before_the_fence_is_seen(card):
    card.effects["k"] = lambda pointers: ctypes.memset(pointers[1] + 4 * N, 0, 1)
    told = run(card, fence="end", offset_bytes=16)
    assert told.completed
    assert not told.guards_intact


def test_without_virtual_memory_margins_stand_in_and_it_is_said(card):
    card.virtual = False
    told = run(card, fence="end", offset_bytes=16)
    assert told.completed
    ((_, _, mapped),) = card.seen
    assert mapped == {}
    (said,) = [f for f in told.unchecked if "not fenced" in f.detail]
    assert said.reason is Reason.CHECK_ABSENT
    assert "no virtual memory management" in said.detail
    assert not any("not fenced" in f.detail for f in run(card).unchecked)  # where none was asked for


def test_a_driver_that_will_not_map_is_said_too(card, monkeypatch):
    monkeypatch.setattr(card, "cuMemCreate", lambda *_: (real.CUresult.CUDA_ERROR_NOT_PERMITTED, 0))
    told = run(card, fence="start")
    assert told.completed
    assert any("CUDA_ERROR_NOT_PERMITTED from cuMemCreate" in f.detail for f in told.unchecked)
    assert not card.mapped
    assert len(card._memory) == 4  # what was reserved is given back: a flag, staging, an allocation to be used again


@pytest.mark.parametrize(
    ("poison", "seed", "word"), [("nan", 0, 0xFFFFFFFF), ("huge", 0, 0x7B7B7B7B), ("plain", 1, 0x3F3F3F3F)]
)
def test_shared_memory_is_filled_before_each_call(card, poison, seed, word):
    context = card.context()
    for _ in range(2):
        run(card, context, poison=poison, seed=seed)
    assert card.scrubbed == [word] * 2


def test_a_driver_that_does_not_assemble_the_filling_is_said(card, monkeypatch):
    loads = card.cuModuleLoadData
    monkeypatch.setattr(
        card, "cuModuleLoadData",
        lambda content: (real.CUresult.CUDA_ERROR_INVALID_PTX, 0) if b"scrub" in content else loads(content),
    )  # fmt: skip
    told = run(card)
    assert told.completed
    assert any("shared memory was not filled" in f.detail and "INVALID_PTX" in f.detail for f in told.unchecked)
