"""Loads and stores of every type and width, vectors, packing, windows of the generic space, atomics."""

import random
from collections.abc import Callable

import numpy as np
import pytest
from ptx_models import evaluate
from ptx_runner import HEADER, array, call_of, out, output, run

from kerneltrial.devices.cpu import table
from kerneltrial.devices.device import Refused

_TYPES = ["u8", "s8", "b8", "u16", "s16", "b16", "u32", "s32", "b32", "f32", "u64", "s64", "b64", "f64"]


def _kernel(body: str, declarations: str = "") -> str:
    """A kernel of 32 threads with `x` in %x and `y` in %y, both offset by 16 bytes a thread."""
    return f"""{HEADER}
{declarations}
.visible .entry kern(.param .u64 px, .param .u64 py) {{
  .reg .b64 %x, %y, %o, %d<9>; .reg .b32 %t, %r<9>; .reg .b16 %h<9>; .reg .pred %p<4>; .reg .f32 %f<4>;
  ld.param.u64 %x, [px]; ld.param.u64 %y, [py];
  mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, 16; add.s64 %x, %x, %o; add.s64 %y, %y, %o;
  {body}
  ret;
}}"""


def _run(body: str, x: np.ndarray, declarations: str = "", checks: str = "all"):
    call = call_of([array("x", x), out("y", "uint64", 32, 2)], (1,), (32,))
    done = run(_kernel(body, declarations), call, {"x": x}, checks=checks)
    assert done.completed, done.findings
    return output(done, "y", "uint64").reshape(32, 2)


def _random_words(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**64, (32, 2), np.uint64)


def _extended(value: int, t: str) -> int:
    width = int(t[1:])
    value &= (1 << width) - 1
    if t[0] == "s" and value >> (width - 1):
        value -= 1 << width
    return value & (2**64 - 1)


@pytest.mark.parametrize("t", _TYPES)
@pytest.mark.parametrize("space", ["global", "shared", "local", ""])
def test_a_load_extends_by_its_type(t: str, space: str) -> None:
    """Stored with the width of the type through the space, loaded into a 64-bit register."""
    x = _random_words()
    width = int(t[1:])
    declarations = ""
    body = "ld.global.u64 %d0, [%x];"
    place = "%y+8"
    if space in ("shared", "local"):
        body += f".{space} .align 16 .b8 buf[512]; mov.u64 %d2, buf; add.s64 %d2, %d2, %o;"
        place = "%d2"
    word = f".{space}" if space else ""
    body += f"st{word}.b{width} [{place}], %d0; ld{word}.{t} %d1, [{place}]; st.global.u64 [%y], %d1;"
    body += "st.global.u64 [%y+8], %d0;"
    got = _run(body, x, declarations)
    assert [int(v) for v in got[:, 0]] == [_extended(int(v), t) for v in x[:, 0]]


def test_vectors() -> None:
    x = _random_words()
    got = _run("ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%x]; st.global.v4.u32 [%y], {%r3, %r2, %r1, %r0};", x)
    assert np.array_equal(got.view(np.uint32).reshape(32, 4), x.view(np.uint32).reshape(32, 4)[:, ::-1])
    got = _run("ld.global.nc.v2.u64 {%d0, %d1}, [%x]; st.global.v2.f64 [%y], {%d1, %d0};", x)
    assert np.array_equal(got, x[:, ::-1])


def test_hints_and_orders_change_nothing() -> None:
    x = _random_words()
    loads = ["ld.global.ca.u64", "ld.global.nc.L1::no_allocate.L2::128B.u64", "ld.volatile.global.u64",
    "ld.relaxed.gpu.global.u64",
             "ld.acquire.sys.u64", "ld.weak.global.cg.L1::evict_last.u64", "ld.u64"]  # fmt: skip
    stores = [
        "st.global.cs.u64",
        "st.volatile.global.u64",
        "st.release.gpu.global.u64",
        "st.relaxed.cta.u64",
        "st.weak.u64",
    ]
    for load in loads:
        for store in stores[:2] if load != loads[0] else stores:
            got = _run(f"{load} %d0, [%x+8]; {store} [%y], %d0; {store} [%y+8], %d0; fence.acq_rel.gpu; membar.gl;", x)
            assert np.array_equal(got[:, 0], x[:, 1])


