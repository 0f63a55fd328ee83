"""Generated values: deterministic, of the right kind, and sharp where they claim to be."""

import hashlib
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kerneltrial.inputs.cases import check_cases, read_cases
from kerneltrial.inputs.contracts import array_shapes, check_contract, read_contract
from kerneltrial.inputs.dtypes import epsilon, item_bytes, narrow, next_lower, numpy_dtype, widen
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.inputs.values import ROTATION, draw_names, from_bytes, generate, reduction_span, to_bytes
from kerneltrial.records.case import Case, Cases, Distribution, Generated, Stored
from kerneltrial.records.contract import Array, Contract, Range, Tolerance
from kerneltrial.records.plan import DType

CLONE = Path(__file__).resolve().parents[3]
MATMUL = read_contract(CLONE / "kernels/matmul_f32/contract.yaml")
DIMENSIONS = {"m": 31, "n": 37, "k": 29}


def case(distribution: Distribution = Distribution.NORMAL, name: str = "one", **dimensions: int) -> Case:
    source = Generated(distribution=distribution)
    return Case(
        name=name, kind="correctness", dimensions=dimensions or DIMENSIONS, seed=7, inputs={"a": source, "b": source}
    )


def plain_case() -> Case:
    return Case(name="one", kind="correctness", dimensions=DIMENSIONS, seed=7)


def vector(dtype: DType, low: str | None = None, high: str | None = None) -> Contract:
    return Contract(
        name="vector",
        description="",
        arguments=(
            Array(
                name="a",
                role="input",
                dtype=dtype,
                shape=("n",),
                low=None if low is None else Decimal(low),
                high=None if high is None else Decimal(high),
            ),
            Array(name="c", role="output", dtype=dtype, shape=("n",)),
        ),
        dimensions={"n": Range(minimum=1, maximum=100000)},
        tolerances={"c": Tolerance()},
        operations="n",
        bytes="8*n",
    )


def drawn(contract: Contract, distribution: Distribution, n: int = 1000) -> Any:
    one = Case(name="one", kind="correctness", dimensions={"n": n}, inputs={"a": Generated(distribution=distribution)})
    return generate(contract, one, 0)["a"]


def test_values_are_the_same_in_another_process() -> None:
    script = (
        "from kerneltrial.inputs.values import generate; from kerneltrial.records.case import Case; import hashlib;"
        "from kerneltrial.inputs.contracts import read_contract; from pathlib import Path;"
        f"c = read_contract(Path({str(CLONE / 'kernels/matmul_f32/contract.yaml')!r}));"
        f"k = Case(name='one', kind='correctness', dimensions={DIMENSIONS!r}, seed=7);"
        "print(hashlib.sha256(b''.join(v.tobytes() for d in range(7) for v in generate(c, k, d).values())).hexdigest())"
    )
    runs = {
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout for _ in "ab"
    }
    assert len(runs) == 1
    here = [v.tobytes() for draw in range(7) for v in generate(MATMUL, plain_case(), draw).values()]
    assert runs == {hashlib.sha256(b"".join(here)).hexdigest() + "\n"}


def test_every_draw_case_seed_and_argument_has_its_own_values() -> None:
    plain = Case(name="one", kind="correctness", dimensions={"m": 8, "n": 8, "k": 8}, seed=7)
    others = [
        generate(MATMUL, plain, 0)["a"],
        generate(MATMUL, plain, 0)["b"],
        generate(MATMUL, plain, 5)["a"],
        generate(MATMUL, Case(name="two", kind="correctness", dimensions=plain.dimensions, seed=7), 0)["a"],
        generate(MATMUL, Case(name="one", kind="correctness", dimensions=plain.dimensions, seed=8), 0)["a"],
    ]
    assert len({values.tobytes() for values in others}) == len(others)


def test_outputs_are_not_generated() -> None:
    values = generate(MATMUL, case(), 0)
    assert {name: v.shape for name, v in values.items()} == {"a": (31, 29), "b": (29, 37)}
    assert all(v.dtype == np.float32 for v in values.values())


def test_draws_rotate_and_have_names() -> None:
    assert draw_names(case(), 5) == ("own", "integers_1", "offset_2", "wide_3", "ties_4")
    assert draw_names(case(Distribution.ZEROS), 8)[0] == "zeros_0"
    assert draw_names(case(), 7)[6] == "zeros_6"
    assert set(ROTATION) == set(Distribution)
    names = draw_names(case(), 13)
    assert len(set(names)) == 13
    for draw, name in enumerate(names):
        assert (not np.any(generate(MATMUL, case(), draw)["a"])) == name.startswith("zeros")


