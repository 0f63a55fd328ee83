"""cp.async: a copy arrives when it is waited for and not before; a missing wait is found by name and by value."""

import numpy as np
import pytest
from ptx_runner import HEADER, array, call_of, out, output, run
from ptx_sources import ptx_of

from kerneltrial.devices.device import Refused
from kerneltrial.records.reason import Reason

PIPELINED = """
#include <cuda_pipeline.h>
extern "C" __global__ void kern(const float* x, float* y, int n) {
  __shared__ __align__(16) float t[3][128];
  int i = threadIdx.x, tiles = (n + 127) / 128;
  auto load = [&](int k) {
    int at = k * 128 + i;
    if (k < tiles) __pipeline_memcpy_async(&t[k % 3][i], x + (at < n ? at : 0), 4, at < n ? 0 : 4);
    __pipeline_commit();
  };
  load(0); load(1);
  float sum = 0.f;
  for (int k = 0; k < tiles; ++k) {
    load(k + 2);
    WAIT
    __syncthreads();
    sum += t[k % 3][(i + 1) % 128] * (k + 1);
    __syncthreads();
  }
  y[i] = sum;
}
"""


def _pipelined(wait: str, checks: str, n: int = 500, poison: str = "nan"):
    x = np.arange(1, n + 1, dtype=np.float32)
    call = call_of([array("x", x), out("y", "float32", 128), n], (1,), (128,))
    return run(ptx_of(PIPELINED.replace("WAIT", wait)), call, {"x": x}, checks, poison)