def test_packing() -> None:
    x = _random_words()
    body = """ld.global.u64 %d0, [%x]; mov.b64 {%r0, %r1}, %d0; mov.b32 {%h0, %h1}, %r0; mov.b32 %r2, {%h1, %h0};
      mov.b64 %d1, {%r1, %r2}; mov.b64 {%h2, %h3, %h4, %h5}, %d1; mov.b64 %d2, {%h5, %h4, %h3, %h2};
      st.global.u64 [%y], %d1; st.global.u64 [%y+8], %d2;"""
    got = _run(body, x)
    words = x[:, 0].astype(object)
    low, high = [w & 0xFFFFFFFF for w in words], [w >> 32 for w in words]
    swapped = [(v >> 16) | (v & 0xFFFF) << 16 for v in low]
    first = [h | s << 32 for h, s in zip(high, swapped, strict=True)]
    second = [sum((v >> 16 * (3 - k) & 0xFFFF) << 16 * k for k in range(4)) for v in first]
    assert [int(v) for v in got[:, 0]] == first
    assert [int(v) for v in got[:, 1]] == second


def test_nan_payloads_are_kept_by_moves() -> None:
    """Only arithmetic makes a NaN canonical: a load, a move, a selection and a store keep its payload."""
    x = np.full((32, 2), 0xFFC12345_7F812345, np.uint64)
    body = """ld.global.v2.f32 {%f0, %f1}, [%x]; mov.f32 %f2, %f1; setp.eq.u32 %p0, %t, 99; selp.f32 %f3, %f2, %f0, %p0;
      st.global.v2.f32 [%y], {%f3, %f2}; add.f32 %f3, %f0, %f1; mov.b32 %r0, %f3; st.global.f32 [%y+8], %f3;
      st.global.u32 [%y+12], %r0;"""
    got = _run(body, x)
    assert set(got[:, 0].tolist()) == {0xFFC12345_7F812345}
    assert set(got[:, 1].tolist()) == {0x7FFFFFFF_7FFFFFFF}


def test_windows_of_the_generic_space() -> None:
    x = _random_words()
    body = """.shared .align 8 .b8 s[512]; .local .align 8 .b8 l[16];
      ld.global.u64 %d0, [%x]; mov.u64 %d1, s; add.s64 %d1, %d1, %o; cvta.shared.u64 %d2, %d1; st.u64 [%d2], %d0;
      cvta.to.shared.u64 %d3, %d2; ld.shared.u64 %d4, [%d3]; mov.u64 %d5, l; cvta.local.u64 %d6, %d5;
      st.u64 [%d6+8], %d4;
      ld.local.u64 %d7, [l+8]; st.global.u64 [%y], %d7;
      isspacep.shared %p0, %d2; isspacep.local %p1, %d6; isspacep.global %p2, %x; isspacep.shared %p3, %x;
      and.pred %p0, %p0, %p1; and.pred %p0, %p0, %p2; not.pred %p3, %p3; and.pred %p0, %p0, %p3;
      selp.u32 %r0, 1, 0, %p0; cvt.u64.u32 %d8, %r0; st.global.u64 [%y+8], %d8;"""
    got = _run(body, x)
    assert np.array_equal(got[:, 0], x[:, 0])
    assert (got[:, 1] == 1).all()


def test_module_variables() -> None:
    declarations = """.const .align 4 .u32 c[4] = {10, 20, 0x1e,
    40}; .global .align 8 .u64 g = 5; .global .f32 f[2] = {0f3F800000};"""
    body = """and.b32 %r0, %t, 3; mul.wide.u32 %d0, %r0, 4; mov.u64 %d1, c; add.s64 %d1, %d1, %d0;
    ld.const.u32 %r1, [%d1];
      atom.global.add.u64 %d2, [g], 1; cvt.u64.u32 %d3, %r1; st.global.u64 [%y], %d3; st.global.u64 [%y+8], %d2;
      ld.global.f32 %f0, [f+4]; ld.const.u32 %r2, [c+12];"""
    got = _run(body, _random_words(), declarations)
    assert got[:, 0].tolist() == [10, 20, 30, 40] * 8
    assert got[:, 1].tolist() == list(range(5, 37))


