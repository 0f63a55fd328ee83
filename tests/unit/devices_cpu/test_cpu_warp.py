"""Shuffles, votes, matches, reductions and barriers against models in Python."""

import random

import numpy as np
import pytest
from ptx_runner import HEADER, array, call_of, out, output, run

POISON = 0xFFFFFFFF


def _run(body: str, x: np.ndarray, threads: int = 64):
    """`x` has a row of 4 words a thread, in %r0 to %r3; %r4 and %r5 go to the output."""
    ptx = f"""{HEADER}
.visible .entry kern(.param .u64 px, .param .u64 py) {{
  .reg .b64 %x, %y, %o; .reg .b32 %t, %r<16>; .reg .pred %p<4>;
  ld.param.u64 %x, [px]; ld.param.u64 %y, [py]; mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, 16; add.s64 %x, %x, %o;
  mul.wide.u32 %o, %t, 8; add.s64 %y, %y, %o; ld.global.v4.u32 {{%r0, %r1, %r2, %r3}}, [%x]; mov.u32 %r4, 0;
  mov.u32 %r5, 0;
  {body}
  st.global.v2.u32 [%y], {{%r4, %r5}};
  ret;
}}"""
    call = call_of([array("x", x), out("y", "uint32", threads, 2)], (1,), (threads,))
    done = run(ptx, call, {"x": x})
    assert done.completed, done.findings
    return output(done, "y", "uint32").reshape(threads, 2)


def _words(seed: int, threads: int = 64, high: int = 2**32) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, high, (threads, 4), np.uint32)


