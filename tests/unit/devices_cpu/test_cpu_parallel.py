"""Blocks on several cores: the same bytes and findings as one after the other, whatever blocks do to each other."""

import threading

import numpy as np
import pytest
from ptx_runner import array, call_of, out, scratch
from ptx_sources import NAIVE, ptx_of

from kerneltrial.devices.cpu import parallel
from kerneltrial.devices.cpu.device import open_cpu
from kerneltrial.devices.device import Binary, Conditions, Run
from kerneltrial.inputs.calls import Call
from kerneltrial.records.reason import Reason

BLOCKS, THREADS = 64, 128
N = BLOCKS * THREADS

OWN = """
extern "C" __global__ void kern(const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i] * 2.f + blockIdx.x;
}
"""
OVERLAPPING = """
extern "C" __global__ void kern(const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i];
  if (i + 64 < 8192) y[i + 64] = blockIdx.x;
  y[0] = blockIdx.x;
}
"""
NEIGHBOURS = """
extern "C" __global__ void kern(const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i] + (i < 128 ? 0.f : ((volatile float*)y)[i - 128]);
}
"""
OUTSIDE = """
extern "C" __global__ void kern(const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[blockIdx.x == 50 && threadIdx.x == 3 ? i + 100000 : i];
}
"""
ENDLESS = """
extern "C" __global__ void kern(const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = x[i];
  while (blockIdx.x == 40 && v != 1e30f) v = v * 0.5f;
  y[i] = v;
}
"""
ATOMIC = """
extern "C" __global__ void kern(const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i];
  if (threadIdx.x == 0) atomicAdd(y, 1.f);
}
"""
LONG = """
extern "C" __global__ void kern(const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = x[i];
#pragma unroll 1
  for (int k = 0; k < 32; ++k) v = v * v + 0.25f;
  y[i] = v;
}
"""
SOURCES = {"own": OWN, "overlapping": OVERLAPPING, "neighbours": NEIGHBOURS, "outside": OUTSIDE, "endless": ENDLESS,
           "atomic": ATOMIC}  # fmt: skip


@pytest.fixture
def tries(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Two cores, and whether each try on them held."""
    seen: list[bool] = []
    original = parallel._try

    def spied(*arguments: object) -> object:
        done = original(*arguments)  # type: ignore[arg-type]
        seen.append(done is not None)
        return done

    monkeypatch.setattr(parallel, "LEAST_INSTRUCTIONS", 1)
    monkeypatch.setattr(parallel, "INSTRUCTIONS_PER_BYTE", 0)
    monkeypatch.setattr(parallel, "_try", spied)
    monkeypatch.setattr(parallel.os, "sched_getaffinity", lambda _: {0, 1})
    return seen


def call() -> tuple[Call, dict[str, np.ndarray]]:
    values = {"x": np.random.default_rng(3).standard_normal(N, dtype=np.float32)}
    return call_of([array("x", values["x"]), out("y", "float32", N)], (BLOCKS,), (THREADS,)), values


def run(source: str, order: str = "forward", times: int = 1) -> Run:
    loaded = open_cpu().load(Binary(ptx=ptx_of(source), cubin=b""))
    conditions = Conditions(poison="nan", checks="bounds", budget_instructions=2_000_000, order=order)  # type: ignore[arg-type]
    return [loaded.run(*call(), conditions) for _ in range(times)][-1]


@pytest.mark.parametrize("order", ["forward", "backward"])
@pytest.mark.parametrize("name", SOURCES)
def test_as_one_after_the_other(tries: list[bool], monkeypatch: pytest.MonkeyPatch, name: str, order: str) -> None:
    shared = run(SOURCES[name], order)
    assert tries == {"own": [True], "atomic": []}.get(name, [False])
    monkeypatch.setattr(parallel.os, "sched_getaffinity", lambda _: {0})
    assert run(SOURCES[name], order) == shared
    assert len(tries) <= 1


def test_findings_name_the_block(tries: list[bool]) -> None:
    assert [f.reason for f in run(OUTSIDE).findings] == [Reason.OUT_OF_BOUNDS]
    assert "block (50,0,0)" in run(OUTSIDE).findings[0].detail
    assert [f.reason for f in run(ENDLESS).findings] == [Reason.ENDLESS_LOOP]


def test_a_kernel_whose_blocks_met_is_not_tried_again(tries: list[bool]) -> None:
    assert run(OVERLAPPING, times=3).completed
    assert tries == [False]


def test_what_takes_less_than_a_try_is_not_tried(tries: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "LEAST_INSTRUCTIONS", 1 << 19)
    assert run(OWN, times=2).completed
    assert tries == []
    assert run(LONG, times=3).completed  # how long it is, the first launch says
    assert tries == [True, True]
    monkeypatch.setattr(parallel, "INSTRUCTIONS_PER_BYTE", 1 << 10)
    assert run(LONG, times=3).completed
    assert tries == [True, True]


def test_without_threads_of_the_host(tries: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    expected = run(OWN)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert run(OWN) == expected
    assert tries == [True, True]


def test_the_budget_is_of_all_blocks(tries: list[bool]) -> None:
    loaded = open_cpu().load(Binary(ptx=ptx_of(OWN), cubin=b""))
    for budget, reasons in ((N * 10, [Reason.ENDLESS_LOOP]), (N * 100, [])):
        done = loaded.run(*call(), Conditions(poison="nan", checks="bounds", budget_instructions=budget))
        assert [f.reason for f in done.findings] == reasons


def test_scratch_that_one_launch_writes_and_the_next_reads(tries: list[bool]) -> None:
    """Scratch may be written by the launch that reads it, so that the second is tried, and then run in order."""
    values = {"A": np.ones((128, 128), np.float32), "B": np.eye(128, dtype=np.float32)}
    arguments = [array("A", values["A"]), array("B", values["B"]), scratch("S", "float32", 128, 128), 128, 128, 128]
    first = call_of(list(arguments), (8, 8), (16, 16))
    arguments = [
        scratch("S", "float32", 128, 128),
        array("B", values["B"]),
        out("C", "float32", 128, 128),
        128,
        128,
        128,
    ]
    second = call_of(list(arguments), (8, 8), (16, 16))
    buffers = {b.name: b for b in (*first.buffers, *second.buffers)}
    both = Call(buffers=tuple(buffers.values()), launches=(*first.launches, *second.launches))
    loaded = open_cpu().load(Binary(ptx=ptx_of(NAIVE), cubin=b""))
    done = loaded.run(both, values, Conditions(poison="nan", checks="bounds"))
    assert tries == [True, False]
    assert done.outputs["C"] == values["A"].tobytes()
