"""Multiply-adds that are made four at a time: the same bits as one by one, which is how all checks make them."""

import random

import numpy as np
import pytest
from ptx_runner import HEADER, array, call_of, out, output, run

from kerneltrial.devices.cpu.flow import analyse
from kerneltrial.devices.cpu.inline import flatten
from kerneltrial.devices.cpu.parser import parse
from kerneltrial.devices.cpu.superword import Superwords, superwords
from kerneltrial.records.reason import Reason

THREADS, DEPTH = 64, 24
ROWS = 4
SPECIAL = np.array(
    [0, 1 << 31, 1, 0x007FFFFF, 0x7F800000, 0xFF800000, 0x7FC12345, 0xFFA00001, 0x7F7FFFFF, 0x00800000], np.uint32
)

KERNEL = """
.visible .entry kern(.param .u64 px, .param .u64 py) {{
  .reg .b64 %x, %y, %o; .reg .b32 %t, %k, %s, %i; .reg .pred %p;
  .reg .f32 %a<16>, %b<16>, %c<16>, %f<4>, %g<4>, %h;
  .shared .align 16 .b8 tile[{shared}];
  ld.param.u64 %x, [px]; ld.param.u64 %y, [py];
  mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, 64; add.s64 %x, %x, %o; add.s64 %y, %y, %o;
  mov.u32 %s, tile; shl.b32 %i, %t, 4; add.u32 %i, %s, %i;
  ld.global.v4.f32 {{%f0, %f1, %f2, %f3}}, [%x]; st.shared.v4.f32 [%i], {{%f0, %f1, %f2, %f3}};
  {first}
  and.b32 %k, %t, 3; mad.lo.u32 %s, %k, 16, %s; mov.u32 %k, 0;
  bar.sync 0;
AGAIN:
  {loop}
  add.u32 %k, %k, 1; add.u32 %s, %s, 32;
  setp.lt.u32 %p, %k, {depth};
  @%p bra AGAIN;
  {last}
  ret;
}}"""


def _kernel(loop: str, used: int = 16, zeros: bool = False) -> str:
    """Sums that begin with what is loaded may be any NaN; those that begin with zero are results alone."""
    start = "mov.f32 %a{n}, 0f00000000;" if zeros else "ld.global.f32 %a{n}, [%x+{at}];"
    first = "\n".join(start.format(n=n, at=4 * n) for n in range(16))
    last = "\n".join(f"st.global.f32 [%y+{4 * n}], %a{n if n < used else 0};" for n in range(16))
    return HEADER + KERNEL.format(first=first, loop=loop, last=last, depth=DEPTH, shared=16 * THREADS)


def _found(ptx: str) -> Superwords:
    module = parse(ptx)
    function = flatten(module, module.functions["kern"])
    flow = analyse(function)
    return superwords(function, flow.blocks, flow.local)


