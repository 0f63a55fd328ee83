"""Comparison with the oracle: bounds, infinities, precision beside the baseline, and words for the place."""

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kerneltrial.judge.compare import Compared, Expected, compare
from kerneltrial.judge.precision import decode, lower_precision, rounded, to_significand, ulps_apart
from kerneltrial.records.contract import Tolerance
from kerneltrial.records.reason import Reason


def expected(want: Any, dtype: Any = "float32", terms: Any = None, **tolerance: str) -> Expected:
    numbers = {name: Decimal(value) for name, value in tolerance.items()}
    return Expected(name="C", dtype=dtype, want=np.asarray(want), terms=terms, tolerance=Tolerance(**numbers))


def reason(compared: Compared) -> Reason | None:
    return None if compared.finding is None else compared.finding.reason


def test_an_error_at_the_bound_passes_and_one_beyond_it_fails() -> None:
    rule = expected([100.0, 1.0], absolute="0.5", relative="0.01")
    assert reason(compare(np.array([101.5, 1.0]), rule, None)) is None
    failed = compare(np.array([101.6, 1.0]), rule, None)
    assert reason(failed) is Reason.WRONG_VALUES
    assert failed.worst_index == (0,)
    assert failed.bound_share == pytest.approx(1.6 / 1.5)
    assert failed.finding is not None
    assert "1 of 2 elements" in failed.finding.detail
    assert "ULPs apart" in failed.finding.detail


def test_a_small_absolute_error_does_not_excuse_another_element() -> None:
    """Each element has to keep its own bound: one large element must not carry the others."""
    rule = expected([1e6, 1e-3], relative="1e-6")
    assert reason(compare(np.array([1e6, 2e-3]), rule, None)) is Reason.WRONG_VALUES


def test_the_sum_of_terms_scales_the_bound() -> None:
    terms = np.array([1000.0])
    eps = 2.0**-23
    rule = expected([0.0], terms=terms, scaled="4")
    assert reason(compare(np.array([3.9 * eps * 1000]), rule, None)) is None
    assert reason(compare(np.array([4.1 * eps * 1000]), rule, None)) is Reason.WRONG_VALUES


@pytest.mark.parametrize(
    ("want", "got"),
    [
        ([1.0, 2.0], [1.0, np.nan]),
        ([1.0, np.nan], [1.0, 2.0]),
        ([1.0, np.inf], [1.0, -np.inf]),
        ([1.0, 2.0], [1.0, np.inf]),
        ([1.0, np.inf], [1.0, np.nan]),
        ([1.0, 1e39], [1.0, 3e38]),
    ],
)
def test_nonfinite_numbers_stand_where_the_oracle_has_them(want: list[float], got: list[float]) -> None:
    generous = expected(want, absolute="1e300")
    assert reason(compare(np.array(got), generous, None)) is Reason.WRONG_NONFINITE


def test_an_answer_beyond_the_range_is_infinite_in_the_dtype() -> None:
    assert reason(compare(np.array([np.inf, -np.inf, np.nan]), expected([1e39, -1e39, np.nan]), None)) is None
    assert reason(compare(np.array([np.inf]), expected([65520.0], dtype="float16"), None)) is None
    assert reason(compare(np.array([np.inf]), expected([3.4e38], dtype="float16"), None)) is None
    assert reason(compare(np.array([3.39e38]), expected([3.39e38], dtype="bfloat16", relative="0.01"), None)) is None
    assert reason(compare(np.array([np.inf]), expected([3.4e38], dtype="bfloat16"), None)) is None


def test_integers_are_exact() -> None:
    want = np.array([2**53 + 1, 5], np.int64)
    assert reason(compare(want.copy(), expected(want, dtype="int64", absolute="100"), None)) is None
    off = compare(want - np.array([1, 0]), expected(want, dtype="int64", absolute="100"), None)
    assert reason(off) is Reason.WRONG_VALUES
    assert off.worst_error == 1.0


