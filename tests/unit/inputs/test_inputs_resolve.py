"""Launch plans in numbers, and what is wrong with plans as findings."""

import struct
from decimal import Decimal

import pytest

from kerneltrial.inputs.calls import Pointer, Scalar
from kerneltrial.inputs.resolve import PlanProblem, parameter_sizes, resolve
from kerneltrial.records.contract import Array, Contract, DimensionArgument, Range, ScalarArgument, Tolerance
from kerneltrial.records.plan import Launch, LaunchPlan, Scratch, Variant
from kerneltrial.records.reason import Reason

CONTRACT = Contract(
    name="scaled",
    description="",
    arguments=(
        Array(name="x", role="input", dtype="float32", shape=("m", "k")),
        Array(name="y", role="inout", dtype="bfloat16", shape=("m",)),
        Array(name="z", role="output", dtype="float64", shape=("m", "k", "2")),
        DimensionArgument(name="m"),
        DimensionArgument(name="k", dtype="int64"),
        ScalarArgument(name="alpha", dtype="float32", value=Decimal("-1.5")),
        ScalarArgument(name="beta", dtype="float64", value=Decimal("0.1")),
        ScalarArgument(name="shift", dtype="int32", value=Decimal(-7)),
    ),
    dimensions={
        "m": Range(minimum=1, maximum=9999),
        "k": Range(minimum=1, maximum=9999),
        "free": Range(minimum=1, maximum=9),
    },
    tolerances={"y": Tolerance(), "z": Tolerance()},
    operations="m*k",
    bytes="4*m*k",
)
DIMENSIONS = {"m": 31, "k": 29, "free": 5}


def plan(scratch: tuple[Scratch, ...] = (), when: str = "1", **launch: object) -> LaunchPlan:
    usual: dict[str, object] = {"entry": "f", "grid": ("1", "1", "1"), "block": ("32", "1", "1"), "args": ("x",)}
    return LaunchPlan(variants=(Variant(when=when, launches=(Launch(**{**usual, **launch}),)),), scratch=scratch)  # type: ignore[arg-type]


def finding(broken: LaunchPlan, dimensions: dict[str, int] | None = None) -> tuple[Reason, str]:
    with pytest.raises(PlanProblem) as caught:
        resolve(broken, CONTRACT, dimensions or DIMENSIONS, "pointer")
    assert "\n" not in caught.value.finding.detail
    return caught.value.finding.reason, caught.value.finding.detail


def test_every_kind_of_argument_becomes_its_parameter() -> None:
    part = Scratch(name="part", dtype="float32", elements="m * 2", initial="uninitialised")
    args = (
        "z",
        "x",
        "part",
        "m",
        "k",
        "alpha",
        "beta",
        "shift",
        "int32(m * k)",
        "int64(-free)",
        "int32(ceil_div(m, 4))",
    )
    call = resolve(plan((part,), args=args, shared_bytes="4 * free"), CONTRACT, DIMENSIONS, "pointer")
    launch = call.launches[0]
    assert launch.parameters == (
        Pointer(buffer="z"),
        Pointer(buffer="x"),
        Pointer(buffer="part"),
        Scalar(bytes=4, bits=31),
        Scalar(bytes=8, bits=29),
        Scalar(bytes=4, bits=struct.unpack("<I", struct.pack("<f", -1.5))[0]),
        Scalar(bytes=8, bits=struct.unpack("<Q", struct.pack("<d", 0.1))[0]),
        Scalar(bytes=4, bits=2**32 - 7),
        Scalar(bytes=4, bits=31 * 29),
        Scalar(bytes=8, bits=2**64 - 5),
        Scalar(bytes=4, bits=8),
    )
    assert launch.shared_bytes == 20
    buffers = {buffer.name: buffer for buffer in call.buffers}
    assert [(b.name, b.role, b.initial) for b in call.buffers] == [
        ("x", "input", "given"),
        ("y", "inout", "given"),
        ("z", "output", "poisoned"),
        ("part", "scratch", "poisoned"),
    ]
    assert buffers["z"].shape == (31, 29, 2)
    assert buffers["part"].shape == (62,)


def test_numba_flattens_arrays() -> None:
    part = Scratch(name="part", dtype="int8", elements="m * 2", initial="zeroed")
    made = plan((part,), args=("z", "part", "m"))
    call = resolve(made, CONTRACT, DIMENSIONS, "numba_array")
    found = [p.bits if isinstance(p, Scalar) else p.buffer for p in call.launches[0].parameters]
    assert found == [
        *(0, 0, 31 * 29 * 2, 8, "z", 31, 29, 2, 29 * 2 * 8, 2 * 8, 8),
        *(0, 0, 62, 1, "part", 62, 1),
        31,
    ]
    assert parameter_sizes(made, CONTRACT, "numba_array") == {"f": (8,) * 11 + (8,) * 7 + (4,)}
    assert {b.name: b.initial for b in call.buffers}["part"] == "zeroed"


