"""Contracts, cases and holdout domains: what contradicts itself or another file."""

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kerneltrial.inputs.cases import check_cases, check_room_in_l2, load_stored, read_cases, stored_files
from kerneltrial.inputs.contracts import array_shapes, read_contract
from kerneltrial.inputs.holdout import check_holdout, read_holdout
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.records.case import Stored
from kerneltrial.store.canonical import canonical

CONTRACT = "kernels/matmul_f32/contract.yaml"
CASES = "cases/matmul_f32/cases.yaml"
HOLDOUT = "cases/matmul_f32/holdout.yaml"


INDEX = {"arguments__0__dtype": "int32", "arguments__0__specials": []}  # makes `a` an array of integers


def problem(action: Any) -> str:
    with pytest.raises(InputProblem) as caught:
        action()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_shipped_contract_says_what_it_should(trial: Any) -> None:
    contract = read_contract(trial.path(CONTRACT))
    assert [a.name for a in contract.outputs] == ["c"]
    assert array_shapes(contract, {"m": 2, "n": 3, "k": 5}) == {"a": (2, 5), "b": (5, 3), "c": (2, 3)}


SCALAR = {"kind": "scalar", "name": "alpha", "dtype": "float32"}


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("value", ["1e999999999", "-1e999999999", "1e-999999999", "0e999999999", "9" * 1001])
def test_a_number_that_would_fill_the_memory_is_refused_at_once(trial: Any, dtype: str, value: str) -> None:
    trial.edit(CONTRACT, arguments__3=SCALAR | {"dtype": dtype, "value": value})
    said = problem(lambda: read_contract(trial.path(CONTRACT)))
    assert "arguments.alpha.value" in said
    assert "1e-400 to 1e400" in said
    assert len(said) < 400


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("float32", "1e39"),
        ("float32", "-3.5e38"),
        ("float32", "1e-46"),
        ("float32", "1e400"),
        ("float64", "1e309"),
        ("float64", "1e-330"),
        ("int32", "2147483648"),
        ("int64", "1e19"),
        ("int32", "0.5"),
    ],
)
def test_a_scalar_that_its_type_does_not_hold_is_refused(trial: Any, dtype: str, value: str) -> None:
    trial.edit(CONTRACT, arguments__3=SCALAR | {"dtype": dtype, "value": value})
    said = problem(lambda: read_contract(trial.path(CONTRACT)))
    assert "arguments.alpha" in said
    assert f"does not fit {dtype}" in said


@pytest.mark.parametrize(
    ("dtype", "value"), [("float32", "3.4028234e38"), ("float32", "1e-45"), ("float64", "1.7e308"), ("float32", "0")]
)
def test_a_scalar_at_the_end_of_its_type_is_taken(trial: Any, dtype: str, value: str) -> None:
    trial.edit(CONTRACT, arguments__3=SCALAR | {"dtype": dtype, "value": value})
    read_contract(trial.path(CONTRACT))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"arguments__0__high": "1e39", "arguments__0__specials": []}, ["arguments.a", "does not fit float32"]),
        ({"tolerances__c__relative": "1e-999999999"}, ["tolerances.c.relative", "1e-400"]),
        ({"arguments__0__shape": ["m", "q"]}, ["arguments.a.shape", "q", "dimensions are k, m, n"]),
        ({"arguments__0__shape": ["m", "9**9**9"]}, ["arguments.a.shape", "**"]),
        ({"arguments__0__shape": ["m - 1", "k"]}, ["arguments.a", "[0, 1]"]),
        ({"arguments__0__shape": ["m * 100000000", "k * 100000000"]}, ["arguments.a"]),
        ({"arguments__0__name": "b"}, ["'b'", "twice"]),
        ({"arguments__0__name": "m2"}, []),
        ({"arguments__0__name": "min"}, ["'min' is reserved"]),
        ({"arguments__0__name": "lambda"}, ["'lambda' is reserved"]),
        ({"arguments__0__role": "output", "arguments__0__specials": []}, ["tolerances", "a, c"]),
        ({"arguments__2__role": "input"}, ["no array has the role output"]),
        ({"arguments__3__name": "q"}, ["arguments.q", "no dimension"]),
        ({"arguments__0__dtype": "float31"}, ["arguments.a.dtype", "'float31'", "float32"]),
        ({"arguments__0__low": 3, "arguments__0__high": 2}, ["arguments.a", "low 3 is above high 2"]),
        ({"arguments__0__low": "nan"}, ["arguments.a", "finite"]),
        ({"arguments__0__below": "k"}, ["arguments.a", "for integers", "float32"]),
        ({**INDEX, "arguments__0__below": "k"}, []),
        (
            {**INDEX, "arguments__0__below": "q"},
            ["arguments.a.below", "'q'"],
        ),
        (
            {
                **INDEX,
                "arguments__0__below": "k",
                "arguments__0__high": 3,
            },
            ["below and high"],
        ),
        (
            {
                **INDEX,
                "arguments__0__low": 1,
                "arguments__0__below": "k",
            },
            ["leaves 1 to 0", "k=1"],
        ),
        (
            {
                **INDEX,
                "arguments__0__dtype": "int8",
                "arguments__0__low": 0,
                "arguments__0__below": "k",
            },
            ["0 to 8191 of int8"],
        ),
        (
            {
                **INDEX,
                "arguments__0__low": 0,
                "arguments__0__ascending": True,
            },
            ["ascending needs"],
        ),
        ({"tolerances": {"d": {}}}, ["tolerances", "d", "outputs are c"]),
        ({"tolerances": {}}, ["tolerances: name none; the outputs are c", "`c: {}` where every element must be equal"]),
        ({"tolerances__c": {"absolute": -1}}, ["tolerances.c.absolute", "-1", "at least 0"]),
        ({"tolerances__c": {"absolute": "1e-5", "baseline_factor": "0.5"}}, ["tolerances.c.baseline_factor"]),
        ({"tolerances__c": {"abs": 1}}, ["tolerances.c", "'abs'", "absolute"]),
        ({"dimensions__m": {"minimum": 5, "maximum": 4}}, ["dimensions.m", "from 5 to 4"]),
        ({"dimensions__m": {"minimum": 5, "maximum": 7, "multiple_of": 8}}, ["dimensions.m", "multiple of 8"]),
        ({"dimensions__m": {"minimum": 0, "maximum": 4}}, ["dimensions.m.minimum", "at least 1"]),
        ({"operations": "2*m*n*q"}, ["operations", "'q'"]),
        ({"bytes": "m - 100"}, ["bytes", "below zero"]),
        ({"include_folders": ["/usr/include"]}, ["include_folders", "'/usr/include'", "relative"]),
        ({"colour": "red"}, ["unknown key 'colour'", "arguments"]),
    ],
    ids=str,
)
def test_a_contract_that_contradicts_itself(trial: Any, changes: dict[str, object], words: list[str]) -> None:
    trial.edit(CONTRACT, **changes)
    if not words:  # a harmless change is accepted
        read_contract(trial.path(CONTRACT))
        return
    line = problem(lambda: read_contract(trial.path(CONTRACT)))
    assert line.startswith(str(trial.path(CONTRACT)))
    assert all(word in line for word in words), line


