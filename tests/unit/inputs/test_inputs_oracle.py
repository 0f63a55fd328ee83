"""Oracles: what is asked of a trusted file, and one line where it does not keep to it."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kerneltrial.inputs import oracle
from kerneltrial.inputs.dtypes import narrow
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.records.contract import Array, Contract, Range, Tolerance
from kerneltrial.records.plan import DType

DIMENSIONS = {"n": 3}
VALUES = {"x": np.array([1, 2, 3], dtype=np.float32)}


def contract(dtype: DType = "float32", given: DType = "float32") -> Contract:
    return Contract(
        name="double",
        description="",
        arguments=(
            Array(name="x", role="input", dtype=given, shape=("n",)),
            Array(name="y", role="output", dtype=dtype, shape=("n",)),
        ),
        dimensions={"n": Range(minimum=1, maximum=9)},
        tolerances={"y": Tolerance(relative=Decimal("1e-5"))},
        operations="n",
        bytes="8*n",
    )


def made(folder: Path, text: str) -> oracle.Oracle:
    path = folder / "oracle.py"
    path.write_text("import numpy as np\n" + text)
    return oracle.load(path)


def problem(folder: Path, text: str, dtype: DType = "float32") -> str:
    with pytest.raises(InputProblem) as caught:
        made(folder, text).answer(contract(dtype), VALUES, DIMENSIONS)
    line = str(caught.value)
    assert line.startswith(str(folder / "oracle.py"))
    assert "\n" not in line
    return line


GOOD = "def oracle(inputs, dims):\n    return {'y': 2.0 * inputs['x'].astype(np.float64)}\n"


def test_a_good_oracle_answers(tmp_path: Path) -> None:
    found = made(tmp_path, GOOD + "def terms(inputs, dims):\n    return {'y': np.full(dims['n'], 5.0)}\n")
    answer = found.answer(contract(), VALUES, DIMENSIONS)
    assert answer.outputs["y"].tolist() == [2, 4, 6]
    assert answer.terms["y"].tolist() == [5, 5, 5]
    assert made(tmp_path, GOOD).answer(contract(), VALUES, DIMENSIONS).terms == {}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return inputs['x'] * 2", ["must return a mapping", "y", "ndarray"]),
        ("return {'z': np.zeros(3)}", ["outputs y", "z"]),
        ("return {'y': np.zeros(3), 'z': np.zeros(3)}", ["y, z"]),
        ("return {'y': np.zeros(4)}", ["'y'", "[4]", "[3]"]),
        ("return {'y': np.zeros((3, 1))}", ["'y'", "[3, 1]"]),
        ("return {'y': inputs['x']}", ["float32", "float64"]),
        ("return {'y': np.zeros(3, dtype=np.int64)}", ["int64", "float64"]),
        ("return {'y': [0.0, 0.0, 0.0]}", ["'y'", "list"]),
        ("return None", ["NoneType"]),
        ("raise RuntimeError('boom\\nbang')", ["RuntimeError", "boom bang", "line 3"]),
        ("raise SystemExit(3)", ["SystemExit"]),
        ("inputs['x'][0] = 9", ["ValueError", "read-only"]),
        ("return {'y': inputs['q']}", ["KeyError", "q"]),
        ("import nothing_of_that_name", ["ModuleNotFoundError"]),
    ],
)
def test_a_wrong_oracle_is_one_line(tmp_path: Path, body: str, words: list[str]) -> None:
    line = problem(tmp_path, f"def oracle(inputs, dims):\n    {body}\n")
    assert all(word in line for word in words), line


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return {'z': np.zeros(3)}", ["terms()", "y"]),
        ("return {'y': np.zeros(4)}", ["terms()", "[4]"]),
        ("return {'y': -np.ones(3)}", ["terms()", "below zero"]),
        ("return {'y': np.ones(3, dtype=np.float32)}", ["terms()", "float64"]),
        ("return 3", ["terms()"]),
    ],
)
def test_wrong_terms_are_one_line(tmp_path: Path, body: str, words: list[str]) -> None:
    line = problem(tmp_path, GOOD + f"def terms(inputs, dims):\n    {body}\n")
    assert all(word in line for word in words), line


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def answer(inputs, dims):\n    return {}\n", ["no function oracle"]),
        ("oracle = 3\n", ["no function oracle"]),
        ("def oracle(:\n", ["does not run", "SyntaxError"]),
        ("raise ValueError('at import')\n", ["does not run", "ValueError", "at import", "line 2"]),
        ("import sys; sys.exit(0)\n", ["does not run", "SystemExit"]),
    ],
)
def test_a_file_that_is_no_oracle(tmp_path: Path, text: str, words: list[str]) -> None:
    line = problem(tmp_path, text)
    assert all(word in line for word in words), line


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputProblem, match=r"absent\.py: cannot be read"):
        oracle.load(tmp_path / "absent.py")


def test_the_callers_values_cannot_be_changed(tmp_path: Path) -> None:
    values = {"x": VALUES["x"].copy()}
    text = "def oracle(inputs, dims):\n    x = inputs['x']; x.flags.writeable = True; x[:] = 7; dims['n'] = 9\n"
    made(tmp_path, text + "    return {'y': np.zeros(3)}\n").answer(contract(), values, DIMENSIONS)
    assert values["x"].tolist() == [1, 2, 3]
    assert DIMENSIONS == {"n": 3}


def test_integer_outputs_stay_integers(tmp_path: Path) -> None:
    text = "def oracle(inputs, dims):\n    return {'y': np.array([2**53 + 1, 0, -1], dtype=np.int64)}\n"
    answer = made(tmp_path, text).answer(contract("int64"), VALUES, DIMENSIONS)
    assert answer.outputs["y"].tolist() == [2**53 + 1, 0, -1]
    assert "int64 needs integers" in problem(tmp_path, GOOD, "int64")


def test_bfloat16_inputs_come_as_numbers(tmp_path: Path) -> None:
    values = {"x": narrow(np.array([1.0, -2.0, 0.5]), "bfloat16")}
    answer = made(tmp_path, GOOD).answer(contract(given="bfloat16"), values, DIMENSIONS)
    assert answer.outputs["y"].tolist() == [2, -4, 1]


def test_infinities_and_nan_are_answers(tmp_path: Path) -> None:
    text = "def oracle(inputs, dims):\n    return {'y': np.array([1.0, 0.0, -1.0]) / 0.0}\n"
    answer = made(tmp_path, text).answer(contract(), VALUES, DIMENSIONS)
    assert np.isinf(answer.outputs["y"][0])
    assert np.isnan(answer.outputs["y"][1])


def test_no_compiled_copy_is_left_and_two_oracles_do_not_mix(tmp_path: Path) -> None:
    first = made(tmp_path, GOOD)
    second = made(tmp_path, GOOD.replace("2.0", "3.0"))
    assert first.answer(contract(), VALUES, DIMENSIONS).outputs["y"].tolist() == [2, 4, 6]
    assert second.answer(contract(), VALUES, DIMENSIONS).outputs["y"].tolist() == [3, 6, 9]
    assert first.digest != second.digest
    assert [path.name for path in tmp_path.rglob("*")] == ["oracle.py"]


def test_classes_of_an_oracle_find_their_module(tmp_path: Path) -> None:
    text = "from dataclasses import dataclass\n@dataclass\nclass Held:\n    x: 'np.ndarray'\n" + GOOD
    assert made(tmp_path, text).answer(contract(), VALUES, DIMENSIONS).outputs["y"][0] == 2


@pytest.mark.parametrize("family", ["matmul_f32", "softmax_f32"])
def test_the_shipped_oracles_answer_every_shipped_case(family: str) -> None:
    from kerneltrial.inputs.cases import read_cases
    from kerneltrial.inputs.contracts import read_contract
    from kerneltrial.inputs.values import generate

    clone = Path(__file__).resolve().parents[3]
    shipped: Any = oracle.load(clone / f"cases/{family}/oracle.py")
    promised = read_contract(clone / f"kernels/{family}/contract.yaml")
    for case in read_cases(clone / f"cases/{family}/cases.yaml").cases:
        for draw in range(7):
            values = generate(promised, case, draw)
            answer = shipped.answer(promised, values, case.dimensions)
            for output in answer.outputs.values():
                plain = np.isfinite(output).mean()
                if all(np.all(np.isfinite(given)) for given in values.values()):
                    assert plain == 1
                else:
                    assert 0.5 < plain < 1  # special values leave most of an answer plain


def test_a_mask_of_true_and_false_is_one_of_integers(tmp_path: Path) -> None:
    text = "def oracle(inputs, dims):\n    return {'y': np.array([True, False, True])}\n"
    answer = made(tmp_path, text).answer(contract("uint8"), VALUES, DIMENSIONS)
    assert answer.outputs["y"].dtype == np.uint64
    assert answer.outputs["y"].tolist() == [1, 0, 1]