def test_a_draw_is_what_its_name_says() -> None:
    own = generate(MATMUL, case(Distribution.OFFSET), 0)["a"]
    assert 900 < own.mean() < 1100
    assert own.std() < 2
    wide = np.abs(generate(MATMUL, case(Distribution.WIDE), 0)["a"])
    assert wide.max() / wide.min() > 2**30
    ties = generate(MATMUL, case(Distribution.TIES), 0)["a"]
    plain = ties[np.isfinite(ties) & ((ties == 0) | (np.abs(ties) > 2.0**-126))]  # all but the contract's specials
    assert len(np.unique(plain)) <= 7
    assert ties.size - 4 - ties.shape[1] <= plain.size < ties.size  # some values, and one line


@pytest.mark.parametrize(("m", "n", "k"), [(31, 37, 29), (5, 7, 1031), (3, 3, 8192), (1, 1, 1)])
@pytest.mark.parametrize("name", ["one", "two", "three"])
def test_integers_are_exact_in_float32_and_in_nothing_narrower(m: int, n: int, k: int, name: str) -> None:
    values = generate(MATMUL, case(Distribution.INTEGERS, name, m=m, n=n, k=k), 0)
    a, b = values["a"].astype(np.float64), values["b"].astype(np.float64)
    assert np.all(a == np.round(a))
    assert np.all(b == np.round(b))
    assert (np.abs(a) @ np.abs(b)).max() < 2**24  # so every partial sum, in every order, is exact
    large = [np.abs(x) > 2**11 for x in (a, b)]
    assert sum(bool(x.any()) for x in large) <= 1
    sharp, mask = (a, large[0]) if large[0].any() else (b, large[1])
    if m * k < 30:
        return
    assert mask.any()
    assert np.all(sharp[mask] % 2 == 1)
    assert np.all(np.abs(sharp[mask]) < 2**12)
    assert np.all(sharp[mask] != sharp[mask].astype(np.float16).astype(np.float64))


def test_integers_tell_tf32_and_half_from_float32() -> None:
    caught = 0
    for name in ("one", "two", "three", "four"):
        values = generate(MATMUL, case(Distribution.INTEGERS, name), 0)
        a, b = values["a"].astype(np.float64), values["b"].astype(np.float64)
        for round_to in (_tf32, lambda x: x.astype(np.float16).astype(np.float64)):
            assert np.any(round_to(a) @ round_to(b) != a @ b)
            caught += 1
    assert caught == 8


def test_small_values_have_squares_of_the_size_of_an_epsilon() -> None:
    values = drawn(vector("float32"), Distribution.SMALL, 20_000).astype(np.float64)
    assert 3e-5 < np.mean(values**2) < 1e-4
    pixels = drawn(vector("uint8", "0", "255"), Distribution.SMALL, 20_000)
    assert pixels.min() == 0
    assert 10 < pixels.max() < 20


def test_outliers_are_few_and_far_and_begin_every_second_line() -> None:
    values = np.abs(generate(MATMUL, case(Distribution.OUTLIERS, m=400, k=500, n=1), 0)["a"])
    far = values > 32
    assert 0.001 < far[:, 1:].mean() < 0.01
    assert 0.2 < far[:, 0].mean() < 0.5
    assert values.max() <= 2048
    pixels = drawn(vector("uint8", "0", "255"), Distribution.OUTLIERS, 20_000)
    assert pixels.max() == 255
    assert np.mean(pixels < 20) > 0.98


def test_smooth_values_are_near_their_neighbours_and_reach_both_ends() -> None:
    of = read_contract(CLONE / "kernels/sad_search_u8/contract.yaml")
    one = Case(
        name="one",
        kind="correctness",
        dimensions={"down": 6, "across": 9},
        inputs={name: Generated(distribution=Distribution.SMOOTH) for name in ("picture", "reference")},
    )
    picture, reference = (generate(of, one, 0)[name].astype(int) for name in ("picture", "reference"))
    for axis in (0, 1):
        assert np.mean(np.abs(np.diff(picture, axis=axis)) < 20) > 0.9
    assert min(np.mean(picture == 0), np.mean(picture == 255)) > 0.01
    moved = [
        np.abs(picture - reference[dy : dy + picture.shape[0], dx : dx + picture.shape[1]]).mean()
        for dy in range(17)
        for dx in range(17)
    ]
    assert max(moved) > 4 * min(moved)


def _tf32(values: Any) -> Any:
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)