def _shuffled(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """The source lane and the predicate, as in the PTX ISA."""
    bval, cval, mask = b & 31, c & 31, c >> 8 & 31
    low = lane & mask
    limit = low | (cval & ~mask & 31)
    j = {"up": lane - bval, "down": lane + bval, "bfly": lane ^ bval, "idx": low | (bval & ~mask & 31)}[mode]
    inside = j >= limit if mode == "up" else j <= limit
    return (j if inside else lane), inside


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@pytest.mark.parametrize("seed", range(4))
def test_shuffle(mode: str, seed: int) -> None:
    draw = random.Random(seed)
    x = _words(seed)
    widths = [32, 16, 8, 4, 2, 1]
    for thread in range(64):
        control = (32 - draw.choice(widths)) << 8 | (0 if mode == "up" else 31)
        x[thread, 2] = control if seed < 2 else draw.getrandbits(13)
    got = _run(f"shfl.sync.{mode}.b32 %r4|%p0, %r0, %r1, %r2, -1; selp.u32 %r5, 1, 0, %p0;", x)
    for thread in range(64):
        lane = thread % 32
        source, inside = _shuffled(mode, lane, int(x[thread, 1]), int(x[thread, 2]))
        assert got[thread, 0] == x[thread - lane + (source & 31), 0]
        assert got[thread, 1] == inside


def test_shuffle_under_a_mask_and_in_a_short_warp() -> None:
    x = _words(9, threads=40)
    body = """setp.lt.u32 %p1, %t, 40; and.b32 %r6, %t, 1; setp.eq.u32 %p2, %r6, 0;
      @!%p2 bra odd; shfl.sync.bfly.b32 %r4, %r0, 2, 31, 0x55555555; bra end;
      odd: shfl.sync.bfly.b32 %r4, %r0, 4, 31, 0xaaaaaaaa; end: shfl.sync.idx.b32 %r5, %r0, 9, 31, -1;"""
    got = _run(body, x, threads=40)
    for thread in range(40):
        other = thread ^ (2 if thread % 2 == 0 else 4)
        assert got[thread, 0] == (x[other, 0] if other < 40 else POISON)
        ninth = thread // 32 * 32 + 9
        assert got[thread, 1] == (x[ninth, 0] if ninth < 40 else POISON)


def test_a_guarded_collective() -> None:
    """The guard of a collective becomes a branch around it."""
    x = _words(4)
    body = "setp.lt.u32 %p0, %t, 32; mov.u32 %r4, 5; @%p0 shfl.sync.down.b32 %r4, %r0, 1, 31, -1;"
    got = _run(body, x)
    assert got[:31, 0].tolist() == x[1:32, 0].tolist()
    assert (got[32:, 0] == 5).all()


@pytest.mark.parametrize("seed", range(3))
def test_votes(seed: int) -> None:
    x = _words(seed, high=2)
    if seed == 1:
        x[:32, 0] = 1
    if seed == 2:
        x[32:, 0] = 0
    body = """setp.ne.u32 %p0, %r0, 0; vote.sync.ballot.b32 %r4, %p0, -1; vote.sync.any.pred %p1, %p0, -1;
      vote.sync.all.pred %p2, %p0, -1; vote.sync.uni.pred %p3, %p0, -1; selp.u32 %r6, 1, 0, %p1;
      selp.u32 %r7, 2, 0, %p2;
      selp.u32 %r8, 4, 0, %p3; or.b32 %r5, %r6, %r7; or.b32 %r5, %r5, %r8;"""
    got = _run(body, x)
    for warp in range(2):
        bits = x[warp * 32 : warp * 32 + 32, 0]
        ballot = sum(int(b) << lane for lane, b in enumerate(bits))
        flags = int(bits.any()) + 2 * int(bits.all()) + 4 * int(bits.all() or not bits.any())
        assert set(got[warp * 32 : warp * 32 + 32, 0].tolist()) == {ballot}
        assert set(got[warp * 32 : warp * 32 + 32, 1].tolist()) == {flags}


def test_match_and_negated_vote() -> None:
    x = _words(5, high=4)
    body = "match.any.sync.b32 %r4, %r0, -1; setp.ne.u32 %p0, %r1, 0; vote.sync.ballot.b32 %r5, !%p0, -1;"
    got = _run(body, x)
    for thread in range(64):
        warp = x[thread // 32 * 32 : thread // 32 * 32 + 32]
        assert got[thread, 0] == sum(int(w == x[thread, 0]) << lane for lane, w in enumerate(warp[:, 0]))
        assert got[thread, 1] == sum(int(w == 0) << lane for lane, w in enumerate(warp[:, 1]))


@pytest.mark.parametrize(
    "what", ["add.u32", "add.s32", "min.u32", "min.s32", "max.u32", "max.s32", "and.b32", "or.b32", "xor.b32"]
)
def test_redux(what: str) -> None:
    x = _words(6)
    if what.startswith(("and", "or")):
        x[:, 0] |= np.uint32(0x0F0F0000)
    got = _run(f"redux.sync.{what} %r4, %r0, -1;", x)
    word, t = what.split(".")
    for warp in range(2):
        values = x[warp * 32 : warp * 32 + 32, 0]
        values = values.view(np.int32) if t == "s32" else values
        function = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
                    "xor": np.bitwise_xor}[word]  # fmt: skip
        want = int(function.reduce(values, dtype=values.dtype)) & 0xFFFFFFFF
        assert set(got[warp * 32 : warp * 32 + 32, 0].tolist()) == {want}


def test_barriers_and_special_registers() -> None:
    x = _words(7)
    body = """.shared .align 4 .b8 s[256]; shl.b32 %r6, %t, 2; st.shared.u32 [%r6], %r0; bar.sync 0; sub.u32 %r7,
    252, %r6;
      ld.shared.u32 %r4, [%r7]; barrier.sync 1; mov.u32 %r8, %laneid; mov.u32 %r9, %lanemask_lt; mov.u32 %r10, %warpid;
      mov.u32 %r11, %nwarpid; mov.u32 %r12, %ntid.x; mov.u32 %r13, %lanemask_ge; add.u32 %r5, %r9,
      %r13; not.b32 %r5, %r5;
      add.u32 %r5, %r5, %r8; shl.b32 %r10, %r10, 8; add.u32 %r5, %r5, %r10; shl.b32 %r11, %r11, 16; add.u32 %r5,
      %r5, %r11;
      shl.b32 %r12, %r12, 20; add.u32 %r5, %r5, %r12;"""
    got = _run(body, x)
    assert got[:, 0].tolist() == x[::-1, 0].tolist()
    threads = np.arange(64)
    assert got[:, 1].tolist() == (threads % 32 + (threads // 32 << 8) + (2 << 16) + (64 << 20)).tolist()


def test_threads_in_three_dimensions() -> None:
    ptx = f"""{HEADER}
.visible .entry kern(.param .u64 py) {{
  .reg .b64 %y, %o; .reg .b32 %r<12>;
  ld.param.u64 %y, [py]; mov.u32 %r0, %tid.x; mov.u32 %r1, %tid.y; mov.u32 %r2, %tid.z; mov.u32 %r3,
  %ctaid.x; mov.u32 %r4, %ctaid.y;
  mov.u32 %r5, %ctaid.z; mov.u32 %r6, %nctaid.x; mov.u32 %r7, %nctaid.y;
  mad.lo.u32 %r8, %r5, %r7, %r4; mad.lo.u32 %r8, %r8, %r6, %r3; mad.lo.u32 %r9, %r2, 3, %r1; mad.lo.u32 %r9, %r9,
  5, %r0;
  mad.lo.u32 %r10, %r8, 30, %r9; mul.wide.u32 %o, %r10, 4; add.s64 %y, %y, %o; st.global.u32 [%y], %r10;
  ret;
}}"""
    n = 2 * 3 * 4 * 30
    done = run(ptx, call_of([out("y", "uint32", n)], (2, 3, 4), (5, 3, 2)), {})
    assert done.completed, done.findings
    assert not done.findings
    assert np.array_equal(output(done, "y", "uint32"), np.arange(n))


def test_match_of_two_words_and_of_all() -> None:
    x = _words(8, high=2)
    x[:32, 0] = 1
    body = """.reg .b64 %w; mov.b64 %w, {%r0, %r1}; match.any.sync.b64 %r4, %w, -1;
      match.all.sync.b32 %r5|%p1, %r0, -1; selp.u32 %r6, 4, 0, %p1; xor.b32 %r5, %r5, %r6;"""
    got = _run(body, x)
    for thread in range(64):
        warp = x[thread // 32 * 32 : thread // 32 * 32 + 32]
        both = sum(int((w[:2] == x[thread, :2]).all()) << lane for lane, w in enumerate(warp))
        assert got[thread, 0] == both
        agree = bool((warp[:, 0] == warp[0, 0]).all())
        assert got[thread, 1] == ((0xFFFFFFFF ^ 4) if agree else 0)


def test_active_lanes_meet() -> None:
    x = _words(2, high=3)
    body = """activemask.b32 %r4; setp.eq.u32 %p0, %r0, 1; @!%p0 bra skip; activemask.b32 %r5; skip: activemask.b32 %r6;
      setp.ne.u32 %p1, %r6, %r4; @%p1 mov.u32 %r5, 99;"""
    got = _run(body, x, threads=40)
    for thread in range(40):
        warp = x[thread // 32 * 32 : min(40, thread // 32 * 32 + 32), 0]
        assert got[thread, 0] == (1 << len(warp)) - 1
        ones = sum(int(w == 1) << lane for lane, w in enumerate(warp))
        assert got[thread, 1] in ((ones,) if x[thread, 0] == 1 else (0,))


@pytest.mark.parametrize("threads", [64, 40])
@pytest.mark.parametrize("head", ["bar.red", "barrier.cta.red"])
def test_barriers_with_a_reduction(threads: int, head: str) -> None:
    x = _words(3, high=2)
    x[:, 1] = 1
    aligned = "" if head == "bar.red" else ".aligned"
    body = f"""setp.ne.u32 %p0, %r0, 0; {head}.popc{aligned}.u32 %r4, 1, %p0; setp.ne.u32 %p1, %r1, 0;
      {head}.and{aligned}.pred %p2, 0, %p1; selp.u32 %r5, 1, 0, %p2; {head}.or{aligned}.pred %p3, 2,
      {threads + 31 & -32}, !%p1; selp.u32 %r6, 2, 0, %p3; or.b32 %r5, %r5, %r6;"""
    got = _run(body, x, threads=threads)
    assert set(got[:, 0].tolist()) == {int(x[:threads, 0].sum())}
    assert set(got[:, 1].tolist()) == {1}


def test_named_barriers_hand_over_between_warps() -> None:
    """Warp 0 fills, warp 1 empties, twice: full and empty are barriers 1 and 2 of 64 threads."""
    x = _words(12)
    body = """.shared .align 4 .b8 s[128]; and.b32 %r8, %t, 31; shl.b32 %r8, %r8, 2; mov.u32 %r9, s;
      add.u32 %r8, %r8, %r9; mov.u32 %r10, 0; setp.lt.u32 %p0, %t, 32; @!%p0 bra consumer;
      producer: st.shared.u32 [%r8], %r0; bar.arrive 1, 64; bar.sync 2, 64; add.u32 %r0, %r0, 1; add.u32 %r10, %r10, 1;
      setp.lt.u32 %p1, %r10, 2; @%p1 bra producer; bra end;
      consumer: bar.sync 1, 64;
      sub.u32 %r11, %r8, %r9; xor.b32 %r11, %r11, 64; add.u32 %r11, %r11, %r9; ld.shared.u32 %r12, [%r11];
      add.u32 %r4, %r4, %r12; bar.arrive 2, 64; add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, 2; @%p1 bra consumer;
      end:"""
    got = _run(body, x)
    for thread in range(32, 64):
        other = (thread - 32) ^ 16
        assert got[thread, 0] == (2 * int(x[other, 0]) + 1) & 0xFFFFFFFF
