"""min and max where LLVM knows that one operand is no NaN: the other may still be one."""

import numpy as np
import pytest
from ptx_runner import HEADER, array, call_of, out, output, run

TEXT = """.visible .entry kern(.param .u64 x, .param .u64 k, .param .u64 out)
{{
  .reg .b32 %i<3>;
  .reg .b64 %a<7>;
  .reg .{t} %f<4>;
  ld.param.u64 %a0, [x];
  ld.param.u64 %a1, [k];
  ld.param.u64 %a2, [out];
  mov.u32 %i0, %tid.x;
  mul.wide.u32 %a3, %i0, {size};
  mul.wide.u32 %a6, %i0, 4;
  add.u64 %a4, %a0, %a3;
  add.u64 %a5, %a1, %a6;
  ld.global.{t} %f0, [%a4];
  ld.global.u32 %i1, [%a5];
  sqrt.rn.{t} %f1, %f0;
  cvt.rn.{t}.u32 %f2, %i1;
  {op}.{t} %f3, {operands};
  add.u64 %a4, %a2, %a3;
  st.global.{t} [%a4], %f3;
  ret;
}}
"""


@pytest.mark.parametrize("level", ["bounds", "all"])
@pytest.mark.parametrize("op", ["min", "max"])
@pytest.mark.parametrize("t", ["f32", "f64"])
@pytest.mark.parametrize("operands", ["%f1, %f2", "%f2, %f1"])
def test_a_nan_beside_a_converted_integer(level: str, op: str, t: str, operands: str) -> None:
    dtype = np.dtype({"f32": np.float32, "f64": np.float64}[t])
    x = np.array([-2.0, 4.0, 0.0, -0.0, np.nan, np.inf, 9.0, -np.inf], dtype)
    k = np.array([5, 5, 0, 0, 7, 1, 1, 0], np.uint32)
    text = HEADER + TEXT.format(t=t, size=dtype.itemsize, op=op, operands=operands)
    done = run(
        text, call_of([array("x", x), array("k", k), out("out", dtype.name, 8)], (1,), (8,)), {"x": x, "k": k}, level
    )
    root = np.array([np.nan, 2, 0.0, -0.0, np.nan, np.inf, 3, np.nan], dtype)
    want = {"min": np.fmin, "max": np.fmax}[op](root, k.astype(dtype))
    want[3] = -0.0 if op == "min" else 0.0
    got = output(done, "out", dtype.name)
    assert got.tobytes() == want.tobytes()
