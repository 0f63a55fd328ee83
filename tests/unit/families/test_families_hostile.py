"""Kernels that are wrong by a family's contract and right for most values: each is refused by the case that is for it.

Each is the shipped baseline with one change that a proposer might make for speed; that the baseline itself passes the
same cases is shown by its qualification (test_families.py).
"""

from dataclasses import dataclass

import numpy as np
import pytest
from family_court import CLONE, Family

from kerneltrial.inputs.documents import parse, to_record, with_text_expressions
from kerneltrial.inputs.oracle import load
from kerneltrial.inputs.values import generate
from kerneltrial.judge.compare import Expected, compare
from kerneltrial.judge.precision import epsilon, rounded
from kerneltrial.judge.setup import Subject
from kerneltrial.records.plan import LaunchPlan
from kerneltrial.records.reason import Reason
from kerneltrial.records.validation import Invalid
from kerneltrial.store.canonical import digest

_FTZ = """
__device__ __forceinline__ float without_subnormals(float a, float b)
{
    float product;
    asm("mul.rn.ftz.f32 %0, %1, %2;" : "=f"(product) : "f"(a), "f"(b));
    return product;
}
"""


@dataclass(frozen=True)
class Change:
    """The family, the case that must refuse it, what is replaced in the baseline by what, and the same in its plan."""

    family: str
    case: str
    old: str
    new: str
    plan: tuple[str, str] = ("", "")
    reason: Reason = Reason.WRONG_VALUES
    before: str = ""


HOSTILE = {
    "variance about the row's first value, in one pass": Change(
        "layernorm_residual_f32", "sinks",
        "const float scale = 1.0f / sqrtf(over_block(squares, shared) / cols + 1e-5f);",
        "const float part = mean - h[start]; squares = 0.0f;"
        "for (int i = threadIdx.x; i < cols; i += THREADS)"
        " squares += (h[start + i] - h[start]) * (h[start + i] - h[start]);"
        "const float scale = 1.0f / sqrtf(fmaxf(over_block(squares, shared) / cols - part * part, 0.0f) + 1e-5f);",
    ),
    "nothing added to the variance": Change(
        "layernorm_residual_f32", "quiet", "/ cols + 1e-5f);", "/ cols + 1e-30f);"
    ),
    "GELU by tanh": Change(
        "matmul_bias_gelu_f32", "scaled", "(1.0f + erff(z * 0.70710678f))",
        "(1.0f + tanhf(0.79788456f * (z + 0.044715f * z * z * z)))",
    ),
    "far terms left out": Change(
        "cross_entropy_f32", "sure", "sum += expf(row[i] - maximum);",
        "if (row[i] - maximum > -15.0f) sum += expf(row[i] - maximum);",
    ),
    "a label in 16 bits": Change(
        "cross_entropy_f32", "many_classes", "row[labels[blockIdx.x]]", "row[(unsigned short)labels[blockIdx.x]]"
    ),
    "masked rows are zero": Change(
        "softmax_f32", "narrow", "to[i] = expf(from[i] - maximum) / sum;",
        "to[i] = maximum == __int_as_float(0xff800000) && from[i] == maximum ? 0.0f : expf(from[i] - maximum) / sum;",
        reason=Reason.WRONG_NONFINITE,
    ),
    "sums of subnormals are zero": Change(
        "reduce_rows_f32", "many", "sum += from[i];", "sum += without_subnormals(from[i], 1.0f);", before=_FTZ
    ),
    "-0 becomes 0": Change(
        "transpose_f32", "ragged", "= tile[threadIdx.x][i];", "= 1.0f * tile[threadIdx.x][i] + 0.0f;"
    ),
    "counters of 16 bits": Change(
        "histogram_u8", "one_value", "own[threadIdx.x]);", "own[threadIdx.x] & 0xffff);",
        plan=('"min(ceil_div(n, 2048), 528)"', "4"),
    ),
    "sums before a block in 30 bits": Change(
        "scan_i32", "whole_range", "sums[i] = before + sum - own;", "sums[i] = (before + sum - own) << 2 >> 2;"
    ),
    "a threshold of quantisation off by one": Change(
        "dct8x8_quant_i16", "thresholds", "+ 87381", "+ 87380"
    ),
    "pixels below 0 wrap": Change(
        "deblock_u8", "dark", "p0 = min(max(p0 + delta, 0), 255);", "p0 = min(p0 + delta, 255);"
    ),
    "no motion first, among equals": Change(
        "sad_search_u8", "black", "place[blockIdx.y * across + blockIdx.x] = least & 511;",
        "place[blockIdx.y * across + blockIdx.x] = least >> 9 ? least & 511 : 144;",
    ),
    "sums from 32768 on come before smaller ones": Change(
        "sad_search_u8", "moved", "sum << 9 | threadIdx.x);",
        "sum << 9 | threadIdx.x); __syncthreads(); if (sum >= 32768u) atomicMin(&least, sum - 32768u);",
    ),
}  # fmt: skip


def _family(name: str) -> Family:
    return Family(name, "bounds", file=CLONE / "config_softmax.yaml" if name == "softmax_f32" else None)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_kernel_is_refused_by_the_case_for_it(name: str) -> None:
    change = HOSTILE[name]
    family = _family(change.family)
    source = (family.root / family.config.baseline).read_text()
    plan = (family.root / family.config.baseline).with_suffix(".plan.yaml").read_text()
    assert change.old in source
    assert change.plan[0] in plan
    changed = to_record(with_text_expressions(parse(plan.replace(*change.plan))), LaunchPlan, "changed")
    subject: Subject = family.subject((change.before + source.replace(change.old, change.new)).encode(), changed)
    case = next(case for case in family.cases.cases if case.name == change.case)
    outcome = family.judge(family.cases, 0).judge_subject(digest(name.encode()), subject, (case,))
    assert isinstance(outcome, Invalid), outcome
    assert outcome.reason is change.reason, outcome.detail


CUT_OFF = {
    "matmul_f16": "c",
    "matmul_bf16": "c",
    "diagonal_matmul_f32": "c",
    "layernorm_residual_f32": "h",
    "rmsnorm_residual_f32": "h",
}


@pytest.mark.parametrize("name", CUT_OFF)
def test_where_one_rounding_is_allowed_a_result_that_is_cut_off_is_refused(name: str) -> None:
    """A result is then up to one unit in the last place off, and half a unit where it is rounded to nearest."""
    family = Family(name)
    case = next(case for case in family.cases.cases if case.name == "ragged")
    answer = load(CLONE / family.config.oracle).answer(
        family.contract, generate(family.contract, case, 0), case.dimensions
    )
    expected = next(e for e in Expected.of(family.contract, answer) if e.name == CUT_OFF[name])
    nearest = rounded(expected.want, expected.dtype)
    ulp = np.abs(rounded(nearest * (1 - 0.75 * epsilon(expected.dtype)), expected.dtype) - nearest)
    cut = np.where(np.abs(nearest) > np.abs(expected.want), nearest - np.sign(nearest) * ulp, nearest)
    assert compare(nearest, expected, None).finding is None
    finding = compare(cut, expected, None).finding
    assert finding is not None
    assert finding.reason is Reason.WRONG_VALUES