def test_sizes_of_parameters_need_no_dimensions() -> None:
    made = plan(args=("x", "m", "k", "beta", "int32(m)", "int64(m)"))
    assert parameter_sizes(made, CONTRACT, "pointer") == {"f": (8, 4, 8, 8, 4, 8)}


def test_one_entry_with_two_signatures_is_a_bad_plan() -> None:
    first, second = plan(args=("x", "m")), plan(args=("x", "k"))
    both = LaunchPlan(variants=(*first.variants, *second.variants))
    with pytest.raises(PlanProblem, match="different parameters"):
        parameter_sizes(both, CONTRACT, "pointer")


def test_the_first_variant_that_matches_is_taken() -> None:
    vector, scalar = plan(when="k % 4 == 0", entry="vector"), plan(entry="scalar")
    both = LaunchPlan(variants=(*vector.variants, *scalar.variants))
    assert resolve(both, CONTRACT, {**DIMENSIONS, "k": 32}, "pointer").launches[0].entry == "vector"
    assert resolve(both, CONTRACT, DIMENSIONS, "pointer").launches[0].entry == "scalar"


def test_no_variant_is_a_reason_of_its_own() -> None:
    reason, detail = finding(plan(when="k % 4 == 0"))
    assert reason is Reason.NO_LAUNCH_FOR_SHAPE
    assert "k=29" in detail


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"args": ("q",)}, ["unknown argument 'q'", "x, y, z", "int32(...)"]),
        ({"args": ("free",)}, ["int32(free)"]),
        ({"args": ("int32(q)",)}, ["q"]),
        ({"args": ("int16(m)",)}, ["unknown argument"]),
        ({"args": ("int32(m * 2**9)",)}, ["**"]),
        ({"args": ("int32(m * 1000000000)",)}, ["does not fit int32"]),
        ({"args": ("int32(m), int32(k)",)}, ["int32"]),
        ({"args": ("x; import os",)}, ["unknown argument"]),
        ({"grid": ("0", "1", "1")}, ["grid", "[0, 1, 1]"]),
        ({"grid": ("-m", "1", "1")}, ["grid"]),
        ({"grid": ("2147483648", "1", "1")}, ["grid"]),
        ({"grid": ("1", "65536", "1")}, ["grid"]),
        ({"grid": ("9**9**9", "1", "1")}, ["**"]),
        ({"grid": ("m // (k - 29)", "1", "1")}, ["divides by zero"]),
        ({"block": ("1025", "1", "1")}, ["block"]),
        ({"block": ("1", "1", "65")}, ["block"]),
        ({"block": ("64", "32", "1")}, ["2048 threads"]),
        ({"block": ("0", "1", "1")}, ["block"]),
        ({"cluster": ("17", "1", "1"), "grid": ("17", "1", "1")}, ["cluster"]),
        ({"cluster": ("0", "1", "1")}, ["cluster"]),
        ({"cluster": ("2", "1", "1"), "grid": ("3", "1", "1")}, ["no multiple of cluster"]),
        ({"shared_bytes": "227 * 1024 + 1"}, ["shared_bytes", "232448"]),
        ({"shared_bytes": "-1"}, ["shared_bytes"]),
        ({"when": "q"}, ["when", "q"]),
    ],
)
def test_what_is_beyond_the_limits_is_a_bad_plan(changes: dict[str, object], words: list[str]) -> None:
    reason, detail = finding(plan(**changes))  # type: ignore[arg-type]
    assert reason is Reason.BAD_PLAN
    assert all(word in detail for word in words), detail


def test_limits_themselves_are_allowed() -> None:
    made = plan(
        grid=("2147483647", "65535", "65535"),
        block=("16", "1", "64"),
        shared_bytes="232448",
        args=("int32(2147483647)",),
    )
    launch = resolve(made, CONTRACT, DIMENSIONS, "pointer").launches[0]
    assert launch.grid == (2147483647, 65535, 65535)


@pytest.mark.parametrize(
    ("scratch", "words"),
    [
        ({"name": "x"}, "name of another"),
        ({"name": "free"}, "name of another"),
        ({"elements": "0"}, "0 elements"),
        ({"elements": "2305843009213693952"}, "elements"),
        ({"elements": "q"}, "q"),
    ],
)
def test_scratch_is_checked(scratch: dict[str, str], words: str) -> None:
    part = Scratch(**{"name": "part", "dtype": "int64", "elements": "1", "initial": "zeroed", **scratch})  # type: ignore[arg-type]
    reason, detail = finding(plan((part,)))
    assert reason is Reason.BAD_PLAN
    assert words in detail


def test_two_scratch_buffers_of_one_name() -> None:
    part = Scratch(name="part", dtype="int8", elements="1", initial="zeroed")
    assert "name of another" in finding(plan((part, part)))[1]


def test_a_fault_in_a_variant_that_is_not_taken_is_found_too() -> None:
    broken, good = plan(when="0", args=("q",)), plan()
    assert "unknown argument" in finding(LaunchPlan(variants=(*good.variants, *broken.variants)))[1]