def matmul(length: int, distribution: str) -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(7)
    shape_a, shape_b = (48, length), (length, 40)
    if distribution == "offset":
        return 100 + 0.1 * rng.standard_normal(shape_a), 100 + 0.1 * rng.standard_normal(shape_b)
    return rng.standard_normal(shape_a), rng.standard_normal(shape_b)


def sequential(a: NDArray[Any], b: NDArray[Any], order: Any) -> NDArray[Any]:
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for k in order:
        total += a[:, k : k + 1] * b[k : k + 1]
    return total


@pytest.mark.parametrize("distribution", ["normal", "offset"])
@pytest.mark.parametrize("length", [1, 29, 320, 1000])
def test_reordered_sums_pass_and_tf32_or_half_do_not(length: int, distribution: str) -> None:
    a, b = (x.astype(np.float32) for x in matmul(length, distribution))
    exact_a, exact_b = a.astype(np.float64), b.astype(np.float64)
    terms = np.abs(exact_a) @ np.abs(exact_b)
    rule = expected(exact_a @ exact_b, terms=terms, absolute="1e6")
    baseline = compare(sequential(a, b, range(length)).astype(np.float64), rule, None).measure
    blocked = sum((a[:, k : k + 8] @ b[k : k + 8] for k in range(0, length, 8)), np.zeros((48, 40), np.float32))
    for honest in (sequential(a, b, reversed(range(length))), blocked, a @ b):
        assert reason(compare(honest.astype(np.float64), rule, baseline)) is None
    tf32 = to_significand(exact_a, 11) @ to_significand(exact_b, 11)
    assert reason(compare(rounded(tf32, "float32"), rule, baseline)) is Reason.PRECISION_LOSS
    half = exact_a.astype(np.float16).astype(np.float64) @ exact_b.astype(np.float16).astype(np.float64)
    assert reason(compare(rounded(half, "float32"), rule, baseline)) is Reason.PRECISION_LOSS


def test_precision_without_terms_is_measured_against_the_outputs_own_size() -> None:
    """An output that cancels to almost nothing has a huge relative error in any order: that alone is no loss."""
    want = np.array([1e-6, 3.0, -4.0])
    rule = expected(want, absolute="1")
    assert reason(compare(want + np.array([2e-7, 0, 0]), rule, 0.1)) is None
    assert reason(compare(want * (1 + 2.0**-11), rule, 0.1)) is Reason.PRECISION_LOSS


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_decoding_keeps_every_bit(dtype: Any) -> None:
    size = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}[dtype]
    raw = np.random.default_rng(1).integers(0, 256, 400 * size, np.uint8).tobytes()
    values = decode(raw, dtype, (20, 20))
    finite = values[np.isfinite(values)]
    assert np.array_equal(rounded(finite, dtype), finite)
    lower = lower_precision(finite, dtype)
    assert np.any(lower != finite)


def test_bfloat16_decodes_to_its_numbers() -> None:
    bits = np.array([0x3F80, 0xC000, 0x7F80, 0x0001], np.uint16)
    assert decode(bits.tobytes(), "bfloat16", (4,)).tolist() == [1.0, -2.0, np.inf, 2.0**-133]


def test_ulps() -> None:
    assert ulps_apart(1.0 + 2.0**-23, 1.0, "float32") == 1
    assert ulps_apart(-(2.0**-149), 2.0**-149, "float32") == 2
    assert ulps_apart(1.0, 1.0 + 2.0**-8, "bfloat16") == 0
    assert ulps_apart(1.0, 1.0 + 2.0**-7, "bfloat16") == 1
    assert ulps_apart(float("nan"), 1.0, "float32") is None
    assert ulps_apart(3.0, 1.0, "int32") is None


def test_records_hold_no_infinity() -> None:
    compared = compare(np.array([1.0, np.inf]), expected([0.0, 1.0]), None)
    assert all(np.isfinite(x) for x in (compared.worst_error, compared.bound_share, compared.measure))


