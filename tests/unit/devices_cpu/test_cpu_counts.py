"""Counts against figures that can be worked out by hand; they are the same in every run and for all values."""

import numpy as np
import pytest
from ptx_runner import HEADER, array, call_of, out
from ptx_sources import NAIVE, SOFTMAX, TILED, ptx_of

from kerneltrial.devices.cpu.device import open_cpu
from kerneltrial.devices.device import Binary, Conditions, Refused
from kerneltrial.inputs.calls import Call
from kerneltrial.records.counts import Counts
from kerneltrial.records.reason import Reason


def _count(ptx: str, call: Call, values: dict[str, np.ndarray], poison: str = "nan") -> Counts:
    return open_cpu().load(Binary(ptx=ptx, cubin=b"")).count(call, values, Conditions(poison=poison))  # type: ignore[arg-type]


def _access(body: str, threads: int = 32) -> Counts:
    """A kernel whose thread number is %r0, four times that %r1; global addresses in %x and %y."""
    ptx = f"""{HEADER}
.visible .entry kern(.param .u64 px, .param .u64 py) {{
  .reg .b64 %x, %y, %o<4>; .reg .b32 %r<9>; .reg .pred %p<3>; .reg .f32 %f<9>;
  .shared .align 16 .b8 s[16384];
  ld.param.u64 %x, [px]; ld.param.u64 %y, [py]; mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 2;
  {body}
  ret;
}}"""
    x = np.zeros(8192, np.float32)
    return _count(ptx, call_of([array("x", x), out("y", "float32", 8192)], (1,), (threads,)), {"x": x})


def _global(stride_bytes: int, opcode: str = "ld.global.f32 %f0", first: int = 0) -> int:
    body = f"mul.wide.u32 %o0, %r0, {stride_bytes}; add.s64 %o0, %o0, %x; {opcode}, [%o0+{first}];"
    return _access(body).global_transactions


@pytest.mark.parametrize(("stride", "sectors"), [(0, 1), (4, 4), (8, 8), (16, 16), (32, 32), (64, 32), (128, 32)])
def test_sectors_of_strided_loads(stride: int, sectors: int) -> None:
    assert _global(stride) == sectors


def test_sectors_of_vectors_and_of_a_shifted_start() -> None:
    assert _global(16, "ld.global.v4.f32 {%f0, %f1, %f2, %f3}") == 16
    assert _global(8, "ld.global.v2.f32 {%f0, %f1}") == 8
    assert _global(4, first=16) == 5


def _shared(stride_words: int, opcode: str = "st.shared.f32", value: str = "%f0") -> Counts:
    body = f"mul.lo.u32 %r2, %r0, {4 * stride_words}; mov.f32 %f0, 0f00000000; {opcode} [%r2], {value};"
    return _access(body)


_EXTRA_PASSES = {0: 0, 1: 0, 2: 1, 4: 3, 6: 1, 8: 7, 17: 0, 32: 31, 33: 0}


@pytest.mark.parametrize(("stride", "extra"), _EXTRA_PASSES.items())
def test_bank_conflicts(stride: int, extra: int) -> None:
    counts = _shared(stride)
    assert (counts.shared_accesses, counts.shared_conflicts) == (1, extra)


def test_vectors_of_shared_memory_go_by_quarters() -> None:
    four = "{%f0, %f0, %f0, %f0}"
    assert _shared(4, "st.shared.v4.f32", four).shared_conflicts == 0
    assert _shared(8, "st.shared.v4.f32", four).shared_conflicts == 4
    assert _shared(2, "st.shared.v2.f32", "{%f0, %f0}").shared_conflicts == 0


def test_divergent_lanes_are_separate_accesses() -> None:
    body = """mov.f32 %f0, 0f00000000; and.b32 %r3, %r0, 1; setp.eq.u32 %p0, %r3, 0; @%p0 bra even;
      st.shared.f32 [%r1], %f0; bra end; even: st.shared.f32 [%r1], %f0; end: st.shared.f32 [%r1], %f0;"""
    assert _access(body).shared_accesses == 3


