"""Calls on a card: right results, and everything that a call can do wrong without a fault."""

import numpy as np
import pytest
from own_process import buffer, integer, launch, numbers, simple_call

from kerneltrial.devices.device import Binary, Conditions, DeviceProblem, Refused
from kerneltrial.inputs.calls import Call, Scalar
from kerneltrial.records.reason import Reason

pytestmark = pytest.mark.gpu
NAN, HUGE = Conditions(poison="nan"), Conditions(poison="huge")
PLAIN = Conditions(poison="plain", seed=7)
SHAPES = [(31, 37, 29), (256, 256, 256), (384, 256, 320), (1, 1, 1), (65, 1, 130)]


def product(entry: str, m: int, n: int, k: int) -> Call:
    """A call of one of the four products in `matmul.cu`."""
    tile = {"naive": 16, "tiled": 32, "blocked": 64, "split": 16}[entry]
    side = {"naive": 16, "tiled": 32, "blocked": 16, "split": 16}[entry]
    grid = (-(-n // tile), -(-m // tile))
    buffers = [buffer("a", "input", m, k), buffer("b", "input", k, n), buffer("c", "output", m, n)]
    if entry != "split":
        shared = 8192 if entry == "blocked" else 0
        dims = [integer(m), integer(n), integer(k)]
        one = launch(entry, grid, (side, side), ["a", "b", "c", *dims], shared_bytes=shared)
        return Call(buffers=tuple(buffers), launches=(one,))
    buffers.append(buffer("partial", "scratch", 4, m, n))
    buffers.append(buffer("done", "scratch", grid[0] * grid[1], dtype="uint32", initial="self_restoring"))
    parameters = ["a", "b", "c", "partial", "done", integer(m), integer(n), integer(k)]
    return Call(buffers=tuple(buffers), launches=(launch("split", (*grid, 4), (side, side), parameters),))


def factors(m: int, n: int, k: int, seed: int = 0) -> dict[str, np.ndarray]:
    return {"a": numbers(m * k, seed).reshape(m, k), "b": numbers(k * n, seed + 1).reshape(k, n)}


@pytest.mark.parametrize("entry", ["naive", "tiled", "blocked", "split"])
@pytest.mark.parametrize("shape", SHAPES)
def test_products_agree_with_float64(card, matmul, entry, shape):
    values = factors(*shape)
    loaded = card.load(matmul)
    runs = [loaded.run(product(entry, *shape), values, conditions) for conditions in (NAN, HUGE)]
    for run in runs:
        assert run.completed
        assert (run.inputs_intact, run.guards_intact, run.scratch_restored) == (True, True, True)
        assert run.findings == ()
    got = np.frombuffer(runs[0].outputs["c"], np.float32).reshape(shape[0], shape[1])
    a, b = values["a"].astype(np.float64), values["b"].astype(np.float64)
    bound = 2 * (shape[2] + 2) * np.finfo(np.float32).eps * (np.abs(a) @ np.abs(b))
    assert (np.abs(got - a @ b) <= bound).all()
    assert runs[0].outputs == runs[1].outputs


def test_an_address_offset_moves_the_buffers_and_changes_nothing_else(card, matmul):
    shape = (31, 37, 29)
    loaded, values = card.load(matmul), factors(*shape)
    moved = loaded.run(product("split", *shape), values, Conditions(poison="nan", offset_bytes=256))
    usual = loaded.run(product("split", *shape), values, NAN)
    assert moved.outputs == usual.outputs
    assert moved.guards_intact


def test_unwritten_output_shows_the_poison(card, behaviour):
    loaded, values = card.load(behaviour), {"x": numbers(1000)}
    last = [
        np.frombuffer(loaded.run(simple_call("skips_last", 1000), values, c).outputs["y"], np.float32)[-1]
        for c in (NAN, HUGE, PLAIN)
    ]
    assert np.isnan(last[0])
    assert np.isfinite(last[1])
    assert abs(last[1]) > 1e36
    assert 1 / 16 <= abs(last[2]) < 16


@pytest.mark.parametrize("entry", ["writes_behind", "writes_before"])
@pytest.mark.parametrize("offset", [0, 512])
@pytest.mark.parametrize("poison", ["huge", "plain"])
def test_a_write_beside_a_buffer_is_seen(card, behaviour, entry, offset, poison):
    conditions = Conditions(poison=poison, offset_bytes=offset)
    run = card.load(behaviour).run(simple_call(entry, 1000), {"x": numbers(1000)}, conditions)
    assert run.completed
    assert not run.guards_intact


def test_a_changed_input_is_seen(card, behaviour):
    run = card.load(behaviour).run(simple_call("changes_input", 1000), {"x": numbers(1000)}, NAN)
    assert (run.completed, run.inputs_intact, run.guards_intact) == (True, False, True)


def test_an_honest_copy_has_nothing_against_it(card, behaviour):
    x = numbers(1000)
    run = card.load(behaviour).run(simple_call("copy", 1000), {"x": x}, PLAIN)
    assert run.outputs["y"] == x.tobytes()
    assert (run.inputs_intact, run.guards_intact, run.scratch_restored) == (True, True, True)
    assert {found.reason for found in run.unchecked} == {Reason.CHECK_ABSENT}


def test_what_is_not_looked_at_is_said(card, behaviour):
    bounds = Conditions(poison="nan", checks="bounds")
    all_of, fewer = (
        card.load(behaviour).run(simple_call("copy", 10), {"x": numbers(10)}, c).unchecked for c in (NAN, bounds)
    )
    assert any("races" in found.detail for found in all_of)
    assert not any("races" in found.detail for found in fewer)


def test_an_inout_comes_back(card, behaviour):
    y = numbers(500)
    call = Call(
        buffers=(buffer("y", "inout", 500),), launches=(launch("doubles_in_place", (4,), (128,), ["y", integer(500)]),)
    )
    run = card.load(behaviour).run(call, {"y": y}, NAN)
    assert run.outputs["y"] == (2 * y).tobytes()


@pytest.mark.parametrize(("initial", "restored"), [("zeroed", True), ("self_restoring", False)])
def test_scratch_is_zero_and_must_be_restored_where_promised(card, behaviour, initial, restored):
    x = numbers(500)
    call = Call(
        buffers=(buffer("x", "input", 500), buffer("y", "output", 500), buffer("s", "scratch", 500, initial=initial)),
        launches=(launch("counts_in_scratch", (4,), (128,), ["x", "y", "s", integer(500)]),),
    )
    run = card.load(behaviour).run(call, {"x": x}, NAN)
    assert run.outputs["y"] == (x + np.float32(1)).tobytes()
    assert run.scratch_restored is restored


def test_large_dynamic_shared_memory(card, behaviour):
    x = numbers(1000)
    call = simple_call("large_shared", 1000, shared_bytes=100 * 1024)
    assert card.load(behaviour).run(call, {"x": x}, NAN).outputs["y"] == x.tobytes()


def test_clusters(card, behaviour):
    if not card.device.arch.startswith(("sm_9", "sm_10", "sm_12")):
        pytest.skip(f"{card.device.arch} has no clusters")
    run = card.load(behaviour).run(simple_call("tells_cluster", 512, cluster=(2, 1, 1)), {"x": numbers(512)}, NAN)
    assert run.findings == ()
    y = np.frombuffer(run.outputs["y"], np.float32)
    assert set(y.tolist()) == {200.0, 201.0}


def test_a_cooperative_launch(card, behaviour):
    x = numbers(1024)
    one = launch("meets", (8,), (128,), ["x", "y", "arrived", integer(1024)], cooperative=True)
    scratch = buffer("arrived", "scratch", 1, dtype="uint32", initial="self_restoring")
    call = Call(buffers=(buffer("x", "input", 1024), buffer("y", "output", 1024), scratch), launches=(one,))
    run = card.load(behaviour).run(call, {"x": x}, NAN)
    assert run.outputs["y"] == (x + np.float32(1)).tobytes()
    assert run.scratch_restored


def test_float_parameters_come_through(card, behaviour):
    x = numbers(256)
    bits = int(np.float32(-1.5).view(np.uint32))
    one = launch("scale", (2,), (128,), ["x", "y", integer(256), Scalar(bytes=4, bits=bits)])
    call = Call(buffers=(buffer("x", "input", 256), buffer("y", "output", 256)), launches=(one,))
    assert card.load(behaviour).run(call, {"x": x}, NAN).outputs["y"] == (x * np.float32(-1.5)).tobytes()


@pytest.mark.parametrize(
    "more", [{"shared_bytes": 10**6}, {"cluster": (64, 1, 1)}], ids=["too much shared memory", "too large a cluster"]
)
def test_a_launch_that_the_card_turns_down_is_a_finding_and_the_next_runs(card, behaviour, more):
    loaded, values = card.load(behaviour), {"x": numbers(8192)}
    run = loaded.run(simple_call("copy", 8192, **more), values, NAN)
    assert not run.completed
    assert [found.reason for found in run.findings] == [Reason.LAUNCH_FAILED]
    assert loaded.run(simple_call("copy", 8192), values, NAN).completed


def test_a_block_too_large_is_a_finding(card, behaviour):
    call = Call(
        buffers=(buffer("x", "input", 8), buffer("y", "output", 8)),
        launches=(launch("copy", (1,), (2048,), ["x", "y", integer(8)]),),
    )
    run = card.load(behaviour).run(call, {"x": numbers(8)}, NAN)
    assert [found.reason for found in run.findings] == [Reason.LAUNCH_FAILED]


def test_a_missing_entry_is_a_finding(card, behaviour):
    run = card.load(behaviour).run(simple_call("nowhere", 8), {"x": numbers(8)}, NAN)
    assert [found.reason for found in run.findings] == [Reason.ENTRY_MISSING]


@pytest.mark.parametrize("cubin", [b"", b"\x7fELF no cubin at all"])
def test_what_does_not_load_is_refused(card, cubin):
    with pytest.raises(Refused) as caught:
        card.load(Binary(ptx="", cubin=cubin))
    assert caught.value.finding.reason is Reason.UNSUPPORTED_FEATURE


def test_more_memory_than_the_card_has_is_a_problem_in_one_line(card, behaviour):
    """An output, which the contract asks for, unlike scratch."""
    loaded, values = card.load(behaviour), {"x": numbers(8)}
    total = int(card.device.fingerprint["memory_bytes"])
    call = simple_call("copy", 8)
    large = Call(buffers=(*call.buffers, buffer("s", "output", 2 * total, dtype="uint8")), launches=call.launches)
    with pytest.raises(DeviceProblem, match="OUT_OF_MEMORY") as caught:
        loaded.run(large, values, NAN)
    assert "\n" not in str(caught.value)
    assert loaded.run(call, values, NAN).completed


def test_a_plan_that_asks_for_more_scratch_than_the_card_has_is_the_candidates_own_fault(card, behaviour):
    loaded, values = card.load(behaviour), {"x": numbers(8)}
    total = int(card.device.fingerprint["memory_bytes"])
    call = simple_call("copy", 8)
    greedy = Call(buffers=(*call.buffers, buffer("s", "scratch", 2 * total, dtype="uint8")), launches=call.launches)
    run = loaded.run(greedy, values, NAN)
    assert not run.completed
    assert [finding.reason for finding in run.findings] == [Reason.LAUNCH_FAILED]
    assert loaded.run(call, values, NAN).completed


def test_a_missing_value_is_the_callers_mistake(card, behaviour):
    with pytest.raises(ValueError, match="no value was given for x"):
        card.load(behaviour).run(simple_call("copy", 8), {}, NAN)


def test_a_card_does_not_count(card, behaviour):
    with pytest.raises(Refused) as caught:
        card.load(behaviour).count(simple_call("copy", 8), {"x": numbers(8)}, NAN)
    assert caught.value.finding.reason is Reason.NOT_MEASURED


def test_the_fingerprint_says_what_a_time_depends_on(card):
    fingerprint = card.device.fingerprint
    for field in ("cuda_driver_api", "compute_capability", "multiprocessors", "l2_bytes", "memory_bytes", "nvml"):
        assert fingerprint[field]
    if fingerprint["nvml"] == "read":
        assert int(fingerprint["sm_clock_limit_mhz"]) > 100
        assert fingerprint["driver"][0].isdigit()


def test_scratch_is_as_it_should_be_before_every_one_of_many_calls(card, matmul):
    """Setting memory is asynchronous: a late fill of the margins once wiped out zeroed scratch."""
    values = factors(256, 256, 256)
    loaded = card.load(matmul)
    call = product("split", 256, 256, 256)
    runs = [loaded.run(call, values, HUGE if i % 2 else NAN) for i in range(60)]
    assert all(run.completed and run.scratch_restored and run.guards_intact for run in runs)
    assert len({run.outputs["c"] for run in runs}) == 1
