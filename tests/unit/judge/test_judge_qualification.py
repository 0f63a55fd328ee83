"""Qualification: blunt cases, a wrong baseline and a contradicted oracle stop a trial with one line."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judge_doubles import ORACLE, PTX, Arrays, cases, contract, multiply, one_line, oracle, reference, setup, subject

from kerneltrial.judge.qualification import QualificationProblem, qualify
from kerneltrial.judge.validation import Judge
from kerneltrial.records.case import Case, Cases, Distribution, Generated
from kerneltrial.records.contract import Array, DimensionArgument, Range, Tolerance
from kerneltrial.records.plan import Launch, LaunchPlan, Variant
from kerneltrial.records.protocol import Protocol
from kerneltrial.records.qualification import COPY_OF_BASELINE
from kerneltrial.records.reason import Finding, Reason

BASELINE = "d" * 64


def problem(folder: Path, reference: Any = None, **changes: Any) -> str:
    with pytest.raises(QualificationProblem) as caught:
        qualify(Judge(setup(folder, **changes)), BASELINE, reference)
    text = str(caught.value)
    assert one_line(text), text
    return text


def test_a_sound_trial_qualifies(tmp_path: Path) -> None:
    qualified = qualify(Judge(setup(tmp_path)), BASELINE, reference())
    assert [case.case for case in qualified.cases] == ["case_0", "case_1"]
    names = {null.name for null in qualified.cases[1].nulls}
    assert any("zeros" in name for name in names)
    assert {"a copy of A", "a copy of B"} <= names  # 16 by 16 by 16
    assert any("precision" in name for name in names)
    assert any("TF32" in name for name in names)
    assert all(null.refused > 0 for case in qualified.cases for null in case.nulls)
    assert qualified.second_opinion.agrees
    assert qualified.cases[0].baseline.valid


def test_no_reference_is_no_second_opinion(tmp_path: Path) -> None:
    opinion = qualify(Judge(setup(tmp_path)), BASELINE, None).second_opinion
    assert not opinion.agrees
    assert opinion.by == "nothing"


def test_a_copy_of_the_baseline_is_no_second_opinion(tmp_path: Path) -> None:
    copy = subject(ptx=PTX.replace("k()", "plain()"))
    opinion = qualify(Judge(setup(tmp_path)), BASELINE, copy).second_opinion
    assert (opinion.by, opinion.agrees, opinion.detail) == ("nothing", False, COPY_OF_BASELINE)


def test_a_copy_of_the_baseline_that_disagrees_stops_as_any_reference(tmp_path: Path) -> None:
    def doubled(inputs: Arrays, buffers: Arrays, state: dict[str, Any]) -> None:
        buffers["C"][:] = inputs["A"] @ (2 * inputs["B"])

    assert "disagree in case case_0" in problem(tmp_path, subject(doubled))


def test_a_tolerance_that_passes_zeros_is_refused(tmp_path: Path) -> None:
    blunt = contract(tolerances={"C": Tolerance(absolute=Decimal(10) ** 15, baseline_factor=Decimal(10) ** 12)})
    text = problem(tmp_path, contract=blunt)
    assert "zeros" in text
    assert "tolerances.C" in text
    assert "case_0" in text


def test_a_tolerance_that_passes_half_precision_is_refused(tmp_path: Path) -> None:
    blunt = contract(tolerances={"C": Tolerance(relative=Decimal("0.01"), baseline_factor=Decimal(100_000))})
    assert "next lower precision" in problem(tmp_path, contract=blunt)


def test_tf32_is_no_null_where_the_contract_allows_it(tmp_path: Path) -> None:
    qualified = qualify(Judge(setup(tmp_path, contract=contract(tf32=True))), BASELINE, None)
    assert not any("TF32" in null.name for case in qualified.cases for null in case.nulls)


def test_a_case_whose_answer_is_its_input_is_refused(tmp_path: Path) -> None:
    """max(x, 0) of values that are never negative is a copy: dimensions and values decide, not the contract."""
    relu = contract(
        arguments=(
            Array(name="X", role="input", dtype="float32", shape=("n",), low=Decimal(0)),
            Array(name="Y", role="output", dtype="float32", shape=("n",)),
            DimensionArgument(name="n"),
        ),
        dimensions={"n": Range(minimum=1, maximum=1000)},
        tolerances={"Y": Tolerance()},
        operations="n",
        bytes="8 * n",
    )
    launch = Launch(entry="k", grid=("n", "1", "1"), block=("1", "1", "1"), args=("X", "Y", "n"))

    def kernel(inputs: Arrays, buffers: Arrays, state: dict[str, Any]) -> None:
        buffers["Y"][:] = np.maximum(inputs["X"], 0)

    text = problem(
        tmp_path,
        contract=relu,
        cases=Cases(cases=(Case(name="one", kind="correctness", dimensions={"n": 50}),)),
        oracle=oracle(
            tmp_path, "import numpy as np\ndef oracle(i, d):\n return {'Y': np.maximum(i['X'], 0).astype(float)}\n"
        ),
        baseline=subject(kernel, LaunchPlan(variants=(Variant(launches=(launch,)),))),
    )
    assert "a copy of X" in text
    assert "other dimensions" in text or "take dimensions or values" in text


def test_draws_of_zeros_are_exempt(tmp_path: Path) -> None:
    zero = {name: Generated(distribution=Distribution.ZEROS) for name in "AB"}
    one = Case(name="one", kind="correctness", dimensions={"m": 8, "n": 7, "k": 9}, inputs=dict(zero))
    qualified = qualify(Judge(setup(tmp_path, cases=Cases(cases=(one,)))), BASELINE, None)
    assert {null.draws for null in qualified.cases[0].nulls} == {4}


def test_a_wrong_baseline_is_named(tmp_path: Path) -> None:
    def wrong(inputs: Arrays, buffers: Arrays, state: dict[str, Any]) -> None:
        multiply(inputs, buffers, state)
        buffers["C"][0, 0] += 1

    text = problem(tmp_path, baseline=subject(wrong))
    assert "baseline" in text
    assert "wrong_values" in text


def test_a_baseline_that_this_device_does_not_know_is_named(tmp_path: Path) -> None:
    broken = subject(lambda *_: Finding(reason=Reason.UNSUPPORTED_FEATURE, detail="clusters"))
    assert "clusters" in problem(tmp_path, baseline=broken)


def test_an_oracle_that_the_reference_contradicts_is_refused(tmp_path: Path) -> None:
    transposed = ORACLE.replace('inputs["B"].astype(np.float64)}', '(2 * inputs["B"].astype(np.float64))}')

    def doubled(inputs: Arrays, buffers: Arrays, state: dict[str, Any]) -> None:
        buffers["C"][:] = inputs["A"] @ (2 * inputs["B"])

    text = problem(
        tmp_path,
        reference(),
        oracle=oracle(tmp_path, transposed.replace('"C": np.abs', '"C": 2 * np.abs')),
        baseline=subject(doubled),
    )
    assert "disagree" in text


def test_what_lay_in_the_output_before_is_no_answer(tmp_path: Path) -> None:
    """Where the right answer is NaN, a reference that writes nothing there is found out by other memory."""
    nan = ORACLE.replace(
        "import numpy as np", "import numpy as np\ndef first(c):\n    c[0, 0] = np.nan\n    return c"
    ).replace('{"C": inputs', '{"C": first(inputs', 1)
    nan = nan.replace('inputs["B"].astype(np.float64)}', 'inputs["B"].astype(np.float64))}', 1)

    def written(inputs: Arrays, buffers: Arrays, state: dict[str, Any]) -> None:
        multiply(inputs, buffers, state)
        buffers["C"][0, 0] = np.nan

    def unwritten(inputs: Arrays, buffers: Arrays, state: dict[str, Any]) -> None:
        kept = buffers["C"][0, 0]
        multiply(inputs, buffers, state)
        buffers["C"][0, 0] = kept

    said = oracle(tmp_path, nan)
    sound = qualify(Judge(setup(tmp_path, oracle=said, baseline=subject(written))), BASELINE, reference(written))
    assert sound.second_opinion.agrees
    text = problem(tmp_path, reference(unwritten), oracle=said, baseline=subject(written))
    assert "the reference kernel fails in case case_0, draw 0: output_not_written" in text


def test_a_reference_with_a_fault_is_said_to_fail_and_not_to_disagree(tmp_path: Path) -> None:
    broken = reference(lambda *_: Finding(reason=Reason.OUT_OF_BOUNDS, detail="read of 4 bytes"))
    text = problem(tmp_path, broken)
    assert "the reference kernel fails in case case_0, draw 0: out_of_bounds: read of 4 bytes" in text
    assert "disagree" not in text


def test_shapes_of_one_element_have_no_mean(tmp_path: Path) -> None:
    dot = setup(tmp_path, cases=cases((1, 1, 40)), protocol=Protocol(boundary_shapes=0))
    names = {null.name for null in qualify(Judge(dot), BASELINE, None).cases[0].nulls}
    assert not any("mean" in name for name in names)
