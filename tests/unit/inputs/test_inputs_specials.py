"""Special values: those that the contract allows, few, and answered by the shipped oracles as IEEE says."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from kerneltrial.inputs.contracts import check_contract, read_contract
from kerneltrial.inputs.dtypes import smallest, widen
from kerneltrial.inputs.oracle import load
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.inputs.values import generate
from kerneltrial.records.case import Case, Distribution, Generated
from kerneltrial.records.contract import Array, Contract, Range, Special, Tolerance
from kerneltrial.records.plan import DType

CLONE = Path(__file__).resolve().parents[3]
ALL: tuple[Special, ...] = ("nan", "inf", "-inf", "subnormal", "huge")
LEAST_NORMAL = {"float16": 2.0**-14, "bfloat16": 2.0**-126, "float32": 2.0**-126, "float64": 2.0**-1022}
LARGEST = {"float16": 65504.0, "bfloat16": 3.3895e38, "float32": 3.4029e38, "float64": 1.7976e308}


def contract(dtype: DType = "float32", outputs: str = "n", **of_input: Any) -> Contract:
    return Contract(
        name="vector",
        description="",
        arguments=(
            Array(name="x", role="input", dtype=dtype, shape=("n",), **of_input),
            Array(name="y", role="output", dtype=dtype, shape=(outputs,)),
        ),
        dimensions={"n": Range(minimum=1, maximum=10**6)},
        tolerances={"y": Tolerance()},
        operations="n",
        bytes="8*n",
    )


def drawn(
    of: Contract, distribution: Distribution = Distribution.TIES, n: int = 50_000, name: str = "one"
) -> np.ndarray:
    source = {"x": Generated(distribution=distribution)}
    case = Case(name=name, kind="correctness", dimensions={"n": n}, inputs=source)
    return widen(generate(of, case, 0)["x"], of.arrays[0].dtype)


def kinds(values: np.ndarray, dtype: DType) -> set[str]:
    size = np.abs(values[np.isfinite(values)])
    there = {
        "nan": np.isnan(values),
        "inf": values == np.inf,
        "-inf": values == -np.inf,
        "subnormal": (size > 0) & (size < LEAST_NORMAL[dtype]),
        "huge": (size > LARGEST[dtype] / 4) & (size <= LARGEST[dtype]),
    }
    return {name for name, mask in there.items() if mask.any()}


@pytest.mark.parametrize("dtype", LEAST_NORMAL)
def test_each_kind_comes_in_every_type_and_most_values_are_plain(dtype: DType) -> None:
    values = drawn(contract(dtype, specials=ALL))
    assert kinds(values, dtype) == set(ALL)
    plain = np.isin(values, (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0))
    assert 0.99 < plain.mean() < 1


@pytest.mark.parametrize("kind", ALL)
def test_only_what_is_allowed_comes(kind: Special) -> None:
    assert kinds(drawn(contract(specials=(kind,))), "float32") == {kind}
    assert kinds(drawn(contract()), "float32") == set()


def test_other_draws_have_none() -> None:
    for distribution in set(Distribution) - {Distribution.TIES}:
        assert kinds(drawn(contract(specials=ALL), distribution), "float32") == set()


def test_one_output_sees_one_kind_and_cases_together_see_all() -> None:
    of = contract(outputs="1", specials=ALL)
    seen = [kinds(drawn(of, name=f"case_{number}"), "float32") for number in range(40)]
    assert all(len(one) == 1 for one in seen)
    assert set().union(*seen) == set(ALL)


def test_a_single_element_may_be_special() -> None:
    assert len(kinds(drawn(contract(specials=ALL), n=1), "float32")) <= 1


def plane(shape: tuple[str, ...], out: tuple[str, ...]) -> Contract:
    return msgspec.structs.replace(
        contract(),
        arguments=(
            Array(name="x", role="input", dtype="float32", shape=shape, specials=ALL),
            Array(name="y", role="output", dtype="float32", shape=out),
        ),
        dimensions={name: Range(minimum=1, maximum=10**4) for name in ("rows", "cols")},
        operations="rows * cols",
    )


def lines(of: Contract, rows: int, cols: int, name: str = "one") -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns that are one number throughout."""
    case = Case(
        name=name,
        kind="correctness",
        dimensions={"rows": rows, "cols": cols},
        inputs={"x": Generated(distribution=Distribution.TIES)},
    )
    x = generate(of, case, 0)["x"].astype(np.float64)
    same = [np.array([len(np.unique(line)) == 1 for line in plane]) for plane in (x, x.T)]
    return x[same[0], 0], x[0, same[1]]


def test_whole_rows_are_of_one_kind_where_each_row_has_an_answer_of_its_own() -> None:
    """A row that is masked throughout, a sum of subnormals alone."""
    for out in (("rows", "cols"), ("rows",)):
        rows, columns = lines(plane(("rows", "cols"), out), 300, 40)
        assert kinds(rows, "float32") == set(ALL)
        assert len(rows) == len(ALL)
        assert len(columns) == 0


def test_whole_columns_are_where_each_column_has_one() -> None:
    rows, columns = lines(plane(("rows", "cols"), ("cols",)), 40, 300)
    assert len(rows) == 0
    assert kinds(columns, "float32") == set(ALL)


