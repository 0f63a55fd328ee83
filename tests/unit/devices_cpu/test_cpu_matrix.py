"""ldmatrix, movmatrix, mma.sync and wmma against sums in fractions, fragments laid out as the PTX ISA draws them."""

import random
from fractions import Fraction

import numpy as np
import pytest
from ptx_models import FORMATS, exact, is_inf, is_nan, read, rounded
from ptx_runner import HEADER, array, call_of, out, output, run
from ptx_sources import ptx_of

from kerneltrial.records.reason import Reason

PER = {"f16": 2, "bf16": 2, "tf32": 1, "s8": 4, "u8": 4}


def _element(draw: random.Random, t: str) -> int:
    """A bit pattern of a moderate value; subnormals and zeros among them."""
    if t in ("s8", "u8"):
        return draw.getrandbits(8)
    if t == "tf32":
        return draw.getrandbits(32) & 0x80000000 | draw.randint(110, 140) << 23 | draw.getrandbits(23)
    f = FORMATS[t]
    if draw.random() < 0.1:
        return draw.choice([0, f.top, 1, (1 << f.fraction) - 1])
    exponent = f.highest + draw.randint(-8, 4)
    return draw.getrandbits(1) << 15 | exponent << f.fraction | draw.getrandbits(f.fraction)


def _value(bits: int, t: str) -> Fraction:
    if t in ("s8", "u8"):
        return Fraction(read(bits, t))
    return exact(bits & ~0x1FFF, "f32") if t == "tf32" else exact(bits, t)


