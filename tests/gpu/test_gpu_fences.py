"""Fences and filled shared memory on a card: a stray access faults, an honest one does not, nothing is left over."""

import time

import numpy as np
import pytest
from own_process import KERNELS, buffer, compile_cuda, integer, launch, numbers, simple_call

from kerneltrial.devices.device import Conditions
from kerneltrial.devices.preloading import preload
from kerneltrial.devices.runner import Runner
from kerneltrial.inputs.calls import Call
from kerneltrial.records.reason import Reason
from kerneltrial.sandbox.nursery import Nursery

pytestmark = pytest.mark.gpu
N = 1000  # 4000 bytes: a multiple of 16 and 32, not of 256
START = Conditions(poison="nan", fence="start")
END = Conditions(poison="huge", fence="end", offset_bytes=16)
TRIES = 20


@pytest.fixture(scope="module")
def kernels(card):
    if card._context.fences.absent:
        pytest.skip(f"no fences here: {card._context.fences.absent}")
    return compile_cuda((KERNELS / "fences.cu").read_text(), card.device.arch)


@pytest.fixture(scope="module")
def runner(card, kernels):
    with Nursery(preload("cuda")) as nursery, Runner(nursery, "cuda", arch=card.device.arch, call_s=20.0) as opened:
        opened.load(kernels)
        yield opened


@pytest.mark.parametrize(
    ("entry", "conditions"),
    [
        ("reads_one_behind", END),
        ("reads_one_before", START),
        ("rewrites_its_input", START),
        ("rewrites_its_input", END),
    ],
)
def test_a_stray_access_faults_only_at_a_fence(runner, entry, conditions):
    values = {"x": numbers(N)}
    plain = runner.run(simple_call(entry, N), values, Conditions(poison="nan"))
    assert plain.completed
    assert plain.outputs["y"] == values["x"].tobytes()
    assert (plain.inputs_intact, plain.guards_intact) == (True, True)
    fenced = runner.run(simple_call(entry, N), values, conditions)
    assert not fenced.completed
    assert [found.reason for found in fenced.findings] == [Reason.DEVICE_FAULT]
    assert "between pages that are not mapped" in fenced.findings[0].detail
    assert runner.run(simple_call("reads_its_neighbours", N), values, conditions).completed  # in a fresh child


@pytest.mark.parametrize("conditions", [START, END, Conditions(poison="nan", fence="end", offset_bytes=4)])
@pytest.mark.parametrize("n", [1, 31, 1000, 1024, 600_000])
def test_an_honest_kernel_passes_between_fences(card, kernels, conditions, n):
    values = {"x": numbers(n)}
    run = card.load(kernels).run(simple_call("reads_its_neighbours", n), values, conditions)
    assert run.completed
    assert run.outputs["y"] == values["x"].tobytes()
    assert (run.inputs_intact, run.guards_intact) == (True, True)


def test_what_a_fenced_run_costs(card, kernels):
    loaded, values, call = card.load(kernels), {"x": numbers(N)}, simple_call("reads_its_neighbours", N)
    for conditions in (Conditions(poison="nan"), START, END):
        loaded.run(call, values, conditions)
        start = time.perf_counter()
        for _ in range(20):
            loaded.run(call, values, conditions)
        print(f"{conditions.fence}: {(time.perf_counter() - start) / 20 * 1000:.2f} ms a call")


@pytest.mark.parametrize(("poison", "word"), [("nan", 0xFFFFFFFF), ("huge", 0x7B7B7B7B), ("plain", 0x3F3F3F3F)])
def test_shared_memory_holds_the_poison_and_not_what_a_call_left(card, kernels, poison, word):
    """Where other processes have the card in between, shared memory may be cleared: zeros, of which a few tries may be
    full. What a call left is never there."""
    blocks = int(card.device.fingerprint["multiprocessors"]) * 8
    n = blocks * 4096
    buffers = (buffer("x", "input", 1), buffer("y", "output", n))
    calls = {
        entry: Call(buffers=buffers, launches=(launch(entry, (blocks,), (256,), ["x", "y", integer(n)]),))
        for entry in ("marks_shared", "shows_shared")
    }
    loaded, conditions = card.load(kernels), Conditions(poison=poison, seed=1)
    shares = []
    for _ in range(TRIES):
        marked = loaded.run(calls["marks_shared"], {"x": numbers(1)}, conditions)
        assert (np.frombuffer(marked.outputs["y"], np.float32) == 42.0).all()
        shown = loaded.run(calls["shows_shared"], {"x": numbers(1)}, conditions)
        assert not any("not filled" in finding.detail for finding in shown.unchecked)
        found = np.frombuffer(shown.outputs["y"], np.uint32)
        assert np.isin(found, (word, 0)).all(), f"{poison}: neither poison nor cleared: {np.unique(found)[:8]}"
        shares.append(float((found == word).mean()))
        if shares[-1] > 0.99:
            break
    print(f"{poison}: {', '.join(f'{share:.4f}' for share in shares)} of the words are poison, the others are cleared")
    assert shares[-1] > 0.99