@pytest.mark.parametrize("checks", ["all", "bounds"])
@pytest.mark.parametrize("n", [1, 128, 500, 1000])
def test_a_pipeline_that_waits(checks: str, n: int) -> None:
    done = _pipelined("__pipeline_wait_prior(2);", checks, n)
    assert done.completed, done.findings
    tiles = -(-n // 128)
    padded = np.zeros((tiles, 128), np.float32)
    padded.reshape(-1)[:n] = np.arange(1, n + 1)
    want = sum(np.roll(padded[k], -1) * np.float32(k + 1) for k in range(tiles))
    assert np.array_equal(output(done, "y", "float32"), want)


@pytest.mark.parametrize("wait", ["", "__pipeline_wait_prior(3);"])
def test_a_wait_that_is_missing_or_too_short_is_found(wait: str) -> None:
    done = _pipelined(wait, "all")
    assert [f.reason for f in done.findings] == [Reason.SHARED_RACE]
    detail = done.findings[0].detail
    assert "asynchronous copy of thread" in detail
    assert "not waited" in detail
    assert "source line 17" in detail


def test_without_the_check_the_value_is_what_lay_there() -> None:
    first, second = (output(_pipelined("", "bounds", poison=p), "y", "float32") for p in ("nan", "huge"))
    assert np.isnan(first).any()
    assert not np.array_equal(first, second, equal_nan=True)


def _copies(body: str, checks: str = "all", threads: int = 32):
    ptx = f"""{HEADER}
.visible .entry kern(.param .u64 px, .param .u64 py) {{
  .reg .b64 %x, %y, %o; .reg .b32 %t, %s, %r<8>; .reg .pred %p<2>;
  .shared .align 16 .b8 s[1024];
  ld.param.u64 %x, [px]; ld.param.u64 %y, [py]; mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, 16; add.s64 %x, %x, %o;
  add.s64 %y, %y, %o; shl.b32 %s, %t, 4; mov.u32 %r7, s; add.u32 %s, %s, %r7; st.shared.v4.u32 [%s], {{%t, %t, %t, %t}};
  {body}
  ld.shared.v4.u32 {{%r0, %r1, %r2, %r3}}, [%s]; st.global.v4.u32 [%y], {{%r0, %r1, %r2, %r3}};
  ret;
}}"""
    x = np.arange(4 * threads, dtype=np.uint32).reshape(threads, 4) + 100
    return x, run(ptx, call_of([array("x", x), out("y", "uint32", threads, 4)], (1,), (threads,)), {"x": x}, checks)


@pytest.mark.parametrize("checks", ["all", "bounds"])
def test_sizes_groups_and_zero_fill(checks: str) -> None:
    body = """cp.async.ca.shared.global [%s], [%x], 4; cp.async.commit_group;
      cp.async.ca.shared::cta.global.L2::128B [%s+8], [%x+8], 8, 3; cp.async.commit_group;
      mov.u32 %r4, 0; cp.async.ca.shared.global [%s+4], [%x+4], 4, %r4; cp.async.wait_all;"""
    x, done = _copies(body, checks)
    assert done.completed, done.findings
    got = output(done, "y", "uint32").reshape(-1, 4)
    want = x.copy()
    want[:, 1], want[:, 2], want[:, 3] = 0, x[:, 2] & 0xFFFFFF, 0
    assert np.array_equal(got, want)


def test_groups_complete_in_order_and_only_so_far() -> None:
    body = """cp.async.ca.shared.global [%s], [%x], 4; cp.async.commit_group;
      cp.async.ca.shared.global [%s+4], [%x+4], 4; cp.async.commit_group;
      cp.async.ca.shared.global [%s+8], [%x+8], 4; cp.async.wait_group 1;"""
    x, done = _copies(body, "bounds")
    got = output(done, "y", "uint32").reshape(-1, 4)
    threads = np.arange(32, dtype=np.uint32)
    assert np.array_equal(got, np.stack([x[:, 0], threads, threads, threads], 1))


@pytest.mark.parametrize(
    ("body", "reason"),
    [("cp.async.cg.shared.global [%s], [%x], 16; ld.shared.u32 %r0, [%s+4]; cp.async.wait_all;", Reason.SHARED_RACE),
     ("cp.async.cg.shared.global [%s], [%x], 16; st.shared.u32 [%s+4], 0; cp.async.wait_all;", Reason.SHARED_RACE),
     ("cp.async.cg.shared.global [%s], [%x+8], 16; cp.async.wait_all;", Reason.MISALIGNED),
     ("cp.async.cg.shared.global [%s], [%x+4096], 16; cp.async.wait_all;", Reason.OUT_OF_BOUNDS),
     ("cp.async.cg.shared.global [%s+1008], [%x], 16; cp.async.wait_all;", Reason.OUT_OF_BOUNDS),
     ("mov.u32 %r4, 9; cp.async.ca.shared.global [%s], [%x], 8, %r4; cp.async.wait_all;", Reason.TRAP),
     ("cp.async.ca.shared.global [%s], [%x+510], 4, 1; cp.async.wait_all;", Reason.MISALIGNED),
     ("cp.async.ca.shared.global [%s], [%x+512], 4, 1; cp.async.wait_all;", Reason.OUT_OF_BOUNDS)],
)  # fmt: skip
def test_faults(body: str, reason: Reason) -> None:
    _, done = _copies(body)
    assert [f.reason for f in done.findings] == [reason], done.findings


def test_a_source_of_no_bytes_may_lie_anywhere() -> None:
    _, done = _copies("cp.async.ca.shared.global [%s], [%x+4096], 4, 0; cp.async.wait_all;")
    assert done.completed, done.findings
    assert (output(done, "y", "uint32").reshape(-1, 4)[:, 0] == 0).all()


def test_another_thread_needs_a_barrier_after_the_wait() -> None:
    """The copy counts as a write of its thread, made at the wait."""
    read = "mov.u32 %r5, 496; sub.u32 %r5, %r5, %s; ld.shared.u32 %r6, [%r5];"
    _, bad = _copies(f"bar.sync 0; cp.async.cg.shared.global [%s], [%x], 16; cp.async.wait_all; {read}")
    assert [f.reason for f in bad.findings] == [Reason.SHARED_RACE]
    _, good = _copies(f"bar.sync 0; cp.async.cg.shared.global [%s], [%x], 16; cp.async.wait_all; bar.sync 0; {read}")
    assert good.completed, good.findings


def test_more_copies_than_the_ring_holds_are_not_checked() -> None:
    with pytest.raises(Refused) as caught:
        _copies("mov.u32 %r4, 0; again: cp.async.ca.shared.global [%s], [%x], 4; add.u32 %r4, %r4, 1;"
                "setp.lt.u32 %p0, %r4, 300; @%p0 bra again; cp.async.wait_all;", "bounds")  # fmt: skip
    assert caught.value.finding.reason is Reason.UNSUPPORTED_FEATURE
