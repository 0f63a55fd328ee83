"""Conditions on sizes inside of a kernel: each is taken both ways by some judged case, or a person must look."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from judge_doubles import FakeRunner, built, cases, contract, multiply, plan, setup
from test_judge_variants import wrong_at

from kerneltrial.devices.device import Binary
from kerneltrial.judge.inside import Module, ways_inside
from kerneltrial.judge.ptx import read
from kerneltrial.judge.validation import Judge, ValidationOutcome
from kerneltrial.judge.variants import Derived
from kerneltrial.records.build import Abi
from kerneltrial.records.contract import Range
from kerneltrial.records.plan import Launch, LaunchPlan, Variant
from kerneltrial.records.reason import Reason
from kerneltrial.records.validation import Invalid, Validated

LARGE = contract(dimensions={name: Range(minimum=1, maximum=8192) for name in "mnk"})
HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
PARAMETERS = ", ".join(f".param .u{64 if n < 3 else 32} k_{n}" for n in range(6))
SIZES = "ld.param.u32 %m, [k_3]; ld.param.u32 %n, [k_4]; ld.param.u32 %k, [k_5];"


def kernel(condition: str) -> str:
    """PTX in which a predicate %p, made by `condition`, chooses a way."""
    code = f".loc 1 42 3\n{SIZES} {condition} @%p bra OUT; add.s32 %r1, %m, 1; OUT: ret;"
    return f"{HEAD}.visible .entry k({PARAMETERS})\n{{ {code} }}\n"


def judged(folder: Path, ptx: str, does: Any = multiply) -> ValidationOutcome:
    judge = Judge(setup(folder, contract=LARGE))
    return judge.judge_candidate(built(), Binary(ptx=ptx, cubin=b""), plan(), FakeRunner(does))


def found(folder: Path, ptx: str, tried: LaunchPlan | None = None, abi: Abi = "pointer") -> Derived:
    return ways_inside(setup(folder, contract=LARGE), tried or plan(), Module(read(ptx), abi), cases().cases)


ONE_SIZE = "setp.eq.s32 %p, %m, 777;"


def test_a_size_that_a_kernel_compares_with_is_run(tmp_path: Path) -> None:
    right = judged(tmp_path, kernel(ONE_SIZE))
    assert isinstance(right, Validated)
    assert any(verdict.dimensions["m"] == 777 and verdict.draws == 5 for verdict in right.cases)
    assert all(finding.reason is not Reason.NEEDS_REVIEW for finding in right.unchecked)
    wrong = judged(tmp_path, kernel(ONE_SIZE), wrong_at(m=777))
    assert isinstance(wrong, Invalid)
    assert wrong.reason is Reason.WRONG_VALUES
    assert wrong.detail.startswith("case variant_777_")


def test_a_way_that_only_shapes_run_once_take_gets_every_draw_too(tmp_path: Path) -> None:
    right = judged(tmp_path, kernel("setp.gt.s32 %p, %m, 3000;"))
    assert isinstance(right, Validated)
    (made,) = [verdict for verdict in right.cases if verdict.case.startswith("variant_")]
    assert made.dimensions["m"] > 3000
    assert made.draws == 5
    assert all(finding.reason is not Reason.NEEDS_REVIEW for finding in right.unchecked)


def test_a_way_that_only_dear_shapes_take_is_left_to_those_that_are_run_once(tmp_path: Path) -> None:
    dear = kernel("mul.lo.s32 %r2, %m, %k; setp.gt.s32 %p, %r2, 200000;")
    asked = found(tmp_path, dear)
    assert asked.cases  # beside no far shape: run once, as it is dear
    assert asked.once == {case.name for case in asked.cases}
    shape = asked.cases[0].dimensions
    cases_once = (msgspec.structs.replace(cases().cases[0], name="far", dimensions=shape),)
    judge = setup(tmp_path, contract=LARGE)
    beside = ways_inside(judge, plan(), Module(read(dear), "pointer"), cases().cases, cases_once)
    assert beside.cases == beside.unchecked == ()


@pytest.mark.parametrize(
    "condition",
    [
        "mul.lo.s32 %r2, %m, %n; setp.eq.s32 %p, %r2, 5000011;",
        "mul.lo.s32 %r2, %m, -1640531535; shr.u32 %r3, %r2, 18; setp.eq.s32 %p, %r3, 12345;",
        "cvt.rn.f32.s32 %f1, %m; setp.eq.f32 %p, %f1, 0f44424000;",
        "setp.gt.s32 %p1, %m, 8000; setp.gt.s32 %p2, %n, 8000; and.pred %p3, %p1, %p2; "
        "setp.gt.and.s32 %p, %k, 8000, %p3;",
    ],
)
def test_what_no_case_can_be_made_for_asks_for_a_person(tmp_path: Path, condition: str) -> None:
    outcome = judged(tmp_path, kernel(condition))
    assert isinstance(outcome, Validated)
    (review,) = [finding for finding in outcome.unchecked if finding.reason is Reason.NEEDS_REVIEW]
    assert review.detail.startswith("line 42 of k")


@pytest.mark.parametrize(
    "condition",
    ["setp.gt.s32 %p, %m, 8192;", "setp.lt.s32 %p, %m, 9;", "and.b32 %r2, %n, 3; setp.eq.s32 %p, %r2, 0;"],
)
def test_what_cases_take_both_ways_or_no_shape_can_needs_no_case(tmp_path: Path, condition: str) -> None:
    assert found(tmp_path, kernel(condition)) == Derived()


def test_sizes_that_the_plan_makes_are_followed_too(tmp_path: Path) -> None:
    usual = plan().variants[0].launches[0]
    changed = Launch(
        entry="k", grid=("ceil_div(m, 32)", "1", "1"), block=("32", "1", "1"), args=(*usual.args[:5], "int32(k - 1)")
    )
    tried = LaunchPlan(variants=(Variant(launches=(changed,)),))
    blocks = found(tmp_path, kernel("mov.u32 %r2, %nctaid.x; setp.eq.s32 %p, %r2, 100;"), tried)
    assert [3168 < case.dimensions["m"] <= 3200 for case in blocks.cases] == [True]
    less = found(tmp_path, kernel("setp.eq.s32 %p, %k, 700;"), tried)
    assert [case.dimensions["k"] for case in less.cases] == [701]


def test_extents_that_numba_hands_over_are_followed(tmp_path: Path) -> None:
    """A matrix is nine words: 0, 0, elements, bytes of one, the address, two extents, two strides."""
    parameters = ", ".join(f".param .u64 k_{n}" for n in range(30))
    code = "ld.param.u64 %rd1, [k_6]; setp.eq.s64 %p, %rd1, 345; @%p bra OUT; add.s64 %rd2, %rd1, 1; OUT: ret;"
    ptx = f"{HEAD}.visible .entry k({parameters})\n{{ {code} }}\n"
    assert [case.dimensions["k"] for case in found(tmp_path, ptx, abi="numba_array").cases] == [345]


def test_a_kernel_of_many_ways_gets_so_many_cases_and_no_more(tmp_path: Path) -> None:
    many = "".join(f"setp.eq.s32 %p{n}, %m, {n + 100}; @%p{n} ret;" for n in range(40))
    outcome = found(tmp_path, kernel(many + ONE_SIZE))
    assert len(outcome.cases) == 12
    assert any("too many ways" in finding.detail for finding in outcome.unchecked)
    assert outcome.unchecked[-1].detail == "13 more ways through the kernels that no case takes"


PLACE = "mov.u32 %r5, %ctaid.x; mov.u32 %r6, %tid.x; mad.lo.s32 %r7, %r5, 32, %r6;"


@pytest.mark.parametrize(
    ("condition", "least"),
    [
        ("setp.eq.s32 %p, %r7, 3000;", {"m": 3001}),
        ("setp.eq.s32 %p1, %r7, 300; setp.eq.and.s32 %p, %n, 400, %p1;", {"m": 301, "n": 400}),
        ("setp.lt.s32 %p, %r7, %m;", {}),
        ("setp.eq.s32 %p, %r6, 31;", {}),
        ("setp.gt.s32 %p, %r6, 31;", {}),
    ],
)
def test_a_threads_place_that_no_case_has_gets_a_case_that_is_run_once(
    tmp_path: Path, condition: str, least: dict[str, int]
) -> None:
    usual = plan().variants[0].launches[0]
    rows = Launch(entry="k", grid=("ceil_div(m, 32)", "1", "1"), block=("32", "1", "1"), args=usual.args)
    guard = "setp.ge.s32 %p9, %r7, %m; @%p9 ret;" if least else ""
    made = found(tmp_path, kernel(f"{PLACE} {guard} {condition}"), LaunchPlan(variants=(Variant(launches=(rows,)),)))
    assert made.unchecked == ()
    assert len(made.cases) == (1 if least else 0)
    assert made.once == {case.name for case in made.cases}
    assert all(case.dimensions[name] >= size for case in made.cases for name, size in least.items())


def test_the_fast_way_of_a_wide_division_needs_no_person(tmp_path: Path) -> None:
    """The compiler asks whether both fit into 32 bits; what sizes can be says that they always do."""
    wide = "cvt.u64.u32 %rd1, %m; or.b64 %rd2, %rd1, 1; and.b64 %rd3, %rd2, -4294967296; setp.ne.s64 %p, %rd3, 0;"
    assert found(tmp_path, kernel(wide)) == Derived()


def test_an_entry_without_a_name_ends_nothing(tmp_path: Path) -> None:
    assert found(tmp_path, f"{HEAD}.visible .entry\n{{ ret; }}\n") == Derived()


@pytest.mark.parametrize(
    "many",
    [
        "".join(f"setp.eq.s32 %p{n}, %m, {n % 8000 + 100}; @%p{n} ret;" for n in range(2500)),
        "add.s32 %r1, %r2, 1;" * 100_001,
    ],
)
def test_what_is_too_long_to_be_followed_asks_for_a_person(tmp_path: Path, many: str) -> None:
    """A kernel can be made so long that following it would take hours."""
    outcome = found(tmp_path, kernel(many + ONE_SIZE))
    assert any("more code, or more ways" in finding.detail for finding in outcome.unchecked)
    assert len(outcome.unchecked) <= 17
