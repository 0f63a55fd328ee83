"""cuBLAS beside baseline and candidate in the same rounds; where its bindings are not there the samples say so."""

import importlib.util
from statistics import median

import msgspec
import numpy as np
import pytest
from own_process import buffer, integer, launch
from test_gpu_run import factors, product
from test_gpu_timing import request_of

from kerneltrial.inputs.calls import Call, Product

pytestmark = pytest.mark.gpu
SHAPE = (384, 256, 320)
PRODUCT = Product(left="a", right="b", out="c")
needs_bindings = pytest.mark.skipif(importlib.util.find_spec("nvmath") is None, reason="nvmath-python is not installed")


def request(matmul, **more):
    call = product("blocked", *SHAPE)
    return request_of(matmul, call, matmul, product("tiled", *SHAPE), vendors=(PRODUCT,), **more)


@needs_bindings
@pytest.mark.parametrize("order", ["random", "abba"])
@pytest.mark.parametrize("clock", ["graph", "auto"])
def test_cublas_is_timed_in_every_round(card, matmul, order, clock):
    samples = card.time(request(matmul, order=order, clock=clock), [factors(*SHAPE, seed) for seed in (0, 5)])
    assert samples.vendors_absent == {}
    assert len(samples.warm_us["cublas"]) == len(samples.cold_us["cublas"]) == len(samples.warm_us["a"])
    assert 1 < median(samples.warm_us["cublas"]) < median(samples.warm_us["b"])
    assert int(samples.device_state["cublas_algorithms_tried"]) > 0
    assert samples.device_state["cublas_version"]
    got = np.frombuffer(samples.outputs[0]["c"], np.float32).reshape(SHAPE[:2])
    one = factors(*SHAPE, 0)
    assert np.allclose(got, one["a"].astype(np.float64) @ one["b"], rtol=1e-3, atol=1e-3)


@needs_bindings
def test_another_computation_is_not_taken_for_the_vendors(card, matmul):
    """A product of the transposed right factor: shapes fit, values do not."""
    shape = (256, 256, 256)
    call = product("blocked", *shape)
    wrong = Product(left="a", right="b", out="c", right_transposed=True)
    samples = card.time(request_of(matmul, call, matmul, call, vendors=(wrong,)), [factors(*shape)])
    assert "another computation" in samples.vendors_absent["cublas"]
    assert "cublas" not in samples.warm_us


@needs_bindings
def test_transposed_factors_and_ragged_shapes_are_computed(card, behaviour):
    """The subject itself, against float64, for every layout."""
    from kerneltrial.devices.cuda.clocks import call_each_set
    from kerneltrial.devices.cuda.subjects import SharedBuffers
    from kerneltrial.devices.cuda.vendors import CublasProduct

    m, n, k = 31, 37, 29
    for left_transposed in (False, True):
        for right_transposed in (False, True):
            a = np.random.default_rng(1).standard_normal((k, m) if left_transposed else (m, k)).astype(np.float32)
            b = np.random.default_rng(2).standard_normal((n, k) if right_transposed else (k, n)).astype(np.float32)
            buffers = (buffer("a", "input", *a.shape), buffer("b", "input", *b.shape), buffer("c", "output", m, n))
            call = Call(buffers=buffers, launches=(launch("copy", (1,), (1,), ["a", "c", integer(0)]),))
            shared = SharedBuffers((call,), [{"a": a, "b": b}], card._context.queue.stream)
            one = Product(
                left="a", right="b", out="c", left_transposed=left_transposed, right_transposed=right_transposed
            )
            vendor = CublasProduct(one, shared, card._context)
            try:
                call_each_set(card._context.queue, vendor, shared)
                got = np.frombuffer(shared.outputs()[0]["c"], np.float32).reshape(m, n)
                want = (a.T if left_transposed else a).astype(np.float64) @ (b.T if right_transposed else b)
                assert np.allclose(got, want, rtol=1e-5, atol=1e-5)
                assert vendor.margins_intact()
            finally:
                vendor.free()
                shared.free()


def test_without_its_bindings_the_samples_say_so(card, matmul, monkeypatch):
    from kerneltrial.devices.cuda import vendors

    def absent():
        raise vendors.Absent("cuBLAS's bindings are not installed: pip install 'kerneltrial[gpu]'")

    monkeypatch.setattr(vendors, "_bindings", absent)
    samples = card.time(request(matmul), [factors(*SHAPE)])
    assert "not installed" in samples.vendors_absent["cublas"]
    assert "cublas" not in samples.warm_us
    assert msgspec.json.encode(samples.vendors_absent)
