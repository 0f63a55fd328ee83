"""What a call works on, all together in one allocation or each in a place apart, on a pretended driver."""

import ctypes

import numpy as np
import pytest
from cuda import bindings as cuda_bindings
from fake_card import FakeCard

from kerneltrial.devices.cuda.laid import lay
from kerneltrial.devices.cuda.launches import Module
from kerneltrial.devices.cuda.loaded import CudaLoaded
from kerneltrial.devices.cuda.places import MARGIN_BYTES, Staging
from kerneltrial.devices.device import Conditions
from kerneltrial.devices.placement import offset_of
from kerneltrial.inputs.calls import Buffer, Call, Pointer, ResolvedLaunch

N = 250
NAMES = ("x", "y", "both", "kept", "zeros", "free")
ROLES = ("input", "output", "inout", "scratch", "scratch", "scratch")
INITIAL = ("given", "poisoned", "given", "self_restoring", "zeroed", "poisoned")
VALUES = {"x": np.arange(N, dtype=np.float32), "both": np.ones(N, np.float32)}


def call() -> Call:
    buffers = tuple(
        Buffer(name=name, role=role, dtype="float32", shape=(N,), initial=initial)
        for name, role, initial in zip(NAMES, ROLES, INITIAL, strict=True)
    )
    pointers = tuple(Pointer(buffer=name) for name in (*NAMES, "y", "y"))
    one = ResolvedLaunch(
        entry="k", grid=(1, 1, 1), block=(1, 1, 1), cluster=(1, 1, 1), cooperative=False, shared_bytes=0,
        parameters=pointers,
    )  # fmt: skip
    return Call(buffers=buffers, launches=(one,))


@pytest.fixture
def card(monkeypatch) -> FakeCard:
    made = FakeCard({"k": 5.0})
    monkeypatch.setattr(cuda_bindings, "driver", made)
    return made


@pytest.fixture(params=["together", "apart", "fenced"])
def run(request, card, monkeypatch):
    """One run with an effect on the addresses of all buffers, by name."""
    if request.param == "apart":
        monkeypatch.setattr(Staging, "nbytes", 1)
    context = card.context()

    def run(effect=lambda at: None, **more):
        card.effects["k"] = lambda pointers: effect(dict(zip(NAMES, pointers, strict=False)))
        fence = {"fence": "start"} if request.param == "fenced" else {}
        conditions = Conditions(**({"poison": "nan", "checks": "bounds"} | fence | more))
        return CudaLoaded(context, Module(b"x")).run(call(), VALUES, conditions)

    run.way = request.param
    return run


def found(address: int) -> bytes:
    return ctypes.string_at(address, 4 * N)


@pytest.mark.parametrize("poison", ["nan", "huge", "plain"])
def test_a_call_finds_what_it_is_given_and_leaves_what_it_wrote(run, poison):
    seen = {}

    def effect(at):
        seen.update({name: found(address) for name, address in at.items()})
        ctypes.memset(at["y"], 7, 4 * N)
        ctypes.memset(at["both"], 8, 4 * N)
        ctypes.memset(at["free"], 9, 4 * N)
        ctypes.memset(at["zeros"], 9, 4 * N)

    told = run(effect, poison=poison, seed=3)
    assert seen["x"] == VALUES["x"].tobytes()
    assert seen["both"] == VALUES["both"].tobytes()
    assert seen["kept"] == seen["zeros"] == bytes(4 * N)
    byte = {"nan": 0xFF, "huge": 0x7B}.get(poison)
    for name in ("y", "free"):
        assert set(seen[name]) == {byte} if byte else len(set(seen[name])) > 20
    assert told.outputs == {"y": b"\7" * 4 * N, "both": b"\10" * 4 * N}
    assert (told.completed, told.inputs_intact, told.guards_intact, told.scratch_restored) == (True,) * 4


@pytest.mark.parametrize("poison", ["nan", "plain"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("where", [-1, -MARGIN_BYTES + 64, 4 * N, 4 * N + MARGIN_BYTES - 64])
def test_a_byte_beside_a_buffer_is_missed_nowhere(run, poison, name, where):
    if run.way == "fenced" and where != 4 * N:
        pytest.skip("a fence is there, or nothing")

    def effect(at):
        cell = ctypes.c_uint8.from_address(at[name] + where)
        cell.value ^= 1

    told = run(effect, poison=poison)
    assert (told.inputs_intact, told.guards_intact, told.scratch_restored) == (True, False, True)


def test_a_changed_input_and_scratch_that_is_not_restored_show(run):
    def write(name):
        return lambda at: ctypes.memset(at[name] + 5, 1, 1)

    told = run(write("x"))
    assert (told.inputs_intact, told.guards_intact, told.scratch_restored) == (False, True, True)
    told = run(write("kept"))
    assert (told.inputs_intact, told.guards_intact, told.scratch_restored) == (True, True, False)


def test_each_buffer_has_the_shift_that_the_conditions_draw(run):
    for seed in range(8):
        seen = {}
        run(seen.update, seed=seed, offset_bytes=4)
        shifts = {name: offset_of(Conditions(poison="nan", seed=seed, offset_bytes=4), name) for name in NAMES}
        assert {name: address % 256 for name, address in seen.items()} == shifts


def test_together_neighbours_change_from_draw_to_draw(run):
    if run.way != "together":
        pytest.skip("each has a place of its own")
    orders = set()
    for seed in range(12):
        seen = {}
        run(seen.update, seed=seed)
        orders.add(tuple(sorted(seen, key=seen.__getitem__)))
    assert len(orders) > 6


def test_what_does_not_fit_the_staging_lies_apart(card, monkeypatch):
    context = card.context()
    loaded = CudaLoaded(context, Module(b"x"))
    conditions = Conditions(poison="nan", checks="bounds")
    loaded.run(call(), VALUES, conditions)
    assert sum(map(len, context.pool._free.values())) == 1
    monkeypatch.setattr(Staging, "nbytes", 4 * N * 6)  # enough without margins
    loaded.run(call(), VALUES, conditions)
    assert sum(map(len, context.pool._free.values())) > 1


@pytest.mark.parametrize(("unit", "turn"), [(256, 1), (256, 63), (4096, 1), (4096, 99)])
def test_what_a_contract_promises_of_addresses_holds_at_any_turn_and_size(card, unit, turn):
    """A wide alignment in a late turn moves buffers far: they then lie apart, and as promised."""
    context, seen = card.context(), {}
    card.effects["k"] = lambda pointers: seen.update(zip(NAMES, pointers, strict=False))
    conditions = Conditions(poison="nan", checks="bounds", offset_bytes=unit * turn)
    told = CudaLoaded(context, Module(b"x")).run(call(), VALUES, conditions)
    assert (told.inputs_intact, told.guards_intact) == (True, True)
    assert all(address % unit == 0 for address in seen.values())


def test_what_nearly_fills_the_staging_lies_within_it_or_apart(card):
    """Once the room was worked out otherwise than the places were, and a call in between broke the run."""
    for count in range(1000, 1012):
        three = tuple(
            Buffer(name=n, role="output", dtype="float32", shape=(count * 347,), initial="poisoned") for n in "xyz"
        )
        for offset in (0, 4, 256 * 40):
            conditions = Conditions(poison="nan", checks="bounds", offset_bytes=offset)
            laid = lay(card.context(), Call(buffers=three, launches=()), {}, conditions)
            laid.look()
            assert laid.margins_intact()
            laid.free()