def test_a_number_is_taken_as_an_expression(trial: Any) -> None:
    trial.edit(CONTRACT, arguments__0__shape=["m", 7])
    assert array_shapes(read_contract(trial.path(CONTRACT)), {"m": 2, "n": 3, "k": 5})["a"] == (2, 7)


def checked_cases(trial: Any) -> None:
    path = trial.path(CASES)
    check_cases(read_cases(path), read_contract(trial.path(CONTRACT)), path)


def test_the_shipped_cases_are_right(trial: Any) -> None:
    checked_cases(trial)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cases__0__dimensions": {"m": 1, "n": 2}}, ["case ragged", "k, m, n"]),
        ({"cases__0__dimensions": {"m": 1, "n": 2, "k": 3, "q": 4}}, ["case ragged", "q"]),
        ({"cases__0__dimensions__m": 8193}, ["case ragged", "dimensions.m", "8193", "1 to 8192"]),
        ({"cases__0__name": "square_256"}, ["'square_256'"]),
        ({"cases__1__kind": "correctness", "cases__2__kind": "correctness"}, ["performance"]),
        ({"cases__0__inputs": {"c": {"from": "generated"}}}, ["inputs.c", "a, b"]),
        ({"cases__0__seed": -1}, ["cases.ragged.seed", "at least 0"]),
        ({"cases__1__residency": {"b": "warm", "d": "cold"}}, ["case square_256", "residency.d", "a, b, c"]),
        ({"cases__1__residency": {"b": "hot"}}, ["cases.square_256.residency", "hot"]),
        ({"cases__1__residency": {"a": "cold"}}, ["case square_256", "no array that is warm"]),
        ({"cases__1__residency": {}}, ["case square_256", "no array that is warm"]),
        ({"cases__0__residency": {"b": "warm"}}, ["case ragged", "only a performance case"]),
    ],
    ids=str,
)
def test_cases_that_contradict_the_contract(trial: Any, changes: dict[str, object], words: list[str]) -> None:
    trial.edit(CASES, **changes)
    line = problem(lambda: checked_cases(trial))
    assert "cases.yaml" in line
    assert all(word in line for word in words), line


def test_arrays_stated_as_warm_are_known_by_name_and_must_fit_the_l2(trial: Any) -> None:
    trial.edit(CASES, cases__1__residency={"c": "warm", "a": "cold", "b": "warm"})
    checked_cases(trial)
    cases, contract = read_cases(trial.path(CASES)), read_contract(trial.path(CONTRACT))
    assert [case.warm for case in cases.cases] == [(), ("b", "c"), ()]
    for enough in (0, 2 * 256 * 256 * 4):
        check_room_in_l2(cases, contract, enough)
    line = problem(lambda: check_room_in_l2(cases, contract, 2 * 256 * 256 * 4 - 1))
    assert all(word in line for word in ("square_256", "b, c", "524288", "524287"))