def test_over_cases_every_float_input_is_the_sharp_one() -> None:
    sharp = set()
    for number in range(20):
        values = generate(MATMUL, case(Distribution.INTEGERS, f"case{number}"), 0)
        sharp |= {name for name, v in values.items() if np.abs(v).max() > 2**11}
    assert sharp == {"a", "b"}


def test_the_reduction_length_covers_a_dot_product() -> None:
    dimensions = {"m": 3, "n": 5, "k": 1000}
    assert reduction_span(MATMUL, dimensions, array_shapes(MATMUL, dimensions)) >= 1000


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("distribution", list(Distribution))
def test_floats_are_finite_in_every_type(dtype: DType, distribution: Distribution) -> None:
    values = drawn(vector(dtype), distribution)
    assert values.dtype == numpy_dtype(dtype)
    wide = widen(values, dtype)
    assert np.all(np.isfinite(wide))
    assert np.any(wide) == (distribution is not Distribution.ZEROS)
    lower = next_lower(dtype)
    if distribution is Distribution.INTEGERS and lower is not None and dtype != "float64":
        assert np.any(widen(narrow(wide, lower), lower) != wide)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("distribution", list(Distribution))
def test_integers_fit_every_type(dtype: DType, distribution: Distribution) -> None:
    values = drawn(vector(dtype), distribution)
    assert values.dtype == numpy_dtype(dtype)
    assert np.any(values) == (distribution is not Distribution.ZEROS)


@pytest.mark.parametrize("distribution", list(Distribution))
@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        ("float32", "0", None),
        ("float32", None, "-1.5"),
        ("float32", "-1", "1"),
        ("float32", "100", "200"),
        ("float32", "0.25", "0.25"),
        ("int32", "0", "9999"),
        ("uint64", "18446744073709551000", None),
        ("int64", "500", None),
        ("int8", None, "-100"),
        ("int32", "3", "3"),
    ],
)
def test_bounds_of_the_contract_are_kept(
    distribution: Distribution, dtype: DType, low: str | None, high: str | None
) -> None:
    values = drawn(vector(dtype, low, high), distribution)
    least, most = min(values.tolist()), max(values.tolist())
    assert low is None or Decimal(least) >= Decimal(low)
    assert high is None or Decimal(most) <= Decimal(high)
    if low != high and distribution not in (Distribution.ZEROS, Distribution.TIES):
        assert len(np.unique(values)) > 2


def test_an_index_covers_its_whole_range() -> None:
    values = drawn(vector("int32", "0", "9999"), Distribution.NORMAL)
    assert values.max() > 9000
    assert values.min() < 1000


def _csr(**changes: Any) -> Contract:
    """Row offsets and column indices of a CSR matrix, as a contract bounds them."""
    zero = Decimal(0)
    offsets = {"dtype": "int32", "shape": ("rows + 1",), "low": zero, "below": "count + 1", "ascending": True}
    return Contract(
        name="csr",
        description="",
        arguments=(
            Array(**{"name": "offsets", "role": "input", **offsets, **changes}),
            Array(name="columns", role="input", dtype="int32", shape=("count",), low=zero, below="cols"),
            Array(name="y", role="output", dtype="int32", shape=("rows",)),
        ),
        dimensions={name: Range(minimum=1, maximum=500) for name in ("rows", "cols", "count")},
        tolerances={"y": Tolerance()},
        operations="count",
        bytes="count",
    )


@pytest.mark.parametrize("dimensions", [{"rows": 40, "cols": 7, "count": 300}, {"rows": 1, "cols": 1, "count": 1}])
def test_bounds_that_depend_on_dimensions_and_offsets_that_never_fall(dimensions: dict[str, int]) -> None:
    contract = _csr()
    check_contract(contract)
    the_case = Case(name="one", kind="correctness", dimensions=dimensions)
    for draw in range(7):
        values = generate(contract, the_case, draw)
        offsets, columns = values["offsets"], values["columns"]
        assert (offsets[0], offsets[-1]) == (0, dimensions["count"])
        assert (np.diff(offsets) >= 0).all()
        assert columns.min() >= 0
        assert columns.max() < dimensions["cols"]
    assert len({generate(contract, the_case, draw)["columns"].tobytes() for draw in range(5)}) > 1 or columns.size == 1


