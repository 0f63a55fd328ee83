"""An output in its input's memory, where the contract allows it: run so too, and judged by the oracle."""

from decimal import Decimal

import pytest
from judge_doubles import PTX, FakeRunner, binary, built, cases, contract, oracle, plan, setup, subject

from kerneltrial.inputs.calls import Pointer, in_place
from kerneltrial.inputs.contracts import check_contract
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.inputs.resolve import resolve
from kerneltrial.judge.validation import Judge
from kerneltrial.records.contract import Array, Tolerance
from kerneltrial.records.reason import Reason
from kerneltrial.records.validation import Invalid, Validated

ORACLE = """
def oracle(inputs, dims):
    return {"C": 2.0 * inputs["A"].astype("float64") + inputs["B"].astype("float64")}
"""


def placed(**changes):
    """C = 2 A + B of one shape; C may lie in A."""
    arrays = [
        Array(name=n, role=r, dtype="float32", shape=("m", "n"))
        for n, r in zip("ABC", ("input", "input", "output"), strict=True)
    ]
    usual = contract()
    fields = {
        "arguments": (*arrays, *usual.arguments[3:]),
        "in_place": {"C": "A"},
        "tolerances": {"C": Tolerance(scaled=Decimal(1), relative=Decimal("1e-6"))},
    }
    return contract(**(fields | changes))


def judged(tmp_path, kernel, ptx=PTX):
    ground = setup(
        tmp_path,
        contract=placed(),
        oracle=oracle(tmp_path, ORACLE),
        baseline=subject(careful),
        cases=cases((8, 7, 9)),
    )
    return Judge(ground).judge_candidate(built(), binary(ptx), plan(), FakeRunner(kernel))


def careful(inputs, buffers, state):
    """Reads all before it writes; without an A, C lies there."""
    a = inputs.get("A", buffers["C"])
    buffers["C"][:] = 2 * a + inputs["B"]


def test_a_kernel_that_reads_before_it_writes_is_right_both_ways(tmp_path):
    outcome = judged(tmp_path, careful)
    assert isinstance(outcome, Validated), outcome
    assert "in_place" in outcome.checks


@pytest.mark.parametrize(
    ("load", "told"), [("ld.global.nc.f32", True), ("ld.global.ca.nc.v4.f32", True), ("ld.global.f32", False)]
)
def test_a_load_that_may_give_older_bytes_is_said(tmp_path, load, told):
    ptx = PTX.replace("ret;", f".reg .f32 %f; .reg .b64 %d; {load} %f, [%d]; ret;")
    outcome = judged(tmp_path, careful, ptx)
    assert any("ld.global.nc" in f.detail for f in outcome.unchecked) is told


def test_a_kernel_that_reads_what_it_replaced_is_told_where(tmp_path):
    def careless(inputs, buffers, state):
        careful(inputs, buffers, state)
        if "A" not in inputs:
            buffers["C"][:] += 1

    outcome = judged(tmp_path, careless)
    assert isinstance(outcome, Invalid)
    assert outcome.reason is Reason.WRONG_VALUES
    assert "with C in the memory of A, as the contract allows: output C:" in outcome.detail


def test_a_call_in_place_has_one_buffer_for_both():
    call = resolve(plan(), placed(), {"m": 3, "n": 4, "k": 5}, "pointer")
    one = in_place(call, "C", "A")
    assert [(b.name, b.role, b.initial) for b in one.buffers] == [("B", "input", "given"), ("C", "inout", "given")]
    pointers = [p.buffer for p in one.launches[0].parameters if isinstance(p, Pointer)]
    assert pointers == ["C", "B", "C"]


@pytest.mark.parametrize(
    ("pairs", "words"),
    [({"A": "B"}, "allowed: an output"), ({"C": "nowhere"}, "allowed: an output"), ({"C": "m"}, "allowed: an output")],
)
def test_only_an_output_lies_in_an_input(pairs, words):
    with pytest.raises(InputProblem, match=words):
        check_contract(placed(in_place=pairs))


def test_only_arrays_of_one_type_and_shape_are_the_same_memory():
    with pytest.raises(InputProblem, match="only arrays of one type and shape"):
        check_contract(contract(in_place={"C": "A"}))
    check_contract(placed())