def _same_bits(ptx: str, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((THREADS, 16), np.float32).view(np.uint32)
    odd = rng.random(values.shape) < 0.02
    values[odd] = rng.choice(SPECIAL, int(odd.sum()))
    call = call_of([array("x", values.view(np.float32)), out("y", "float32", THREADS, 16)], (1,), (THREADS,))
    bits = []
    for checks in ("bounds", "all"):
        done = run(ptx, call, {"x": values.view(np.float32)}, checks=checks)
        assert done.completed, done.findings
        bits.append(output(done, "y", "uint32"))
    assert np.array_equal(*bits)
    assert len(np.unique(bits[0])) > 4


LOADS = "ld.shared.v4.f32 {%f0, %f1, %f2, %f3}, [%s]; ld.shared.v4.f32 {%g0, %g1, %g2, %g3}, [%s+16];"
APART = " ".join(
    f"ld.shared.f32 %{name}{n}, [%s+{4 * n + at}];" for name, at in (("f", 0), ("g", 16)) for n in range(4)
)


def _random_loop(seed: int) -> str:
    """Rows of a tile in registers; in places something between them, registers that change places, and waits."""
    draw = random.Random(seed)
    order = draw.sample(range(4), 4)
    rows = []
    for row in range(ROWS):
        for n in order:
            accumulator = f"%a{4 * row + n}"
            factors = draw.sample([f"%f{row}", f"%g{n}"], 2) if draw.random() < 0.5 else [f"%f{row}", f"%g{n}"]
            rows.append(f"fma.rn.f32 {accumulator}, {', '.join(factors)}, {accumulator};")
            if draw.random() < 0.05:
                rows.append(f"mul.f32 %h, %g0, %f0; @%p mov.f32 {accumulator}, %h;")
    if draw.random() < 0.5:
        first, second = draw.sample(range(16), 2)
        rows.append(f"mov.f32 %h, %a{first}; mov.f32 %a{first}, %a{second}; mov.f32 %a{second}, %h;")
    if draw.random() < 0.6:
        rows.append("bar.sync 0;")
    return "setp.eq.u32 %p, %k, 3; " + draw.choice([LOADS, APART]) + "\n".join(rows)


@pytest.mark.parametrize("seed", range(24))
def test_random_tiles_have_the_same_bits(seed: int) -> None:
    loop = _random_loop(seed)
    ptx = _kernel(loop, used=16 if seed % 3 else 15, zeros=seed % 2 == 1)
    assert _found(ptx).first
    _same_bits(ptx, seed)


def test_what_is_kept_together() -> None:
    """Sums that a loop carries lie together; factors of one block need no place."""
    rows = [f"fma.rn.f32 %a{4 * r + n}, %f{r}, %g{n}, %a{4 * r + n};" for r in range(ROWS) for n in range(4)]
    found = _found(_kernel(LOADS + "".join(rows)))
    assert (len(found.first), len(found.covered), len(found.together)) == (4, 12, 4)


NOT_AT_ONCE = {
    "a sum that is read at once": "fma.rn.f32 %b0, %f0, %g0, %a0; fma.rn.f32 %b1, %f0, %g1, %b0;"
    "fma.rn.f32 %b2, %f0, %g2, %b1; fma.rn.f32 %a0, %f0, %g3, %b2;",
    "a sum that is the next factor": "fma.rn.f32 %g1, %f0, %g0, %a0; fma.rn.f32 %a1, %f0, %g1, %a1;"
    "fma.rn.f32 %a2, %f0, %g2, %a2; fma.rn.f32 %a3, %f0, %g3, %a3;",
    "the common factor changes": "fma.rn.f32 %f0, %f0, %g0, %a0; fma.rn.f32 %a1, %f0, %g1, %a1;"
    "fma.rn.f32 %a2, %f0, %g2, %a2; fma.rn.f32 %a3, %f0, %g3, %a3; mov.f32 %a0, %f0;",
    "one register twice": "fma.rn.f32 %a0, %f0, %g0, %a0; fma.rn.f32 %a0, %f0, %g1, %a1;"
    "fma.rn.f32 %a2, %f0, %g2, %a2; fma.rn.f32 %a3, %f0, %g3, %a3;",
    "no common factor": "fma.rn.f32 %a0, %f0, %g0, %a0; fma.rn.f32 %a1, %f1, %g1, %a1;"
    "fma.rn.f32 %a2, %f2, %g2, %a2; fma.rn.f32 %a3, %f3, %g3, %a3;",
    "a guard": "setp.eq.u32 %p, %k, 3; fma.rn.f32 %a0, %f0, %g0, %a0; @%p fma.rn.f32 %a1, %f0, %g1, %a1;"
    "fma.rn.f32 %a2, %f0, %g2, %a2; fma.rn.f32 %a3, %f0, %g3, %a3;",
    "saturated": "".join(f"fma.rn.sat.f32 %a{n}, %f0, %g{n}, %a{n};" for n in range(4)),
    "flushed": "".join(f"fma.rn.ftz.f32 %a{n}, %f0, %g{n}, %a{n};" for n in range(4)),
    "rounded down": "".join(f"fma.rm.f32 %a{n}, %f0, %g{n}, %a{n};" for n in range(4)),
    "subtracted": "".join(f"mul.f32 %b{n}, %f0, %g{n}; sub.f32 %a{n}, %a{n}, %b{n};" for n in range(4)),
}


@pytest.mark.parametrize("text", NOT_AT_ONCE.values(), ids=NOT_AT_ONCE)
def test_what_is_no_superword(text: str) -> None:
    ptx = _kernel(LOADS + text)
    assert not _found(ptx).first
    _same_bits(ptx)


CROSSED = {
    "sums change lanes": "".join(f"fma.rn.f32 %b{n}, %f0, %g{n}, %a{n};" for n in range(4))
    + "".join(f"mov.f32 %a{n}, %b{3 - n};" for n in range(4)),
    "two orders of the same sums": "".join(f"fma.rn.f32 %a{n}, %f0, %g{n}, %a{n};" for n in range(4))
    + "".join(f"fma.rn.f32 %a{3 - n}, %f1, %g{n}, %a{3 - n};" for n in range(4)),
    "overlapping sums": "".join(f"fma.rn.f32 %a{n}, %f0, %g{n}, %a{n};" for n in range(4))
    + "".join(f"fma.rn.f32 %a{n + 2}, %f1, %g{n}, %a{n + 2};" for n in range(4)),
    "mul and add": "".join(f"mul.f32 %b{n}, %f0, %g{n}; add.f32 %a{n}, %a{n}, %b{n};" for n in range(4)),
    "factors that outlive the block": "".join(f"fma.rn.f32 %a{n}, %f0, %g{n}, %a{n};" for n in range(4))
    + "bar.sync 0;"
    + "".join(f"fma.rn.f32 %a{n + 4}, %f1, %g{n}, %a{n + 4};" for n in range(4)),
    "sums that are the factors": "".join(f"fma.rn.f32 %b{n}, %f0, %g{n}, %a{n};" for n in range(4))
    + "".join(f"fma.rn.f32 %a{n}, %f1, %b{n}, %a{n};" for n in range(4))
    + "".join(f"fma.rn.f32 %a{n + 4}, %f2, %b{n}, %a{n + 4};" for n in range(4)),
}


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("text", CROSSED.values(), ids=CROSSED)
def test_lanes_that_cross(text: str, zeros: bool) -> None:
    ptx = _kernel(LOADS + text, zeros=zeros)
    assert _found(ptx).first
    _same_bits(ptx)


def test_a_load_of_factors_is_checked() -> None:
    rows = "".join(f"fma.rn.f32 %a{n}, %f0, %g{n}, %a{n};" for n in range(4))
    ptx = _kernel(LOADS.replace("[%s+16]", f"[%s+{16 * THREADS - 32 * DEPTH + 32}]") + rows)
    assert _found(ptx).first
    call = call_of([array("x", np.ones((THREADS, 16), np.float32)), out("y", "float32", THREADS, 16)], (1,), (THREADS,))
    done = run(ptx, call, {"x": np.ones((THREADS, 16), np.float32)}, checks="bounds")
    assert [finding.reason for finding in done.findings] == [Reason.OUT_OF_BOUNDS]
