"""Every variant of a plan that a shape can take is taken by a judged case, or a person must look."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from judge_doubles import FakeRunner, binary, built, cases, contract, multiply, plan, setup

from kerneltrial.judge.setup import JudgeProblem
from kerneltrial.judge.validation import Judge, ValidationOutcome
from kerneltrial.judge.variants import derived
from kerneltrial.records.contract import Range
from kerneltrial.records.plan import LaunchPlan
from kerneltrial.records.reason import Reason
from kerneltrial.records.validation import Invalid, Unchecked, Validated

LARGE = contract(dimensions={name: Range(minimum=1, maximum=8192) for name in "mnk"})


def two(when: str, **changes: Any) -> LaunchPlan:
    """Another kernel where `when` holds, the usual one elsewhere."""
    rare, usual = plan(when=when).variants[0], plan().variants[0]
    other = msgspec.structs.replace(rare.launches[0], entry="rare", **changes)
    return LaunchPlan(variants=(msgspec.structs.replace(rare, launches=(other,)), usual))


def judged(folder: Path, tried: LaunchPlan, kernel: Any = multiply, **changes: Any) -> ValidationOutcome:
    judge = Judge(setup(folder, **{"contract": LARGE, **changes}))
    return judge.judge_candidate(built(), binary(), tried, FakeRunner(kernel))


def wrong_at(**sizes: int) -> Any:
    def kernel(inputs: Any, buffers: Any, state: Any) -> None:
        multiply(inputs, buffers, state)
        a, b = inputs["A"].shape, inputs["B"].shape
        if {"m": a[0], "k": a[1], "n": b[1]}.items() >= sizes.items():
            buffers["C"][:] = 0

    return kernel


@pytest.mark.parametrize("when", ["m == 777", "k % 4 == 0 or m == 777", "m == 777 and n != 3", "m > 776 and m < 778"])
def test_a_variant_for_one_size_is_run_there(tmp_path: Path, when: str) -> None:
    right = judged(tmp_path, two(when))
    assert isinstance(right, Validated)
    assert any(verdict.dimensions["m"] == 777 and verdict.draws == 5 for verdict in right.cases)
    wrong = judged(tmp_path, two(when), wrong_at(m=777))
    assert isinstance(wrong, Invalid)
    assert wrong.reason is Reason.WRONG_VALUES
    assert wrong.detail.startswith("case variant_777_")


def test_free_dimensions_are_larger_than_one(tmp_path: Path) -> None:
    """A kernel that writes one element alone would be right in the cheapest shape."""
    found = derived(setup(tmp_path, contract=LARGE), two("k == 777"), cases().cases)
    assert [case.dimensions for case in found.cases] == [{"m": 9, "n": 9, "k": 777}]


def test_cases_that_take_every_variant_are_enough(tmp_path: Path) -> None:
    judge = Judge(setup(tmp_path))
    assert not derived(judge.setup, two("k % 4 == 0 and n % 4 == 0"), judge.cases).cases
    assert not derived(judge.setup, two("0"), judge.cases).cases  # nothing takes it
    assert not derived(judge.setup, two("m > 512"), judge.cases).open  # as the contract has it


def test_what_only_shapes_that_are_run_once_take_gets_every_draw_too(tmp_path: Path) -> None:
    """Above all cases: wrong for values that the one draw of a far shape need not have."""

    def wrong_for_large_values(inputs: Any, buffers: Any, state: Any) -> None:
        multiply(inputs, buffers, state)
        if inputs["A"].shape[0] > 3000 and abs(inputs["B"]).max() > 500:
            buffers["C"][:] = 0

    right = judged(tmp_path, two("m > 3000"))
    assert isinstance(right, Validated)
    (made,) = [verdict for verdict in right.cases if verdict.case.startswith("variant_")]
    assert made.dimensions["m"] == 3001
    assert made.draws == 5
    wrong = judged(tmp_path, two("m > 3000"), wrong_for_large_values)
    assert isinstance(wrong, Invalid)


def test_where_such_a_shape_is_dear_it_is_left_to_those_that_are_run_once(tmp_path: Path) -> None:
    asked = derived(setup(tmp_path, contract=LARGE), two("m * n * k > 200000 and m > 700"), cases().cases)
    assert asked.once == {case.name for case in asked.cases} != set()
    once = (msgspec.structs.replace(asked.cases[0], name="far"),)
    beside = derived(setup(tmp_path, contract=LARGE), two("m * n * k > 200000 and m > 700"), cases().cases, once)
    assert beside.cases == beside.open == beside.unchecked == ()


def test_the_same_plan_gets_the_same_cases(tmp_path: Path) -> None:
    judge = Judge(setup(tmp_path, contract=LARGE, seed=7))
    first, again = (derived(judge.setup, two("m == 777"), judge.cases) for _ in range(2))
    assert first == again
    assert {case.seed for case in first.cases} == {7}


def test_what_nobody_finds_needs_a_person(tmp_path: Path) -> None:
    outcome = judged(tmp_path, two("(m * 7919 + n * 104729 + k) % 1000003 == 5 and m * n == 187131"))
    assert isinstance(outcome, Unchecked)
    assert outcome.reason is Reason.NEEDS_REVIEW
    assert "right in every case, and a person must look: variant 1 (when (m * 7919" in outcome.detail
    assert "protocol.screening" not in outcome.detail  # nothing of the screen is to be allowed


def test_what_is_too_large_to_run_needs_a_person(tmp_path: Path) -> None:
    outcome = judged(tmp_path, two("m * n * k > 100000000"))
    assert isinstance(outcome, Unchecked)
    assert outcome.reason is Reason.NEEDS_REVIEW
    assert "too large to run here" in outcome.detail


def test_a_fault_found_elsewhere_comes_first(tmp_path: Path) -> None:
    outcome = judged(tmp_path, two("m * n * k > 100000000"), wrong_at())
    assert isinstance(outcome, Invalid)


def test_a_large_way_of_sizing_is_said(tmp_path: Path) -> None:
    tried = two("m == 777", grid=("1 + (m * n * k > 100000000)", "1", "1"))
    outcome = judged(tmp_path, msgspec.structs.replace(tried, variants=tried.variants[:1] + tried.variants[:1]))
    assert isinstance(outcome, Invalid)  # no launch for the rest
    usual = two("0", grid=("1", "1", "1")).variants[1]
    sized = msgspec.structs.replace(usual.launches[0], grid=("1 + (m * n * k > 100000000)", "1", "1"))
    outcome = judged(tmp_path, LaunchPlan(variants=(msgspec.structs.replace(usual, launches=(sized,)),)))
    assert isinstance(outcome, Validated)
    assert any("m * n * k > 100000000 is true" in finding.detail for finding in outcome.unchecked)


def test_a_baseline_that_fails_there_is_no_fault_of_the_ground(tmp_path: Path) -> None:
    judge = Judge(setup(tmp_path, contract=LARGE))
    usual = judge.answers.baseline

    def fails(case: Any, draw: int) -> Any:
        if case.name.startswith("variant"):
            raise JudgeProblem("the baseline failed")
        return usual(case, draw)

    judge.answers.baseline = fails  # type: ignore[method-assign]
    outcome = judge.judge_candidate(built(), binary(), two("m == 777"), FakeRunner())
    assert isinstance(outcome, Unchecked)
    assert outcome.detail == "the baseline failed"


@pytest.mark.parametrize(
    ("when", "changes"),
    [
        ("m == 513 and n == 700", {"block": ("1024", "64", "1")}),
        ("m > 8000", {"block": ("max(n - 7000, 1)", "1", "1")}),
        ("m == 4099", {"grid": ("1", "n * 8", "1")}),
        ("m == 4099", {"grid": ("1", "n // 3", "1")}),
        ("m == 4099", {"shared_bytes": "k * 64"}),
    ],
)
def test_a_launch_over_the_limits_anywhere_is_told(tmp_path: Path, when: str, changes: dict[str, Any]) -> None:
    outcome = judged(tmp_path, two(when, **changes))
    assert isinstance(outcome, Invalid)
    assert outcome.reason is Reason.BAD_PLAN


@pytest.mark.parametrize("when", ["m != 777", "m != 777 or n != 55", "m % 1009 != 5"])
def test_a_hole_of_one_shape_is_told(tmp_path: Path, when: str) -> None:
    outcome = judged(tmp_path, plan(when=when))
    assert isinstance(outcome, Invalid)
    assert outcome.reason is Reason.NO_LAUNCH_FOR_SHAPE


def test_a_hole_that_nobody_finds_needs_a_person(tmp_path: Path) -> None:
    outcome = judged(tmp_path, plan(when="(m * 7919 + n * 104729 + k) % 1000003 + m * n % 187131 > 0"))
    assert isinstance(outcome, Unchecked)
    assert outcome.reason is Reason.NEEDS_REVIEW
    assert "whether every shape has a launch" in outcome.detail


def test_zeros_are_wrong() -> None:
    """What `wrong_at` relies on."""
    buffers = {"C": np.ones((1, 1), np.float32)}
    wrong_at()({"A": np.ones((1, 1), np.float32), "B": np.ones((1, 1), np.float32)}, buffers, {})
    assert not buffers["C"].any()