def test_few_rows_have_one_of_one_kind_and_fewer_none() -> None:
    of = plane(("rows", "cols"), ("rows", "cols"))
    seen = [lines(of, 9, 40, f"case_{number}")[0] for number in range(40)]
    assert {len(rows) for rows in seen} == {1}
    assert kinds(np.concatenate(seen), "float32") == set(ALL)
    assert len(lines(of, 7, 40)[0]) == 0


def test_no_line_is_of_one_kind_where_it_would_spoil_every_answer() -> None:
    rows, columns = lines(plane(("rows", "cols"), ("1",)), 300, 300)
    assert len(rows) == len(columns) == 0


@pytest.mark.parametrize(
    ("of_input", "words"),
    [
        ({"specials": ("nan", "nan")}, "names one twice"),
        ({"specials": ("huge",), "high": Decimal(3)}, "huge contradicts the bounds"),
        ({"specials": ("subnormal",), "low": Decimal(0)}, "contradict the bounds"),
        ({"specials": ("-0",), "low": Decimal(1)}, "-0 contradicts the bounds"),
        ({"specials": ("nan",), "dtype": "int32"}, "only inputs of a float type"),
    ],
)
def test_contradictions_are_told(of_input: dict[str, Any], words: str) -> None:
    with pytest.raises(InputProblem, match=words):
        check_contract(contract(**of_input))


def test_an_output_has_no_specials() -> None:
    told = Array(name="y", role="output", dtype="float32", shape=("n",), specials=("nan",))
    of = msgspec.structs.replace(contract(), arguments=(contract().arguments[0], told))
    with pytest.raises(InputProblem, match="only inputs"):
        check_contract(of)


def signed(**of_input: Any) -> Contract:
    return msgspec.structs.replace(contract(**of_input), tolerances={"y": Tolerance(signed_zero=True)})


@pytest.mark.parametrize("dtype", LEAST_NORMAL)
def test_where_the_sign_of_zero_counts_half_of_the_zeros_are_negative(dtype: DType) -> None:
    values = drawn(signed(dtype=dtype))
    zeros = values == 0
    assert 0.4 < np.signbit(values[zeros]).mean() < 0.6
    plain = drawn(contract(dtype))
    assert not np.signbit(plain[plain == 0]).any()
    assert (values[~zeros] == plain[~zeros]).all()


def test_negative_zero_can_be_asked_for_and_keeps_to_the_bounds() -> None:
    asked = drawn(contract(specials=("-0",), low=Decimal(-3), high=Decimal(3)))
    assert np.signbit(asked[asked == 0]).any()
    without = drawn(signed(low=Decimal(1), high=Decimal(3)))
    assert without.min() >= 1
    other = drawn(signed(), Distribution.WIDE)
    assert not ((other == 0) & np.signbit(other)).any()


def test_one_output_sees_negative_zero_too() -> None:
    values = [drawn(signed(outputs="1", specials=("nan",)), name=f"case_{n}") for n in range(40)]
    seen = [bool((np.signbit(v) & (v == 0)).any()) for v in values]
    assert any(seen)
    assert not all(seen)


def test_bounds_and_masking_go_together() -> None:
    values = drawn(contract(specials=("-inf",), low=Decimal(-3), high=Decimal(3)))
    assert (values == -np.inf).any()
    assert np.abs(values[np.isfinite(values)]).max() <= 3


def test_the_product_spreads_specials_as_ieee_does() -> None:
    of = read_contract(CLONE / "kernels/matmul_f32/contract.yaml")
    assert {array.specials for array in of.arrays if array.role == "input"} == {("nan", "inf", "-inf", "subnormal")}
    a = np.array([[np.nan, 1], [np.inf, 0], [1, 2], [np.inf, -np.inf]], np.float32)
    b = np.array([[0, 1], [0, 1]], np.float32)
    answer = load(CLONE / "cases/matmul_f32/oracle.py").answer(of, {"a": a, "b": b}, {"m": 4, "n": 2, "k": 2})
    want = [[np.nan, np.nan], [np.nan, np.inf], [0, 3], [np.nan, np.nan]]
    np.testing.assert_array_equal(answer.outputs["c"], want)


def test_a_masked_column_has_no_share_and_a_row_with_nan_or_infinity_is_nan() -> None:
    of = read_contract(CLONE / "kernels/softmax_f32/contract.yaml")
    assert of.arrays[0].specials == ALL
    x = np.array([[0, -np.inf], [np.nan, 0], [np.inf, 0], [3e38, -3e38]], np.float32)
    answer = load(CLONE / "cases/softmax_f32/oracle.py").answer(of, {"x": x}, {"rows": 4, "cols": 2})
    np.testing.assert_array_equal(answer.outputs["y"], [[1, 0], [np.nan] * 2, [np.nan] * 2, [1, 0]])


def test_the_smallest_number_of_a_type() -> None:
    assert smallest("float32") == float(np.finfo(np.float32).smallest_subnormal)
    assert smallest("float64") == float(np.finfo(np.float64).smallest_subnormal)
    assert smallest("float16") == float(np.finfo(np.float16).smallest_subnormal)
    assert smallest("bfloat16") == 2.0**-133
    assert smallest("int32") == 0.0
