"""Recorded graphs of PyTorch problems as trials: oracle against torch's recorded outputs, baseline against the oracle.

`tests/import_problems/regenerate.py` records; here torch is not needed.
"""

import json
import runpy
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from family_court import folder_court

from kerneltrial.commands.importing import sharp, trial_files
from kerneltrial.commands.importing.contract_of import contract_of, output_names, plan_of
from kerneltrial.commands.importing.cuda_text import baseline
from kerneltrial.commands.importing.graph import Graph
from kerneltrial.commands.importing.lowering import lowered
from kerneltrial.commands.importing.messages import Constant, Given, Node, Traced
from kerneltrial.commands.importing.oracle_text import oracle_text
from kerneltrial.commands.importing.sharp import ladder
from kerneltrial.inputs.oracle import load
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.inputs.values import generate
from kerneltrial.judge.qualification import QualificationProblem
from kerneltrial.records.case import Case
from kerneltrial.records.contract import Contract

ROWS = json.loads((Path(__file__).parents[2] / "import_problems/traced.json").read_text())
TRACED = {row["name"]: row for row in ROWS if "traced" in row}
CANNOT = {row["name"]: row["why"] for row in ROWS if "why" in row}
# One of each form of operation; the whole set takes minutes (tests/bench/import_problems.py).
QUALIFIED = (
    "softmax",
    "cross_entropy",
    "matmul_transposed_a",
    "conv_transposed2d",
    "cumsum_masked",
    "argmax",
    "gather_cat",
    "whole_numbers",
)


def graph_of(name: str) -> Graph:
    return lowered(msgspec.convert(TRACED[name]["traced"], Traced))


def made(name: str, folder: Path) -> Contract:
    """The trial's files in `folder`, as `kerneltrial import torch` writes them."""
    graph = graph_of(name)
    outputs = output_names(graph)
    bounds = {key: tuple(one) for key, one in TRACED[name]["bounds"].items()}
    contract = contract_of(name, "a test", graph, bounds, TRACED[name]["scaled"])
    path = trial_files.oracle_path(folder, name)
    path.parent.mkdir(parents=True)
    path.write_text(oracle_text(graph, outputs, "a test"))
    kernels = baseline(graph, outputs)
    trial_files.write(folder, contract, plan_of(kernels), kernels.source, "a test")
    return contract


def test_enough_kinds_are_imported_and_the_others_say_why():
    assert len(TRACED) >= 75
    assert {row["level"] for row in TRACED.values()} == {"level1", "level2", "level3"}
    assert CANNOT["sort"] == "the operation aten.sort.default is not known"
    assert "random" in CANNOT["noise"]
    assert "depends on values" in CANNOT["masked_select"]
    assert "nothing is computed" in CANNOT["dropout"]
    assert "complex64" in CANNOT["fft"]
    assert "float16" in CANNOT["half_relu"]
    assert CANNOT["step"].endswith("a kernel that gives the right answer in half precision for out")


