"""Whole kernels as NVRTC and numba make them: matmuls bit for bit, softmax within its bound, and some of each kind."""

import numpy as np
import pytest
from numpy.typing import NDArray
from ptx_runner import array, call_of, out, output, run, scratch
from ptx_sources import NAIVE, REGISTERS, SOFTMAX, SPLIT_K, TILED, ptx_of

from kerneltrial.devices.cpu.device import open_cpu
from kerneltrial.devices.device import Binary, Conditions
from kerneltrial.inputs.calls import Call

F32 = NDArray[np.float32]
SHAPES = [(31, 37, 29), (16, 16, 16), (1, 1, 1), (64, 33, 70), (100, 100, 100)]


def fma32(a: F32, b: F32, c: F32) -> F32:
    """a*b + c rounded once: exact product and sum in double with the error turned into a sticky last bit."""
    product = a.astype(np.float64) * b.astype(np.float64)
    wide = c.astype(np.float64)
    total = product + wide
    part = total - product
    error = (product - (total - part)) + (wide - part)
    even = (total.view(np.int64) & 1) == 0
    odd = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
    return np.where((error != 0) & even, odd, total).astype(np.float32)


def chained(a: F32, b: F32) -> F32:
    """The matmul that adds in the order of k with one fma each."""
    acc = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for k in range(a.shape[1]):
        acc = fma32(np.repeat(a[:, k : k + 1], b.shape[1], 1), np.repeat(b[k : k + 1], a.shape[0], 0), acc)
    return acc


def matrices(m: int, n: int, k: int, seed: int = 0) -> tuple[F32, F32]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((m, k), dtype=np.float32), rng.standard_normal((k, n), dtype=np.float32)


