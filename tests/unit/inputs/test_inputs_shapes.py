"""Boundary shapes and the sealed draw."""

from pathlib import Path

import msgspec
import pytest

from kerneltrial.inputs.boundary import SHARE, boundary_cases, boundary_shapes
from kerneltrial.inputs.cases import read_cases
from kerneltrial.inputs.contracts import check_dimensions, read_contract
from kerneltrial.inputs.expressions import evaluate
from kerneltrial.inputs.far import THREADS, draw_of, far_cases, out_of_reach, reaches, sealed_far_cases
from kerneltrial.inputs.holdout import commitment, draw_holdout, read_holdout
from kerneltrial.inputs.values import ROTATION, distribution_of
from kerneltrial.records.case import Case, Cases, Distribution, Generated, HoldoutDomain
from kerneltrial.records.contract import Array, Contract, Range, Tolerance

CLONE = Path(__file__).resolve().parents[3]
MATMUL = read_contract(CLONE / "kernels/matmul_f32/contract.yaml")
CASES = read_cases(CLONE / "cases/matmul_f32/cases.yaml")
DOMAIN = read_holdout(CLONE / "cases/matmul_f32/holdout.yaml")
SALT = b"0123456789abcdef"


def narrow_contract(minimum: int, maximum: int, multiple_of: int = 1) -> Contract:
    return Contract(
        name="narrow",
        description="",
        arguments=(Array(name="y", role="output", dtype="float32", shape=("n",)),),
        dimensions={"n": Range(minimum=minimum, maximum=maximum, multiple_of=multiple_of)},
        tolerances={"y": Tolerance()},
        operations="n",
        bytes="4*n",
    )


def one_case(n: int) -> Cases:
    return Cases(cases=(Case(name="p", kind="performance", dimensions={"n": n}),))