@pytest.mark.parametrize("name", TRACED)
def test_the_oracle_gives_what_torch_gave_in_float64(name, tmp_path):
    contract = made(name, tmp_path)
    case = Case(name="first", kind="correctness", dimensions={}, seed=1)
    answer = load(trial_files.oracle_path(tmp_path, name)).answer(contract, generate(contract, case, 0), {})
    for array, samples in zip(contract.outputs, TRACED[name]["samples"], strict=True):
        flat = answer.outputs[array.name].reshape(-1)
        got = flat[np.linspace(0, flat.size - 1, len(samples)).astype(int)]
        np.testing.assert_allclose(got, samples, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("name", QUALIFIED)
def test_the_plain_baseline_qualifies_on_cpu(name, tmp_path):
    made(name, tmp_path)
    court = folder_court(tmp_path, name)
    qualified = court.qualified(court.judge(court.cases, 0))
    assert [case.case for case in qualified.cases] == ["first", "timed"]
    assert all(null.refused > 0 for case in qualified.cases for null in case.nulls)


def test_what_float32_loses_where_a_factor_underflows_is_no_error(tmp_path):
    """1 / (1 + exp(89)) is 0 in float32, and 89 times that is more than the smallest normal numbers."""
    contract = made("swish", tmp_path)
    x = np.resize(np.linspace(-100, -80, 64), tuple(map(int, contract.arrays[0].shape))).astype(np.float32)
    answer = load(trial_files.oracle_path(tmp_path, "swish")).answer(contract, {"x0": x}, {})
    with np.errstate(over="ignore"):
        honest = x * (np.float32(1) / (np.float32(1) + np.exp(-x)))
    scaled = float(contract.tolerances["out"].scaled)
    far = np.abs(honest.astype(np.float64) - answer.outputs["out"])
    assert far.max() > 1e-37, "nothing is lost here, so that the test shows nothing"
    assert np.all(far <= scaled * 2.0**-23 * answer.terms["out"] + 1e-37)


def test_a_wrong_answer_that_passes_is_told_before_anything_is_written(tmp_path):
    contract = made("swish", tmp_path)
    oracle = load(trial_files.oracle_path(tmp_path, "swish"))
    case = Case(name="first", kind="correctness", dimensions={}, seed=1)
    answers = [oracle.answer(contract, generate(contract, case, draw), {}) for draw in range(3)]
    assert sharp._blunt(contract, answers, 1) == ""
    for change, said in (
        (lambda want: 0 * want, "gives zeros for out"),
        (lambda want: 0 * want + 0.5, "gives its mean for out"),
        (np.sign, "gives the right answer in half precision for out"),
        (lambda want: np.where(np.arange(want.size).reshape(want.shape), 0.1, 0.3), "the answer for other values"),
    ):
        flat = [replace(one, outputs={"out": change(one.outputs["out"])}) for one in answers]
        assert said in sharp._blunt(contract, flat, 1)


def test_a_baseline_that_is_wrong_does_not_qualify(tmp_path):
    made("relu", tmp_path)
    path = tmp_path / "kernels/relu/baseline.cu"
    text = path.read_text()
    assert "larger(x0[at], 0.0f)" in text
    path.write_text(text.replace("larger(x0[at], 0.0f)", "fabsf(x0[at])"))
    court = folder_court(tmp_path, "relu")
    with pytest.raises(QualificationProblem, match="the baseline fails: wrong_values"):
        court.qualified(court.judge(court.cases, 0))


def test_values_that_cannot_fail_anyone_are_refused(tmp_path):
    """From 2 to 3 a hard tanh is 1 whatever the input."""
    made("hardtanh", tmp_path)
    path = tmp_path / "kernels/hardtanh/contract.yaml"
    text = path.read_text()
    assert "name: x0\n" in text
    path.write_text(text.replace("name: x0\n", "name: x0\n  low: 2\n  high: 3\n"))
    court = folder_court(tmp_path, "hardtanh")
    with pytest.raises(QualificationProblem, match="cannot fail a kernel that gives"):
        court.qualified(court.judge(court.cases, 0))


def _traced(op: str, args: dict, shape: tuple[int, ...] = (4,)) -> Traced:
    given = (Given(name="x0", role="input", dtype="float32", shape=(4,), low=0.0, high=1.0),)
    node = Node(name="n1", op=op, args=args, shape=shape, dtype="float32")
    return Traced(given=given, constants=(), nodes=(node,), outputs=("n1",), evaluated=False, torch="0")


@pytest.mark.parametrize(
    ("op", "args", "shape", "answer"),
    [
        ("aten.select.int", {"self": {"$": "x0"}, "dim": 0, "index": -1}, (), 3.0),
        ("aten.constant_pad_nd.default", {"self": {"$": "x0"}, "pad": [1, 2], "value": 7}, (7,), [7, 0, 1, 2, 3, 7, 7]),
        ("aten.index_select.default", {"self": {"$": "x0"}, "dim": -1, "index": {"$": "i0"}}, (2,), [2, 0]),
    ],
)
def test_what_no_recorded_problem_has_is_lowered_too(op, args, shape, answer, tmp_path):
    x0 = Given(name="x0", role="input", dtype="float32", shape=(4,), low=0.0, high=1.0)
    i0 = Constant(name="i0", dtype="int64", shape=(2,), values=(2, 0))
    node = Node(name="n1", op=op, args=args, shape=shape, dtype="float32")
    graph = lowered(Traced(given=(x0,), constants=(i0,), nodes=(node,), outputs=("n1",), evaluated=False, torch="0"))
    path = tmp_path / "oracle.py"
    path.write_text(oracle_text(graph, output_names(graph), "a test"))
    (found,) = runpy.run_path(str(path))["oracle"]({"x0": np.arange(4, dtype=np.float32)}, {}).values()
    assert np.array_equal(np.ravel(found), np.ravel(answer))


@pytest.mark.parametrize(
    ("traced", "said"),
    [
        (_traced("aten.fancy.default", {"self": {"$": "x0"}}), "aten.fancy.default is not known"),
        (_traced("aten.relu.default", {"self": {"$": "x9"}}), "x9 is used before it is there"),
        (_traced("aten.relu.default", {"self": {"$": "x0"}}, (5,)), "worked out as"),
        (_traced("aten.relu_.default", {"self": {"$": "x0"}}), "changes an input"),
        (_traced("aten.clone.default", {"self": {"$": "x0"}}), "nothing is computed"),
        (_traced("aten.cumsum.default", {"self": {"$": "x0"}, "dim": "__import__('os')#%d"}), "is no number"),
        (_traced("aten.add.Tensor", {"self": {"$": "x0"}, "other": "__import__('os')"}), "in this form is not known"),
        (_traced("aten.sum.dim_IntList", {"self": {"$": "x0"}, "dim": {"a": "b"}}), "in this form is not known"),
    ],
)
def test_what_a_child_makes_up_is_refused(traced, said):
    with pytest.raises(InputProblem, match=said):
        lowered(traced)


@pytest.mark.parametrize(
    "change",
    [
        {"torch": '2.0"""\nimport os'},
        {"outputs": ["os"]},
        {"outputs": ["n1\n"]},
        {"nodes": [{"name": "np", "op": "aten.relu.default", "args": {}, "shape": [4], "dtype": "float32"}]},
    ],
    ids=str,
)
def test_words_that_would_become_other_code_are_no_message(change):
    good = msgspec.to_builtins(_traced("aten.relu.default", {"self": {"$": "x0"}}))
    assert msgspec.convert(good, Traced).outputs == ("n1",)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({**good, **change}, Traced)


def test_bounds_go_from_none_to_the_values_that_were_seen():
    given = (
        Given(name="x0", role="input", dtype="float32", shape=(4,), low=0.01, high=0.987),
        Given(name="w_b", role="parameter", dtype="float32", shape=(4,), low=-0.5, high=0.5),
    )
    rungs = [bounds for _, bounds in ladder(given)]
    assert rungs[0] == {"x0": (None, None), "w_b": (None, None)}
    assert {"x0": (0.0, 8.0), "w_b": (-8.0, 8.0)} in rungs
    assert rungs[-1]["x0"] == (pytest.approx(0.01, abs=1e-3), pytest.approx(0.987, abs=2e-3))
