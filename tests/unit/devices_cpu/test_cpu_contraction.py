"""Products and sums that say nothing about rounding are fused as ptxas fuses them, and no others."""

import numpy as np
import pytest
from ptx_models import exact, rounded
from ptx_runner import HEADER, array, call_of, out, output, run

ROWS = 64


def _results(lines: str) -> tuple[list[list[int]], list[int]]:
    """Bits of %x, %y, %z by row, and what `lines` leave in %d."""
    rng = np.random.default_rng(3)
    columns = [rng.standard_normal(ROWS).astype(np.float32) for _ in range(3)]
    loads = "".join(f"ld.global.f32 %{n}, [%a1+{4 * ROWS * k}];\n" for k, n in enumerate("xyz"))
    text = f"""{HEADER}
.visible .entry kern(.param .u64 in, .param .u64 out) {{
  .reg .f32 %x, %y, %z, %p, %q, %d; .reg .b64 %a<4>; .reg .b32 %t; .reg .pred %c;
  ld.param.u64 %a0, [in]; ld.param.u64 %a2, [out]; mov.u32 %t, %tid.x;
  mad.wide.u32 %a1, %t, 4, %a0; mad.wide.u32 %a3, %t, 4, %a2;
  {loads} {lines}
  st.global.f32 [%a3], %d;
  ret;
}}"""
    values = np.concatenate(columns)
    done = run(text, call_of([array("in", values), out("out", "uint32", ROWS)], (1,), (ROWS,)), {"in": values})
    assert done.completed, done.findings
    bits = values.view(np.uint32).reshape(3, ROWS)
    return bits.T.tolist(), output(done, "out", "uint32").tolist()  # type: ignore[return-value]


def _value(expression: str, row: list[int], fused: bool) -> int:
    """`expression` of x, y, z and of products P(a, b), rounded after each step, or of exact products."""

    def product(a: object, b: object) -> object:
        p = a * b  # type: ignore[operator]
        return p if fused else exact(rounded(p, "f32", "rn"), "f32")

    names = dict(zip("xyz", (exact(v, "f32") for v in row), strict=True))
    return rounded(eval(expression, {"P": product}, names), "f32", "rn")


@pytest.mark.parametrize(
    ("lines", "expression"),
    [
        ("mul.f32 %p, %x, %y; add.f32 %d, %p, %z;", "P(x, y) + z"),
        ("mul.f32 %p, %x, %y; add.f32 %d, %z, %p;", "z + P(x, y)"),
        ("mul.f32 %p, %x, %y; sub.f32 %d, %p, %z;", "P(x, y) - z"),
        ("mul.f32 %p, %x, %y; sub.f32 %d, %z, %p;", "z - P(x, y)"),
    ],
)
def test_fused(lines: str, expression: str) -> None:
    rows, got = _results(lines)
    assert got == [_value(expression, row, True) for row in rows]


@pytest.mark.parametrize(
    "lines",
    [
        "mul.rn.f32 %p, %x, %y; add.f32 %d, %p, %z;",
        "mul.f32 %p, %x, %y; add.rn.f32 %d, %p, %z;",
        "mul.f32 %p, %x, %y; mov.f32 %q, %p; add.f32 %d, %p, %z;",
        "mul.f32 %p, %x, %y; bar.sync 0; add.f32 %d, %p, %z;",
        "setp.eq.f32 %c, %x, %x; mul.f32 %p, %x, %y; mov.f32 %d, %z; @%c add.f32 %d, %p, %z;",
        "setp.ne.f32 %c, %x, %x; mul.f32 %p, %x, %y; @%c mul.f32 %p, %x, %x; add.f32 %d, %p, %z;",
        "mul.f32 %p, %x, %y; mov.f32 %q, %x; mov.f32 %x, 0f00000000; add.f32 %d, %p, %z;",
    ],
)
def test_not_fused(lines: str) -> None:
    rows, got = _results(lines)
    want = [_value("P(x, y) + z", row, False) for row in rows]
    assert got == want
    assert want != [_value("P(x, y) + z", row, True) for row in rows], "these rows cannot tell"


def test_of_two_products_the_first_is_fused() -> None:
    rows, got = _results("mul.f32 %p, %x, %y; mul.f32 %q, %y, %z; sub.f32 %d, %p, %q;")

    def want(row: list[int]) -> int:
        x, y, z = (exact(v, "f32") for v in row)
        return rounded(x * y - exact(rounded(y * z, "f32", "rn"), "f32"), "f32", "rn")

    assert got == [want(row) for row in rows]