@pytest.mark.parametrize(
    ("values", "word"), [([0, 2, 1, 3], "must not fall"), ([1, 1, 2, 3], "from 0 to 3"), ([0, 1, 2, 4], "bound 3")]
)
def test_stored_offsets_must_keep_the_contract(tmp_path: Path, values: list[int], word: str) -> None:
    np.save(tmp_path / "offsets.npy", np.array(values, np.int32))
    sha256 = hashlib.sha256((tmp_path / "offsets.npy").read_bytes()).hexdigest()
    one = Case(
        name="one",
        kind="correctness",
        dimensions={"rows": 3, "cols": 5, "count": 3},
        inputs={"offsets": Stored(path="offsets.npy", sha256=sha256)},
    )
    with pytest.raises(InputProblem, match=word):
        check_cases(Cases(cases=(one,)), _csr(), tmp_path / "cases.yaml")


def test_one_bound_does_not_pile_values_up() -> None:
    values = drawn(vector("float32", "0"), Distribution.NORMAL)
    assert np.mean(values == 0) < 0.01


def test_stored_values_are_used_for_draw_0_only(trial: Any) -> None:
    values = np.arange(31 * 29, dtype=np.float32).reshape(31, 29)
    path = trial.path("cases/matmul_f32/a.npy")
    np.save(path, values)
    source = {"from": "file", "path": "a.npy", "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    trial.edit("cases/matmul_f32/cases.yaml", cases__0__inputs={"a": source})
    one = read_cases(trial.path("cases/matmul_f32/cases.yaml")).cases[0]
    assert np.array_equal(generate(MATMUL, one, 0, path.parent)["a"], values)
    assert not np.array_equal(generate(MATMUL, one, 1)["a"], values)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "uint32", "int64", "uint64"])
def test_bytes_there_and_back(dtype: DType) -> None:
    values = drawn(vector(dtype), Distribution.NORMAL, 17)
    content = to_bytes(values, dtype)
    assert len(content) == 17 * item_bytes(dtype)
    assert np.array_equal(from_bytes(content, dtype, (17,)), values)
    with pytest.raises(ValueError, match="reshape"):
        from_bytes(content, dtype, (18,))
    with pytest.raises(ValueError, match="needs"):
        to_bytes(values.astype(np.complex128), dtype)


def test_bfloat16_rounds_to_nearest_even_and_keeps_what_is_not_finite() -> None:
    given = np.array([1.0, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, -0.0, np.inf, -np.inf, 3.4e38, 1e-40])
    bits = narrow(given, "bfloat16")
    wide = widen(bits, "bfloat16")
    assert wide[:4].tolist() == [1.0, 1.0, 1 + 2**-6, 1 + 2**-7]
    assert np.signbit(wide[4])
    assert wide[5] == np.inf
    assert wide[6] == -np.inf
    assert wide[7] == np.inf
    assert abs(wide[8] - 1e-40) <= 2**-134  # half a step among its smallest
    assert np.isnan(widen(narrow(np.array([np.nan]), "bfloat16"), "bfloat16"))[0]
    every = np.arange(2**16, dtype=np.uint16)
    back = narrow(widen(every, "bfloat16"), "bfloat16")
    finite = ~np.isnan(widen(every, "bfloat16"))
    assert np.array_equal(back[finite], every[finite])


def test_epsilon_is_the_step_above_one() -> None:
    for dtype in ("float16", "float32", "float64"):
        assert epsilon(dtype) == float(np.finfo(dtype).eps)
    assert widen(narrow(np.array([1 + epsilon("bfloat16")]), "bfloat16"), "bfloat16")[0] > 1
    assert epsilon("int32") == 0


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_wide_integers_without_bounds_take_the_whole_type(dtype: DType) -> None:
    """So a narrower integer inside, or a value left out at the ends of the type, shows."""
    limits = np.iinfo(dtype)
    values = drawn(vector(dtype), Distribution.WIDE)
    assert values.min() == limits.min
    assert values.max() == limits.max
    reach = [int(limits.min) // 2, int(limits.max) // 2]
    assert np.mean((values < reach[0]) | (values > reach[1])) > 0.3
    assert len(np.unique(values)) > min(200, limits.max)
    assert np.abs(drawn(vector(dtype), Distribution.NORMAL).astype(np.float64)).max() <= 100


def test_wide_integers_keep_the_bounds_that_are_stated() -> None:
    both = drawn(vector("int32", "3", "40"), Distribution.WIDE)
    assert (both.min(), both.max()) == (3, 40)
    low = drawn(vector("int32", low="0"), Distribution.WIDE)
    assert (low.min(), low.max()) == (0, np.iinfo(np.int32).max)
    high = drawn(vector("int32", high="7"), Distribution.WIDE)
    assert (high.min(), high.max()) == (np.iinfo(np.int32).min, 7)