def test_another_shape_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="shape"):
        compare(np.zeros((2, 3)), expected(np.zeros((3, 2))), None)


@pytest.mark.parametrize("terms", [np.nan, np.inf])
def test_terms_that_are_no_number_allow_nothing(terms: float) -> None:
    rule = expected([1.0, 2.0], terms=np.array([terms, 100.0]), scaled="64")
    assert reason(compare(np.array([1.5, 2.0]), rule, None)) is Reason.WRONG_VALUES
    assert reason(compare(np.array([1.0, 2.0]), rule, None)) is None


def test_no_elements_are_no_error() -> None:
    assert reason(compare(np.zeros((0, 3)), expected(np.zeros((0, 3))), 1.0)) is None


def test_an_error_where_none_is_allowed_counts() -> None:
    exact = expected([0.0, 5.0])
    assert reason(compare(np.array([5e-324, 5.0]), exact, None)) is Reason.WRONG_VALUES
    assert reason(compare(np.array([-0.0, 5.0]), exact, None)) is None


def test_where_the_baseline_is_exact_a_candidate_is_too() -> None:
    """Sums of small integers come out exactly in any order, so a few ULPs are a wrong constant there."""
    want = np.arange(1.0, 101.0)
    rule = expected(want, terms=want, scaled="64")
    few = want * (1 + 4 * 2.0**-23)
    assert reason(compare(few, rule, 0.0)) is Reason.PRECISION_LOSS
    assert reason(compare(want * (1 + 2.0**-23), rule, 0.0)) is None
    assert reason(compare(few, rule, 0.3)) is None
    assert reason(compare(few[:10], expected(want[:10], terms=want[:10], scaled="64"), 0.0)) is None


def test_what_no_number_of_the_type_can_hold_is_zero() -> None:
    """A product of two subnormals underflows to zero in every kernel; a subnormal that is flushed is wrong."""
    tiny = expected([1e-77, 2.0**-128], terms=np.array([1e-77, 2.0**-128]), scaled="64")
    assert reason(compare(np.array([0.0, 2.0**-128]), tiny, 0.0)) is None
    assert reason(compare(np.array([0.0, 0.0]), tiny, 0.0)) is Reason.WRONG_VALUES
    assert compare(np.array([0.0, 2.0**-128]), tiny, None).measure <= 1.0
    exact = expected([2.0**-149, 1.0])
    assert reason(compare(np.array([0.0, 1.0]), exact, None)) is Reason.WRONG_VALUES


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_the_sign_of_a_zero_counts_where_the_contract_says_so(dtype: Any) -> None:
    want, got = np.array([1.0, -0.0, 0.0]), np.array([1.0, 0.0, 0.0])
    lax = Expected(name="C", dtype=dtype, want=want, terms=None, tolerance=Tolerance(absolute=Decimal(1)))
    strict_tolerance = Tolerance(absolute=Decimal(1), signed_zero=True)
    strict = Expected(name="C", dtype=dtype, want=want, terms=None, tolerance=strict_tolerance)
    assert reason(compare(got, lax, None)) is None
    assert reason(compare(want, strict, None)) is None
    told = compare(got, strict, None)
    assert reason(told) is Reason.WRONG_VALUES
    assert told.finding is not None
    assert "1 of 3 elements" in told.finding.detail
    assert "worst at [1]: expected -0.0, got 0.0" in told.finding.detail


def test_a_larger_fault_is_told_before_the_sign_of_a_zero() -> None:
    strict = Expected(
        name="C", dtype="float32", want=np.array([-0.0, 5.0]), terms=None, tolerance=Tolerance(signed_zero=True)
    )
    told = compare(np.array([0.0, 7.0]), strict, None)
    assert told.worst_index == (1,)
    assert told.finding is not None
    assert "2 of 2 elements" in told.finding.detail