def test_twelve_boundary_shapes_of_the_matmul() -> None:
    shapes = boundary_shapes(MATMUL, CASES, 12, 1)
    assert len(shapes) == 12
    assert {"m": 1, "n": 1, "k": 1} in shapes
    for size in (31, 32, 33, 34):
        assert {"m": size, "n": size, "k": size} in shapes
    for name in ("m", "n", "k"):
        assert any(s[name] == 1 and min(v for d, v in s.items() if d != name) > 30 for s in shapes), "thin"
        assert any(s[name] > 1000 and max(v for d, v in s.items() if d != name) < 25 for s in shapes), "long"
        others_round = [s for s in shapes if all(v % 8 == 0 for d, v in s.items() if d != name)]
        assert {s[name] % 4 for s in others_round if s[name] > 1} & {1, 2, 3}, "alone no multiple"


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_boundary_shapes_are_new_within_the_domain_and_cheap(seed: int) -> None:
    shapes = boundary_shapes(MATMUL, CASES, 60, seed)
    assert len(shapes) == 60
    assert len({tuple(sorted(s.items())) for s in shapes}) == 60
    limit = max(2**21, max(evaluate(MATMUL.operations, c.dimensions) for c in CASES.cases) // SHARE)
    for shape in shapes:
        check_dimensions(MATMUL, shape)
        assert shape not in [c.dimensions for c in CASES.cases]
        assert evaluate(MATMUL.operations, shape) <= limit


def test_boundary_shapes_depend_on_the_seed_alone() -> None:
    assert boundary_shapes(MATMUL, CASES, 30, 1) == boundary_shapes(MATMUL, CASES, 30, 1)
    assert boundary_shapes(MATMUL, CASES, 30, 1) != boundary_shapes(MATMUL, CASES, 30, 2)
    assert boundary_shapes(MATMUL, CASES, 0, 1) == []


def test_a_small_domain_gives_what_it_has() -> None:
    shapes = boundary_shapes(narrow_contract(16, 64, 16), one_case(32), 12, 1)
    assert sorted(s["n"] for s in shapes) == [16, 48, 64]


def test_a_domain_of_one_shape_gives_none() -> None:
    assert boundary_shapes(narrow_contract(32, 32), one_case(32), 12, 1) == []


def test_a_domain_that_is_too_dear_gives_none() -> None:
    assert boundary_shapes(narrow_contract(10**8, 10**9), one_case(10**8), 12, 1) == []


def test_boundary_cases_have_names_and_shapes() -> None:
    cases = boundary_cases([{"n": 1}, {"n": 7}], 5)
    assert [(c.name, c.kind, c.dimensions, c.seed) for c in cases] == [
        ("boundary_1", "correctness", {"n": 1}, 5),
        ("boundary_2", "correctness", {"n": 7}, 5),
    ]


def test_a_holdout_depends_on_salt_and_candidate() -> None:
    first = draw_holdout(DOMAIN, MATMUL, SALT, "a" * 64)
    assert draw_holdout(DOMAIN, MATMUL, SALT, "a" * 64) == first
    assert draw_holdout(DOMAIN, MATMUL, SALT, "b" * 64) != first
    assert draw_holdout(DOMAIN, MATMUL, SALT[::-1], "a" * 64) != first


def test_a_holdout_keeps_to_its_domain() -> None:
    seen: set[int] = set()
    for candidate in range(200):
        cases = draw_holdout(DOMAIN, MATMUL, SALT, f"{candidate:064x}")
        assert len(cases) == DOMAIN.count
        assert len({c.name for c in cases}) == DOMAIN.count
        assert len({c.seed for c in cases}) == DOMAIN.count
        for number, case in enumerate(cases):
            check_dimensions(MATMUL, case.dimensions)
            assert all(1 <= v <= 200 for v in case.dimensions.values())
            source = Generated(distribution=DOMAIN.distributions[number % 3])
            assert case.inputs == {"a": source, "b": source}
            seen |= set(case.dimensions.values())
    assert len(seen) > 150
    assert {1, 2, 3, 200} <= seen


def test_a_holdout_keeps_multiples_of_both() -> None:
    contract = narrow_contract(1, 1000, 4)
    domain = HoldoutDomain(dimensions={"n": Range(minimum=5, maximum=50, multiple_of=6)}, count=64)
    values = {c.dimensions["n"] for c in draw_holdout(domain, contract, SALT, "c")}
    assert values == {12, 24, 36, 48}


def test_a_short_salt_is_a_fault_of_the_caller() -> None:
    with pytest.raises(ValueError, match="salt"):
        draw_holdout(DOMAIN, MATMUL, b"short", "a")


def test_the_commitment_is_the_salts_digest() -> None:
    assert commitment(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_each_dimension_of_the_matmul_is_taken_to_the_contracts_maximum() -> None:
    shapes = {case.name: case.dimensions for case in far_cases(MATMUL, CASES, 1)}
    assert shapes["far_m"] == {"m": 8192, "n": 1, "k": 3}
    assert shapes["far_n"] == {"m": 1, "n": 8192, "k": 3}
    assert shapes["far_k"] == {"m": 1, "n": 3, "k": 8192}
    between = [far_cases(MATMUL, CASES, seed)[5].dimensions["k"] for seed in range(40)]
    assert all(320 < k < 8192 for k in between)
    assert min(between) < 600 < 1000 < 2000 < max(between)
    assert out_of_reach(MATMUL, CASES) == ()


def test_a_dimension_that_is_too_dear_stops_short_and_that_is_told() -> None:
    contract = narrow_contract(1, 10**9, 3)
    (far, middle) = far_cases(contract, one_case(30), 1)
    assert far.dimensions["n"] == 2**20 // 3 * 3
    assert 30 < middle.dimensions["n"] < far.dimensions["n"]
    assert out_of_reach(contract, one_case(30)) == ("n above 1,048,575 (the contract allows 999,999,999)",)
    assert far_cases(contract, one_case(3 * 10**7), 1) == ()
    assert out_of_reach(contract, one_case(3 * 10**7)) == ("n above 30,000,000 (the contract allows 999,999,999)",)


def test_a_far_shape_has_sharp_values_and_one_between_an_odd_size_and_normal_ones() -> None:
    """What a kernel does for its size alone may be right for normal values and for no others."""
    found = far_cases(MATMUL, CASES, 1)
    assert [case.name for case in found] == ["far_m", "middle_m", "far_n", "middle_n", "far_k", "middle_k"]
    own = [{distribution_of(case, 0, name) for name in "ab"} for case in found]
    assert own[::2] == [{Distribution.INTEGERS}, {Distribution.WIDE}, {Distribution.INTEGERS}]
    assert own[1::2] == [{Distribution.NORMAL}] * 3
    for seed in range(20):
        for name, case in zip("mnk", far_cases(MATMUL, CASES, seed)[1::2], strict=True):
            assert case.dimensions[name] % 2 == 1


def test_a_sealed_far_shape_has_the_values_of_a_draw_that_its_seed_chooses() -> None:
    draws = {
        draw_of(case) for n in range(20) for case in sealed_far_cases(MATMUL, reaches(MATMUL, CASES), SALT, f"{n:064x}")
    }
    assert draws == set(range(len(ROTATION)))
    assert {draw_of(case) for case in far_cases(MATMUL, CASES, 1)} == {0}


def test_a_far_shape_leaves_room_for_a_warp_an_output() -> None:
    spmv = read_contract(CLONE / "kernels/spmv_csr_f32/contract.yaml")
    small = one_case(8).cases[0]
    cases = Cases(cases=(msgspec.structs.replace(small, dimensions={"rows": 9, "cols": 9, "entries": 9}),))
    far = {case.name: case.dimensions for case in far_cases(spmv, cases, 1)}
    assert far["far_rows"]["rows"] == THREADS // 32


def test_a_dimension_that_the_cases_exhaust_has_no_far_shape() -> None:
    assert far_cases(narrow_contract(1, 100, 16), one_case(96), 1) == ()
    assert [case.dimensions["n"] for case in far_cases(narrow_contract(1, 100, 16), one_case(80), 1)] == [96]


def test_sealed_far_shapes_hang_on_salt_and_candidate_and_lie_beyond_the_cases() -> None:
    first = sealed_far_cases(MATMUL, reaches(MATMUL, CASES), SALT, "a" * 64)
    assert first == sealed_far_cases(MATMUL, reaches(MATMUL, CASES), SALT, "a" * 64)
    assert first != sealed_far_cases(MATMUL, reaches(MATMUL, CASES), SALT, "b" * 64)
    public = {"m": 384, "n": 256, "k": 320}
    for number in range(50):
        for name, case in zip(
            "mnk", sealed_far_cases(MATMUL, reaches(MATMUL, CASES), SALT, f"{number:064x}"), strict=True
        ):
            check_dimensions(MATMUL, case.dimensions)
            assert public[name] < case.dimensions[name] <= 8192
            assert max(size for other, size in case.dimensions.items() if other != name) < 10