_ATOMICS: dict[str, Callable[[int, int, int], int]] = {
    "add": lambda old, v, w: old + v,
    "and": lambda old, v, w: old & v,
    "or": lambda old, v, w: old | v,
    "xor": lambda old, v, w: old ^ v,
    "exch": lambda old, v, w: v,
    "inc": lambda old, v, w: 0 if old >= v else old + 1,
    "dec": lambda old, v, w: v if old == 0 or old > v else old - 1,
}
_CASES = [("add", "u32"), ("add", "s32"), ("add", "u64"), ("and", "b32"), ("and", "b64"), ("or", "b32"), ("or", "b64"),
          ("xor", "b32"), ("xor", "b64"), ("exch", "b32"), ("exch", "b64"), ("inc", "u32"), ("dec", "u32"), ("min",
          "u32"),
          ("min", "s32"), ("min", "u64"), ("min", "s64"), ("max", "u32"), ("max", "s32"), ("max", "u64"), ("max",
          "s64")]  # fmt: skip


@pytest.mark.parametrize(("what", "t"), _CASES)
@pytest.mark.parametrize("space", [".global", ".shared", "", ".global.cta", ".shared.cta", ".global.sys"])
def test_atomics_give_the_old_value_in_order(what: str, t: str, space: str) -> None:
    width = int(t[1:])
    mask = (1 << width) - 1
    x = _random_words(3)
    if what in ("inc", "dec"):
        x[:] = x % np.uint64(5)
    declarations, start = ".global .align 8 .u64 g = 7;", "mov.u64 %d2, g;"
    if space.startswith(".shared"):
        declarations = ".shared .align 8 .u64 g;"
        first = "setp.eq.u32 %p0, %t, 0; mov.u64 %d3, 7; @%p0 st.shared.u64 [g], %d3; bar.sync 0;"
        start = f"{first} {start}"
    body = f"{start} ld.global.b{width} {'%d0' if width == 64 else '%r0'}, [%x];"
    register, result = ("%d0", "%d1") if width == 64 else ("%r0", "%r1")
    body += "mov.u64 %d4, 0; st.global.u64 [%y], %d4; st.global.u64 [%y+8], %d4;"
    body += f"atom{space}.{what}.{t} {result}, [%d2], {register};"
    body += f"st.global.b{width} [%y], {result};"
    if what != "exch":
        body += f"red{space or '.global'}.{what}.{t} [%d2], {register};"
    got = _run(body, x, declarations)

    def signed(v: int) -> int:
        return v - (1 << width) if t[0] == "s" and v >> (width - 1) else v

    def step(old: int, v: int) -> int:
        if what in ("min", "max"):
            return (min if what == "min" else max)(old, v, key=signed)
        return _ATOMICS[what](old, v, 0) & mask

    old = 7
    for thread in range(32):
        value = int(x[thread, 0]) & mask
        assert int(got[thread, 0]) == old, (thread, what, t)
        old = step(old, value)
        if what != "exch":
            old = step(old, value)


def test_compare_and_swap() -> None:
    body = """cvt.u64.u32 %d0, %t; add.s64 %d1, %d0, 1; atom.global.cas.b64 %d2, [g], %d0, %d1; st.global.u64 [%y], %d2;
      atom.global.cas.b64 %d3, [g], %d0, %d1; st.global.u64 [%y+8], %d3;"""
    got = _run(body, _random_words(), ".global .align 8 .u64 g = 0;")
    assert got[:, 0].tolist() == list(range(32))
    assert got[:, 1].tolist() == list(range(1, 33))


@pytest.mark.parametrize(("space", "flushes"), [("global", True), ("shared", False)])
def test_float_atomics_flush_subnormals_in_global_memory_only(space: str, flushes: bool) -> None:
    x = np.zeros((32, 2), np.uint64)
    x[:, 0] = 1  # the smallest subnormal
    declare = f".{space} .align 4 .f32 g{' = 0f00000000' if space == 'global' else ''};"
    start = "setp.eq.u32 %p0, %t, 0; @%p0 st.shared.u32 [g], 0; bar.sync 0;" if space == "shared" else ""
    body = f"""{start} ld.global.f32 %f0, [%x]; mov.u64 %d0, g; red.{space}.add.f32 [%d0], %f0; bar.sync 0;
      ld.{space}.u32 %r0, [g]; cvt.u64.u32 %d1, %r0; st.global.u64 [%y], %d1; st.global.u64 [%y+8], %d1;"""
    got = _run(body, x, declare)
    assert set(got[:, 0].tolist()) == {0 if flushes else 32}


