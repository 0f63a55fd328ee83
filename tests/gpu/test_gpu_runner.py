"""The card behind a runner: a limited child serves it, and a kernel that faults or hangs costs that child alone."""

import importlib.util
from statistics import median

import numpy as np
import pytest
from own_process import numbers, simple_call
from test_gpu_run import factors, product
from test_gpu_timing import request_of

from kerneltrial.devices.device import Conditions, Refused
from kerneltrial.devices.preloading import preload
from kerneltrial.devices.runner import Runner
from kerneltrial.inputs.calls import Product
from kerneltrial.measure.confirm import Level, confirmed_case, process_request
from kerneltrial.measure.rounds import case_latency, without_outputs
from kerneltrial.records.reason import Reason
from kerneltrial.sandbox.nursery import Nursery
from kerneltrial.store.canonical import canonical

pytestmark = pytest.mark.gpu
needs_cupti = pytest.mark.skipif(importlib.util.find_spec("cupti") is None, reason="cupti-python is not installed")
NAN = Conditions(poison="nan")
SHAPE = (256, 256, 256)


@pytest.fixture(scope="module")
def nursery(card):
    with Nursery(preload("cuda")) as opened:
        yield opened


@pytest.fixture
def runner(nursery, card):
    with Runner(nursery, "cuda", arch=card.device.arch, call_s=10.0) as opened:
        yield opened


def test_the_child_sees_the_same_card(card, runner):
    assert runner.device() == card.device


def test_a_call_in_the_child_gives_the_bytes_of_a_call_here(card, runner, matmul):
    runner.load(matmul)
    call, values = product("split", *SHAPE), factors(*SHAPE)
    there = runner.run(call, values, NAN)
    assert there == card.load(matmul).run(call, values, NAN)
    assert there.completed


@pytest.mark.parametrize(
    ("entry", "reason"),
    [("illegal", Reason.DEVICE_FAULT), ("misaligned", Reason.MISALIGNED), ("hangs", Reason.HANG)],
)
def test_after_a_fault_or_a_hang_the_next_call_has_a_fresh_child(nursery, card, behaviour, entry, reason):
    x = numbers(1000)
    with Runner(nursery, "cuda", arch=card.device.arch, call_s=3.0) as runner:
        runner.load(behaviour)
        bad = runner.run(simple_call(entry, 1000), {"x": x}, NAN)
        good = runner.run(simple_call("copy", 1000), {"x": x}, NAN)
    assert not bad.completed
    assert [found.reason for found in bad.findings] == [reason]
    assert good.outputs["y"] == x.tobytes()


def test_samples_from_the_child_become_a_record(runner, matmul):
    request = request_of(matmul, product("naive", *SHAPE), matmul, product("naive", *SHAPE), rounds=30)
    samples = runner.time(request, [factors(*SHAPE, seed) for seed in (0, 3)])
    assert np.frombuffer(samples.outputs[1]["c"], np.float32).size == 256 * 256
    latency = case_latency("square", without_outputs(samples), "0" * 64, 0.95)
    assert latency.speedup.middle == pytest.approx(1, abs=0.01)
    assert latency.warm_us == pytest.approx(latency.baseline_warm_us, rel=0.01)
    assert latency.cold_us > latency.warm_us
    assert canonical(latency)


def test_a_candidate_that_hangs_while_timed_is_refused_as_a_hang(nursery, card, behaviour):
    request = request_of(behaviour, simple_call("copy", 1000), behaviour, simple_call("hangs", 1000))
    with (
        Runner(nursery, "cuda", arch=card.device.arch, time_s=5.0) as runner,
        pytest.raises(Refused) as caught,
    ):
        runner.time(request, [{"x": numbers(1000)}])
    assert caught.value.finding.reason is Reason.HANG


def test_a_candidate_that_faults_while_timed_is_refused_and_the_next_is_timed(runner, behaviour):
    good = simple_call("copy", 1000)
    with pytest.raises(Refused) as caught:
        runner.time(request_of(behaviour, good, behaviour, simple_call("illegal", 1000)), [{"x": numbers(1000)}])
    assert caught.value.finding.reason is Reason.DEVICE_FAULT
    assert runner.time(request_of(behaviour, good, behaviour, good, rounds=10), [{"x": numbers(1000)}]).discarded == 0


def test_ceilings_are_measured_in_the_child(card, runner):
    there, here = runner.ceilings(), card.ceilings()
    assert there.fp32_flop_per_s == pytest.approx(here.fp32_flop_per_s, rel=0.05)
    assert there.dram_bytes_per_s == pytest.approx(here.dram_bytes_per_s, rel=0.05)


@needs_cupti
def test_cupti_records_come_through_the_limits_of_the_child(runner, matmul):
    call = product("blocked", *SHAPE)
    samples = runner.time(request_of(matmul, call, matmul, call, clock="cupti"), [factors(*SHAPE)])
    graph = runner.time(request_of(matmul, call, matmul, call, clock="graph"), [factors(*SHAPE)])
    assert samples.clock == "cupti"
    assert median(samples.warm_us["a"]) == pytest.approx(median(graph.warm_us["a"]), abs=1.0)


@pytest.mark.skipif(importlib.util.find_spec("nvmath") is None, reason="nvmath-python is not installed")
def test_cublas_comes_through_the_limits_of_the_child(runner, matmul):
    call = product("blocked", *SHAPE)
    vendors = (Product(left="a", right="b", out="c"),)
    samples = runner.time(request_of(matmul, call, matmul, call, vendors=vendors, order="abba"), [factors(*SHAPE)])
    assert samples.vendors_absent == {}
    assert len(samples.warm_us["cublas"]) == 20


@pytest.mark.parametrize("clock", ["graph", pytest.param("cupti", marks=needs_cupti)])
def test_fresh_processes_confirm_that_a_kernel_equals_itself(nursery, card, matmul, clock):
    call = product("blocked", *SHAPE)
    request = request_of(matmul, call, matmul, call, rounds=30, clock=clock)
    processes = []
    for p in range(5):
        with Runner(nursery, "cuda", arch=card.device.arch) as fresh:
            processes.append(fresh.time(process_request(request, p), [factors(*SHAPE, p)]))
    case = confirmed_case("square", processes, ["0" * 64] * 5, Level(0.95, 0.95))
    print([f"{value:.5f}" for value in (case.speedup.low, case.speedup.middle, case.speedup.high)])
    assert case.processes == 5
    assert 0.99 < case.speedup.low <= case.speedup.middle <= case.speedup.high < 1.01
    assert 0.99 < case.noise_floor.low <= case.noise_floor.high < 1.01