def _fragments(matrix: list[list[int]], t: str, of_b: bool) -> list[list[int]]:
    """Registers by lane. A: 16 rows of k; B: 8 columns of k, given as rows."""
    per = PER[t]
    width = 32 // per
    found = []
    for lane in range(32):
        group, inner = lane // 4, lane % 4
        registers = []
        for block in range(len(matrix[0]) // (4 * per)):
            for line in (group,) if of_b else (group, group + 8):
                first = block * 4 * per + inner * per
                registers.append(sum(matrix[line][first + i] << width * i for i in range(per)))
        found.append(registers)
    return found


def _close(got: int, want: Fraction, terms: Fraction, t: str) -> bool:
    """The device's own bound: sums in double, rounded once."""
    if is_nan(got, t) or is_inf(got, t):
        return abs(want) > Fraction(2) ** FORMATS[t].highest
    near = rounded(want, t, "rn", bool(got >> (FORMATS[t].width - 1)))
    error = abs(exact(near, t) - want) + terms / 2**48 if not is_inf(near, t) else abs(want)
    return abs(exact(got, t) - want) <= error


def _mma_kernel(opcode: str, counts: tuple[int, int, int, int]) -> str:
    a, b, c, d = counts
    names = iter(range(100))
    vectors = ["{" + ", ".join(f"%r{next(names)}" for _ in range(n)) + "}" for n in (a, b, c)]
    loads = "".join(f"ld.global.u32 %r{i}, [%x+{4 * i}];\n" for i in range(a + b + c))
    target = "{" + ", ".join(f"%q{i}" for i in range(d)) + "}"
    stores = "".join(f"st.global.u32 [%y+{4 * i}], %q{i};\n" for i in range(d))
    return f"""{HEADER}
.visible .entry kern(.param .u64 px, .param .u64 py) {{
  .reg .b64 %x, %y, %o; .reg .b32 %t, %r<100>, %q<16>;
  ld.param.u64 %x, [px]; ld.param.u64 %y, [py]; mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, 128; add.s64 %x, %x, %o;
  mul.wide.u32 %o, %t, 32; add.s64 %y, %y, %o;
  {loads}
  {opcode} {target}, {vectors[0]}, {vectors[1]}, {vectors[2]};
  {stores}
  ret;
}}"""


def _registers(ptx: str, rows: list[list[int]], results: int) -> np.ndarray:
    x = np.zeros((len(rows), 32), np.uint32)
    for lane, row in enumerate(rows):
        x[lane, : len(row)] = np.array(row, np.uint64).astype(np.uint32)
    done = run(ptx, call_of([array("x", x), out("y", "uint32", len(rows), 8)], (1,), (len(rows),)), {"x": x}, "bounds")
    assert done.completed, done.findings
    return output(done, "y", "uint32").reshape(len(rows), 8)[:, :results]


@pytest.mark.parametrize(
    ("t", "u", "k", "acc"),
    [("f16", "f16", 8, "f32"), ("f16", "f16", 16, "f32"), ("f16", "f16", 8, "f16"), ("f16", "f16", 16, "f16"),
     ("bf16", "bf16", 8, "f32"), ("bf16", "bf16", 16, "f32"), ("tf32", "tf32", 4, "f32"), ("tf32", "tf32", 8, "f32"),
     ("s8", "s8", 16, "s32"), ("s8", "u8", 32, "s32"), ("u8", "s8", 32, "s32"), ("u8", "u8", 16, "s32")],
)  # fmt: skip
@pytest.mark.parametrize("seed", range(3))
def test_mma(t: str, u: str, k: int, acc: str, seed: int) -> None:
    draw = random.Random(f"{t}{u}{k}{acc}{seed}")
    a = [[_element(draw, t) for _ in range(k)] for _ in range(16)]
    b = [[_element(draw, u) for _ in range(k)] for _ in range(8)]
    c = [[draw.getrandbits(31) if acc == "s32" else _element(draw, "tf32" if acc == "f32" else acc) for _ in range(8)]
         for _ in range(16)]  # fmt: skip
    rows = []
    for lane, (fa, fb) in enumerate(zip(_fragments(a, t, False), _fragments(b, u, True), strict=True)):
        g, i = lane // 4, lane % 4 * 2
        old = [c[g][i], c[g][i + 1], c[g + 8][i], c[g + 8][i + 1]]
        packed = [old[0] | old[1] << 16, old[2] | old[3] << 16] if acc == "f16" else old
        rows.append([*fa, *fb, *packed])
    counts = (len(fa), len(fb), len(packed), len(packed))
    got = _registers(_mma_kernel(f"mma.sync.aligned.m16n8k{k}.row.col.{acc}.{t}.{u}.{acc}", counts), rows, counts[3])
    for lane in range(32):
        words = [int(w) for w in got[lane]]
        values = [h for w in words for h in (w & 0xFFFF, w >> 16)] if acc == "f16" else words
        for n, word in enumerate(values):
            row, column = lane // 4 + 8 * (n // 2), lane % 4 * 2 + n % 2
            products = [_value(a[row][j], t) * _value(b[column][j], u) for j in range(k)]
            if acc == "s32":
                assert word == (c[row][column] + int(sum(products))) & 0xFFFFFFFF
                continue
            old = exact(c[row][column], acc)
            assert _close(word, sum(products) + old, sum(map(abs, products)) + abs(old), acc), (lane, n)


def test_ldmatrix_and_movmatrix() -> None:
    ptx = f"""{HEADER}
.visible .entry kern(.param .u64 px, .param .u64 py) {{
  .reg .b64 %x, %y, %o; .reg .b32 %t, %s, %a, %r<20>;
  .shared .align 16 .b8 s[512];
  ld.param.u64 %x, [px]; ld.param.u64 %y, [py]; mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, 16; add.s64 %x, %x, %o;
  mul.wide.u32 %o, %t, 64; add.s64 %y, %y, %o; shl.b32 %s, %t, 4; mov.u32 %a, s; add.u32 %s, %s, %a;
  ld.global.v4.u32 {{%r0, %r1, %r2, %r3}}, [%x]; st.shared.v4.u32 [%s], {{%r0, %r1, %r2, %r3}}; bar.warp.sync -1;
  ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r4, %r5, %r6, %r7}}, [%s];
  ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {{%r8, %r9, %r10, %r11}}, [%s];
  ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r12}}, [%s]; movmatrix.sync.aligned.m8n8.trans.b16 %r13, %r12;
  ldmatrix.sync.aligned.m8n8.x2.shared::cta.b16 {{%r14, %r15}}, [%s];
  st.global.v4.u32 [%y], {{%r4, %r5, %r6, %r7}}; st.global.v4.u32 [%y+16], {{%r8, %r9, %r10, %r11}};
  st.global.v4.u32 [%y+32], {{%r12, %r13, %r14, %r15}}; st.global.v4.u32 [%y+48], {{%r0, %r1, %r2, %r3}};
  ret;
}}"""
    x = np.random.default_rng(1).integers(0, 2**16, (4, 8, 8), np.uint16)
    done = run(ptx, call_of([array("x", x), out("y", "uint32", 32, 16)], (1,), (32,)), {"x": x})
    assert done.completed, done.findings
    got = output(done, "y", "uint16").reshape(32, 16, 2)
    for lane in range(32):
        g, i = lane // 4, lane % 4 * 2
        for m in range(4):
            assert got[lane, m].tolist() == x[m, g, i : i + 2].tolist()
            assert got[lane, 4 + m].tolist() == x[m, i : i + 2, g].tolist()
        assert got[lane, 9].tolist() == x[0, i : i + 2, g].tolist()
        assert got[lane, 11].tolist() == x[1, g, i : i + 2].tolist()


def test_ldmatrix_checks_its_rows() -> None:
    for body, reason in (("shl.b32 %s, %t, 3;", Reason.MISALIGNED), ("shl.b32 %s, %t, 6;", Reason.OUT_OF_BOUNDS)):
        ptx = f"""{HEADER}
.visible .entry kern(.param .u64 py) {{
  .reg .b64 %y; .reg .b32 %t, %s, %r<4>; .shared .align 16 .b8 s[512];
  ld.param.u64 %y, [py]; mov.u32 %t, %tid.x; {body}
  ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r0, %r1, %r2, %r3}}, [%s]; st.global.u32 [%y], %r0; ret;
}}"""
        done = run(ptx, call_of([out("y", "uint32", 1)], (1,), (32,)), {}, "bounds")
        assert [f.reason for f in done.findings] == [reason]


WMMA = """
#include <mma.h>
using namespace nvcuda;
typedef TYPE T; typedef ACC S;
extern "C" __global__ void kern(const T* A, const T* B, const S* C, S* D, int lda, int ldb, int ldc) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::LA> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::LB> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, S> c;
  wmma::load_matrix_sync(a, A, lda);
  wmma::load_matrix_sync(b, B, ldb);
  wmma::load_matrix_sync(c, C, ldc, wmma::mem_LC);
  for (int i = 0; i < c.num_elements; ++i) c.x[i] = c.x[i] + c.x[i];
  wmma::mma_sync(c, a, b, c);
  wmma::store_matrix_sync(D, c, ldc, wmma::mem_LC);
}
"""


@pytest.mark.parametrize("layouts", ["row row", "row col", "col row", "col col"])
@pytest.mark.parametrize(("kind", "acc"), [("half", "float"), ("half", "half"), ("__nv_bfloat16", "float")])
def test_wmma(kind: str, acc: str, layouts: str) -> None:
    la, lb = layouts.split()
    source = WMMA.replace("TYPE", kind).replace("ACC", acc).replace("LA", f"{la}_major").replace("LB", f"{lb}_major")
    source = source.replace("mem_LC", f"mem_{lb}_major")
    rng = np.random.default_rng(5)
    a, b, c = (rng.integers(-8, 9, (16, 24)).astype(np.float32) / 4 for _ in range(3))
    t = "float16" if kind == "half" else "uint16"
    s = np.float16 if acc == "half" else np.float32

    def stored(m: np.ndarray, layout: str) -> np.ndarray:
        """In memory, with leading dimension 24: the 16 x 16 part counts."""
        whole = np.zeros((16, 24), np.float32)
        whole[:, :16] = m[:, :16] if layout == "row" else m[:, :16].T
        return whole.astype(np.float16) if kind == "half" else (whole.view(np.uint32) >> 16).astype(np.uint16)

    before = np.zeros((16, 24), s)
    before[:, :16] = c[:, :16] if lb == "row" else c[:, :16].T
    values = {"A": stored(a, la), "B": stored(b, lb), "C": before}
    arguments = [array(name, value) for name, value in values.items()]
    assert arguments[0].dtype == t
    done = run(ptx_of(source), call_of([*arguments, out("D", s.__name__, 16, 24), 24, 24, 24], (1,), (32,)), values,
               "bounds")  # fmt: skip
    assert done.completed, done.findings
    got = output(done, "D", s.__name__).reshape(16, 24)[:, :16]
    want = a[:, :16].astype(np.float64) @ b[:, :16] + 2 * c[:, :16]
    assert np.array_equal(got if lb == "row" else got.T, want)  # quarters and sixteenths: exact in every format