def test_loops_of_unequal_length_share_their_accesses() -> None:
    """Lane n makes n + 1 turns: the warp makes 32, each one access."""
    body = """mov.f32 %f0, 0f00000000; mov.u32 %r4, 0; turn: st.shared.f32 [%r1], %f0; add.u32 %r4, %r4, 1;
      setp.le.u32 %p0, %r4, %r0; @%p0 bra turn;"""
    counts = _access(body)
    assert counts.shared_accesses == 32
    assert counts.instructions["store_shared"] == 32 * 33 // 2


def test_guarded_instructions_count_where_they_are_executed() -> None:
    start = "setp.lt.u32 %p0, %r0, 5; mov.f32 %f0, 0f00000000; @%p0 add.f32 %f0, %f0, %f0;"
    assert _access(start + "@!%p0 mul.f32 %f0, %f0, %f0;").instructions["fp32"] == 32
    counts = _access(start, threads=70)
    assert counts.instructions["fp32"] == 5


def _matmul(source: str, m: int, n: int, k: int, fill: float = 0.0) -> Counts:
    a, b = np.full((m, k), fill, np.float32), np.full((k, n), fill, np.float32)
    arguments = [array("A", a), array("B", b), out("C", "float32", m, n), m, n, k]
    call = call_of(list(arguments), (-(-n // 16), -(-m // 16)), (16, 16))
    return _count(ptx_of(source), call, {"A": a, "B": b})


def test_naive_matmul() -> None:
    m, n, k = 32, 48, 20
    counts = _matmul(NAIVE, m, n, k)
    warps = m * n // 32
    assert counts.instructions["fp32"] == m * n * k
    assert counts.instructions["load_global"] == 2 * m * n * k
    assert counts.global_transactions == warps * (k * (2 + 2) + 4)
    assert (counts.barriers, counts.blocks, counts.threads_per_block) == (0, 6, 256)


def test_tiled_matmul() -> None:
    counts = _matmul(TILED, 32, 32, 64)
    assert counts.barriers == 4 * 4 * 2
    assert counts.instructions["fp32"] == 32 * 32 * 64
    assert counts.instructions["load_shared"] == 2 * 32 * 32 * 64
    assert counts.instructions["barrier"] == 4 * 4 * 2 * 256
    assert counts.shared_accesses == 32 * 4 * (2 + 2 * 16)
    assert counts.shared_conflicts == 32 * 4  # Bs has rows of 17 words, so that a warp's two rows meet in one bank
    assert counts.shared_bytes == 16 * 16 * 4 + 16 * 17 * 4


def test_counts_do_not_depend_on_values_or_poison() -> None:
    assert _matmul(TILED, 33, 17, 21) == _matmul(TILED, 33, 17, 21, 2.5)
    x = np.random.default_rng(0).standard_normal((3, 100), dtype=np.float32)
    call = call_of([array("x", x), out("y", "float32", 3, 100), 3, 100], (3,), (64,))
    assert _count(ptx_of(SOFTMAX), call, {"x": x}) == _count(ptx_of(SOFTMAX), call, {"x": x}, "huge")


def test_what_fails_is_not_counted() -> None:
    with pytest.raises(Refused) as refused:
        _access("ld.global.f32 %f0, [%x+32768];")
    assert refused.value.finding.reason is Reason.OUT_OF_BOUNDS


def test_a_log_that_overflows_is_not_counted() -> None:
    body = """mov.f32 %f0, 0f00000000; mov.u32 %r4, 0; turn: st.shared.f32 [%r1], %f0; add.u32 %r4, %r4, 1;
      setp.lt.u32 %p0, %r4, 70000; @%p0 bra turn;"""
    with pytest.raises(Refused) as refused:
        _access(body)
    assert refused.value.finding.reason is Reason.NOT_MEASURED


def test_the_device_gives_no_times() -> None:
    with pytest.raises(Refused) as refused:
        open_cpu().time(None, [])  # type: ignore[arg-type]
    assert refused.value.finding.reason is Reason.NOT_MEASURED