def test_float_atomics_add_in_order() -> None:
    x = np.zeros((32, 2), np.uint64)
    values = np.random.default_rng(1).standard_normal(32).astype(np.float32)
    x[:, 0] = values.view(np.uint32)
    body = """ld.global.f32 %f0, [%x]; mov.u64 %d0, g; atom.global.add.f32 %f1, [%d0], %f0; mov.b32 %r0, %f1;
      cvt.u64.u32 %d1, %r0; st.global.u64 [%y], %d1; st.global.u64 [%y+8], %d1;"""
    got = _run(body, x, ".global .align 4 .f32 g = 0f00000000;")[:, 0].astype(np.uint32).view(np.float32)
    total = np.float32(0)
    for thread in range(32):
        assert got[thread] == total
        total += values[thread]


@pytest.mark.parametrize(
    "text",
    ["ld.global.u32 %d0, [%x];x", "ld.global.v2.u32 %r0, [%x];", "ld.global.u32 {%r0, %r1}, [%x];",
     "st.global.u64 [%y], %r0;",
     "ld.global.v4.u64 {%d0, %d1, %d2, %d3}, [%x];", "mov.u64 %d0, %r0;", "mov.u32 %r0, %d0;", "add.s32 %r0, %d0, 1;",
     "atom.global.add.f32 %d0, [%x], %f0;", "ld.param.u64 %d0, [px+8];", "ld.param.u32 %r0, [px+2];",
     "st.param.u64 [px], %d0;",
     "ld.param.u64 %d0, [%x];", "mov.b64 {%r0, %r1, %r2}, %d0;", "cvt.u64.u32 %r0, %r1;", "activemask.b32 %d0;",
     "mov.u32 %r0, %clock;", "mov.u64 %d0, %globaltimer;", "mov.u32 %r0, %smid;",
     "setp.eq.s32 %p0|%p1, %r0, %r1, %p2;"],
)  # fmt: skip
def test_what_does_not_fit_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        _run(text, _random_words())


def test_the_table_has_no_opcode_twice_among_memory_forms() -> None:
    draw = random.Random(0)
    for form in table.FORMS:
        if form.raw and form.group in ("load", "store", "atomic"):
            for opcode in draw.sample(form.opcodes(), min(40, len(form.opcodes()))):
                found = [f for f in table.FORMS if f.head == form.head and f.expression.fullmatch(opcode)]
                assert found == [form], opcode


@pytest.mark.parametrize("t", ["f16", "f16x2", "bf16", "bf16x2"])
@pytest.mark.parametrize("space", [".global", ".shared"])
def test_half_atomics_round_each_sum_once(t: str, space: str) -> None:
    x = _random_words(11)
    x[:, 0] &= np.uint64(0xBFFFBFFF if t.startswith("f") else 0xBF7FBF7F)  # no NaN, few overflows
    declare = f"{space} .align 4 .b32 g{' = 0' if space == '.global' else ''};"
    start = "setp.eq.u32 %p0, %t, 0; @%p0 st.shared.u32 [g], 0; bar.sync 0;" if space == ".shared" else ""
    small = t in ("f16", "bf16")
    result, source = ("%h0", "%h1") if small else ("%r1", "%r0")
    wide = "cvt.u32.u16 %r1, %h0;" if small else ""
    body = f"""{start} .reg .b16 %h<4>; ld.global.u32 %r0, [%x]; mov.u64 %d0, g; mov.u32 %r1, 0; mov.u16 %h0, 0;
      cvt.u16.u32 %h1, %r0; atom{space}.add.noftz.{t} {result}, [%d0], {source}; {wide}
      cvt.u64.u32 %d1, %r1; st.global.u64 [%y], %d1; st.global.u64 [%y+8], 0;
      red{space}.add.noftz.{t} [%d0], {source};"""
    got = _run(body, x, declare)
    old, mask = 0, 0xFFFF if small else 0xFFFFFFFF
    for thread in range(32):
        assert int(got[thread, 0]) == old, (thread, t)
        for _ in range(2):
            (old,) = evaluate(f"add.{t}", old, int(x[thread, 0]) & mask)


def test_a_narrow_address_wraps_in_its_32_bits() -> None:
    body = """.shared .align 8 .b8 s[512]; ld.global.u64 %d0, [%x]; shl.b32 %r0, %t, 3; mov.u32 %r1, s;
      add.u32 %r0, %r0, %r1; sub.u32 %r0, %r0, 300; st.shared.u64 [%r0+300], %d0; bar.warp.sync -1;
      add.u32 %r0, %r0, 600; ld.shared.u64 %d1, [%r0+-300]; st.global.u64 [%y], %d1; st.global.u64 [%y+8], 0;"""
    x = _random_words()
    assert np.array_equal(_run(body, x)[:, 0], x[:, 0])