def test_a_case_that_states_no_residency_has_the_bytes_that_it_always_had(trial: Any) -> None:
    assert all(b"residency" not in canonical(case) for case in read_cases(trial.path(CASES)).cases)


def test_a_multiple_of_is_kept(trial: Any) -> None:
    trial.edit(CONTRACT, dimensions__m={"minimum": 1, "maximum": 8192, "multiple_of": 2})
    assert "in multiples of 2" in problem(lambda: checked_cases(trial))


def stored(trial: Any, values: Any, **changes: object) -> None:
    path = trial.path("cases/matmul_f32/a.npy")
    np.save(path, values)
    source = {"from": "file", "path": "a.npy", "sha256": hashlib.sha256(path.read_bytes()).hexdigest(), **changes}
    trial.edit(CASES, cases__0__inputs={"a": source})


GOOD = np.arange(31 * 29, dtype=np.float32).reshape(31, 29)


def test_stored_values_are_read(trial: Any) -> None:
    stored(trial, GOOD)
    checked_cases(trial)
    cases = read_cases(trial.path(CASES))
    assert stored_files(cases) == ("a.npy",)
    contract = read_contract(trial.path(CONTRACT))
    source = cases.cases[0].inputs["a"]
    assert isinstance(source, Stored)
    found = load_stored(source, contract.arrays[0], (31, 29), trial.path("cases/matmul_f32"))
    assert np.array_equal(found, GOOD)


def test_fortran_order_is_made_row_major(trial: Any) -> None:
    stored(trial, np.asfortranarray(GOOD))
    checked_cases(trial)
    source = read_cases(trial.path(CASES)).cases[0].inputs["a"]
    assert isinstance(source, Stored)
    contract = read_contract(trial.path(CONTRACT))
    found = load_stored(source, contract.arrays[0], (31, 29), trial.path("cases/matmul_f32"))
    assert found.flags.c_contiguous
    assert np.array_equal(found, GOOD)


@pytest.mark.parametrize(
    ("values", "changes", "words"),
    [
        (GOOD.astype(np.float64), {}, ["float64", "float32"]),
        (GOOD.T, {}, ["[29, 31]", "[31, 29]"]),
        (GOOD[0], {}, ["[29]"]),
        (GOOD, {"sha256": "0" * 64}, ["digest", "0000"]),
        (GOOD, {"path": "b.npy"}, ["b.npy", "cannot be read"]),
        (GOOD, {"path": "/tmp/a.npy"}, ["'/tmp/a.npy'", "relative"]),
        (GOOD.astype(">f4"), {}, [">f4"]),
        (np.array([[{}]], dtype=object), {}, ["no .npy file of numbers"]),
    ],
    ids=["dtype", "transposed", "axes", "digest", "absent", "absolute", "byte order", "pickle"],
)
def test_stored_values_that_are_not_the_contracts(
    trial: Any, values: Any, changes: dict[str, object], words: list[str]
) -> None:
    stored(trial, values, **changes)
    line = problem(lambda: checked_cases(trial))
    assert "case ragged" in line
    assert "inputs.a" in line
    assert all(word in line for word in words), line


def test_a_flipped_byte_of_a_stored_file_is_found(trial: Any) -> None:
    stored(trial, GOOD)
    path = trial.path("cases/matmul_f32/a.npy")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert "digest" in problem(lambda: checked_cases(trial))


def test_stored_values_beyond_the_contracts_bounds(trial: Any) -> None:
    trial.edit(CONTRACT, arguments__0__high=100)
    stored(trial, GOOD)
    assert "bound 100" in problem(lambda: checked_cases(trial))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"dimensions": {"m": {"minimum": 1, "maximum": 2}}}, ["k, m, n"]),
        ({"dimensions__m__maximum": 8193}, ["dimensions.m", "8193", "1 to 8192"]),
        ({"dimensions__m": {"minimum": 5, "maximum": 7, "multiple_of": 8}}, ["dimensions.m", "multiple of 8"]),
        ({"distributions": []}, ["distributions"]),
        ({"distributions": ["flat"]}, ["distributions.#1", "'flat'"]),
        ({"count": 0}, ["count", "1 to 64"]),
    ],
    ids=str,
)
def test_a_holdout_domain_outside_of_the_contract(trial: Any, changes: dict[str, object], words: list[str]) -> None:
    trial.edit(HOLDOUT, **changes)
    path: Path = trial.path(HOLDOUT)
    line = problem(lambda: check_holdout(read_holdout(path), read_contract(trial.path(CONTRACT)), path))
    assert "holdout.yaml" in line
    assert all(word in line for word in words), line


def test_what_is_no_plain_file_is_not_read(trial: Any) -> None:
    array = read_contract(trial.path("kernels/matmul_f32/contract.yaml")).arrays[0]
    folder = trial.path("cases/matmul_f32")
    os.mkfifo(folder / "pipe.npy")
    (folder / "device.npy").symlink_to("/dev/zero")
    for name in ("pipe.npy", "device.npy"):
        with pytest.raises(InputProblem, match="is no plain file"):
            load_stored(Stored(path=name, sha256="0" * 64), array, (31, 29), folder)