def ceil(a: int, b: int) -> int:
    return -(-a // b)


@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
@pytest.mark.parametrize(
    ("source", "tile", "block"), [(NAIVE, 16, (16, 16)), (TILED, 16, (16, 16)), (REGISTERS, 32, (64,))]
)
def test_matmul_is_exact(source: str, tile: int, block: tuple[int, ...], m: int, n: int, k: int) -> None:
    a, b = matrices(m, n, k)
    call = call_of(
        [array("A", a), array("B", b), out("C", "float32", m, n), m, n, k], (ceil(n, tile), ceil(m, tile)), block
    )
    for checks in ("all", "bounds"):
        done = run(ptx_of(source), call, {"A": a, "B": b}, checks=checks)
        assert done.completed, done.findings
        assert not done.findings
        assert done.guards_intact
        assert done.inputs_intact
        assert np.array_equal(output(done, "C", "float32").reshape(m, n), chained(a, b))


def test_matmul_with_special_values() -> None:
    """NaN, infinities, subnormals: NaN results are the canonical one, whatever payload went in."""
    a, b = matrices(8, 8, 4)
    a[0, 0], a[1, 1], a[2, 2], a[3, 0] = np.inf, -np.inf, 1e-41, 3e38
    a[4, 3] = np.uint32(0xFFC12345).view(np.float32)
    b[0, 0], b[0, 1], b[1, 0] = 0.0, 1e38, np.inf
    call = call_of([array("A", a), array("B", b), out("C", "float32", 8, 8), 8, 8, 4], (1, 1), (16, 16))
    got = output(run(ptx_of(NAIVE), call, {"A": a, "B": b}), "C", "uint32").reshape(8, 8)
    with np.errstate(all="ignore"):
        want = chained(a, b)
    bits = np.where(np.isnan(want), np.uint32(0x7FFFFFFF), want.view(np.uint32))
    assert np.isnan(want).any()
    assert np.array_equal(got, bits)


def split_k_call(m: int, n: int, k: int, slices: int, a: F32, b: F32) -> Call:
    tiles = ceil(m, 16) * ceil(n, 16)
    return call_of(
        [array("A", a), array("B", b), out("C", "float32", m, n), scratch("partial", "float32", slices, m, n),
         scratch("counters", "uint32", tiles, initial="self_restoring"), m, n, k],
        (ceil(n, 16), ceil(m, 16), slices), (16, 16),
    )  # fmt: skip


def test_split_k_with_the_last_block() -> None:
    m, n, k, slices = 33, 20, 50, 3
    a, b = matrices(m, n, k)
    done = run(ptx_of(SPLIT_K), split_k_call(m, n, k, slices, a, b), {"A": a, "B": b})
    assert done.completed, done.findings
    assert done.scratch_restored
    length = ceil(k, slices)
    want = np.zeros((m, n), np.float32)
    for start in range(0, k, length):
        want += chained(a[:, start : start + length], b[start : start + length])
    assert np.array_equal(output(done, "C", "float32").reshape(m, n), want)


def test_a_counter_left_behind_is_seen() -> None:
    m, n, k = 16, 16, 8
    a, b = matrices(m, n, k)
    source = SPLIT_K.replace("if (last) *counter = 0u;", "")
    done = run(ptx_of(source), split_k_call(m, n, k, 2, a, b), {"A": a, "B": b})
    assert done.completed
    assert not done.scratch_restored


@pytest.mark.parametrize("cols", [1, 2, 17, 32, 333])
@pytest.mark.parametrize("threads", [32, 128])
def test_softmax(cols: int, threads: int) -> None:
    x = (np.random.default_rng(2).standard_normal((5, cols)) * 8).astype(np.float32)
    call = call_of([array("x", x), out("y", "float32", 5, cols), 5, cols], (5,), (threads,))
    done = run(ptx_of(SOFTMAX), call, {"x": x})
    assert done.completed, done.findings
    wide = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    want = wide / wide.sum(1, keepdims=True)
    got = output(done, "y", "float32").reshape(5, cols)
    assert np.abs(got / want - 1).max() < 1e-5


NUMBA = """
from numba import cuda, types

def kern(A, B, C):
    s = cuda.shared.array((16, 16), types.float32)
    t = cuda.shared.array((16, 16), types.float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    acc = types.float32(0)
    for k in range((A.shape[1] + 15) // 16):
        s[ty, tx] = A[y, k * 16 + tx] if y < A.shape[0] and k * 16 + tx < A.shape[1] else types.float32(0)
        t[ty, tx] = B[k * 16 + ty, x] if x < B.shape[1] and k * 16 + ty < A.shape[1] else types.float32(0)
        cuda.syncthreads()
        for j in range(16):
            acc += s[ty, j] * t[j, tx]
        cuda.syncthreads()
    if y < C.shape[0] and x < C.shape[1]:
        C[y, x] = acc
"""


def test_numba_matmul() -> None:
    from numba import cuda, types

    from kerneltrial.inputs.calls import Pointer, ResolvedLaunch, Scalar

    space: dict[str, object] = {}
    exec(NUMBA, space)  # its source is a constant of this file
    matrix = types.float32[:, ::1]
    ptx, _ = cuda.compile_ptx(space["kern"], (matrix, matrix, matrix), cc=(8, 0))
    entry = next(line.split()[2].rstrip("(") for line in ptx.splitlines() if line.startswith(".visible .entry"))
    m, n, k = 31, 37, 29
    a, b = matrices(m, n, k)
    plain = call_of([array("A", a), array("B", b), out("C", "float32", m, n)], (ceil(n, 16), ceil(m, 16)), (16, 16))
    parameters: list[Pointer | Scalar] = []
    for buffer in plain.buffers:
        rows, columns = buffer.shape
        before = (0, 0, rows * columns, 4)
        parameters += [Scalar(bytes=8, bits=v) for v in before]
        parameters.append(Pointer(buffer=buffer.name))
        parameters += [Scalar(bytes=8, bits=v) for v in (rows, columns, 4 * columns, 4)]
    launch = plain.launches[0]
    resolved = ResolvedLaunch(
        entry=entry, grid=launch.grid, block=launch.block, cluster=launch.cluster, cooperative=False,
        shared_bytes=0, parameters=tuple(parameters),
    )  # fmt: skip
    done = run(ptx, Call(buffers=plain.buffers, launches=(resolved,)), {"A": a, "B": b})
    assert done.completed, done.findings
    assert np.array_equal(output(done, "C", "float32").reshape(m, n), chained(a, b))


def test_addresses_and_poison_change_nothing_in_an_honest_kernel() -> None:
    a, b = matrices(31, 29, 37)
    call = call_of([array("A", a), array("B", b), out("C", "float32", 31, 29), 31, 29, 37], (2, 2), (16, 16))
    loaded = open_cpu().load(Binary(ptx=ptx_of(TILED), cubin=b""))
    runs = [
        loaded.run(call, {"A": a, "B": b}, Conditions(poison=poison, offset_bytes=offset, checks=checks))
        for poison, offset, checks in (
            ("nan", 0, "all"),
            ("huge", 256, "all"),
            ("huge", 4, "bounds"),
            ("nan", 16, "bounds"),
            ("plain", 32, "all"),
            ("plain", 8, "bounds"),
        )
    ]
    assert len({r.outputs["C"] for r in runs}) == 1
    assert all(r.completed and r.guards_intact and r.inputs_intact for r in runs)


def test_plain_poison_is_other_numbers_for_each_seed() -> None:
    ptx = ptx_of('extern "C" __global__ void k(float* y) { if (threadIdx.x) y[threadIdx.x] = 1.0f; }')
    call = call_of([out("y", "float32", 32)], (1, 1), (32, 1))
    loaded = open_cpu().load(Binary(ptx=ptx, cubin=b""))
    left = []
    for seed in (1, 2):
        run = loaded.run(call, {}, Conditions(poison="plain", checks="bounds", seed=seed))
        assert run.guards_intact
        left.append(float(np.frombuffer(run.outputs["y"], np.float32)[0]))
    assert all(1 / 16 <= abs(value) < 16 for value in left)
    assert left[0] != left[1]


def test_device_functions_constants_local_memory_and_double() -> None:
    source = """
    __device__ __noinline__ float f(float a, int n) { float s = 0; for (int i = 0; i < n; i++) s += a * i; return s; }
    __constant__ float coef[4] = {1.f, 2.f, 3.f, 4.f};
    extern "C" __global__ void kern(const float* x, float* y, double* z, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i >= n) return;
      float buf[16];
      for (int k = 0; k < 16; k++) buf[k] = x[i] * k;
      int j = i & 15;
      for (int k = 0; k < n; k++) { buf[j] += 1.f; j = (j * 5 + 1) & 15; }
      float s = 0;
      for (int k = 0; k < 16; k++) s += buf[(k + j) & 15];
      y[i] = f(x[i], 10) * coef[i & 3] + s;
      z[i] = sqrt(fabs((double)x[i])) / (i + 1.0);
    }"""
    n = 50
    x = np.random.default_rng(1).standard_normal(n, dtype=np.float32)
    call = call_of([array("x", x), out("y", "float32", n), out("z", "float64", n), n], (1,), (64,))
    done = run(ptx_of(source), call, {"x": x})
    assert done.completed, done.findings
    want = x.astype(np.float64) * 45 * np.array([1, 2, 3, 4] * 13)[:n] + x.astype(np.float64) * 120 + n
    assert np.abs(output(done, "y", "float32") - want).max() < 1e-3
    assert np.array_equal(output(done, "z", "float64"), np.sqrt(np.abs(x.astype(np.float64))) / np.arange(1, n + 1))
