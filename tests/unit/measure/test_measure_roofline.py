"""Floors against closed forms, and the latencies that they call into question."""

from decimal import Decimal

import pytest

from kerneltrial.measure.roofline import floor_of, share, under_floor
from kerneltrial.records.contract import Array, Contract, DimensionArgument, Range, Tolerance
from kerneltrial.records.reason import Reason
from kerneltrial.records.roofline import Ceilings, Floor, NoCeilings, NoFloor, Share

CARD = Ceilings(
    dram_bytes_per_s=4e12,
    l2_bytes_per_s=8e12,
    l2_bytes=60_000_000,
    fp32_flop_per_s=60e12,
    fp64_flop_per_s=30e12,
    launch_us=1.2,
    readings={},
    device_state={},
)


def contract(dtype="float32", operations="2*n", nbytes="8*n", **more) -> Contract:
    arrays = tuple(
        Array(name=name, role=role, dtype=dtype, shape=("n",)) for name, role in (("x", "input"), ("y", "output"))
    )
    return Contract(
        name="c",
        description="",
        arguments=(*arrays, DimensionArgument(name="n")),
        dimensions={"n": Range(minimum=1, maximum=10**9)},
        tolerances={"y": Tolerance(relative=Decimal("1e-5"))},
        operations=operations,
        bytes=nbytes,
        **more,
    )


def test_what_fits_in_the_l2_is_bounded_by_the_l2():
    floor = floor_of(contract(), {"n": 1_000_000}, CARD)
    assert isinstance(floor, Floor)
    assert floor.bound == "cache"
    assert floor.floor_us == pytest.approx(1.0)  # 8 MB at 8 TB/s


def test_what_does_not_fit_is_bounded_by_dram_beyond_the_l2():
    floor = floor_of(contract(), {"n": 100_000_000}, CARD)
    assert isinstance(floor, Floor)
    assert floor.bound == "dram"
    assert floor.floor_us == pytest.approx((800e6 - 60e6) / 4e12 * 1e6)


@pytest.mark.parametrize(("dtype", "bound", "us"), [("float32", "fp32", 10.0), ("float64", "fp64", 20.0)])
def test_arithmetic_is_bounded_by_the_unit_of_the_type(dtype, bound, us):
    floor = floor_of(contract(dtype, operations="600*n"), {"n": 1_000_000}, CARD)
    assert isinstance(floor, Floor)
    assert (floor.bound, floor.floor_us) == (bound, pytest.approx(us))


@pytest.mark.parametrize(
    "one",
    [
        contract("float16", operations="600000*n"),
        contract("int32", operations="600000*n"),
        contract(operations="600000*n", tf32=True),
    ],
)
def test_units_that_were_not_measured_do_not_bound(one):
    floor = floor_of(one, {"n": 1_000_000}, CARD)
    assert isinstance(floor, Floor)
    assert floor.bound == "cache"
    assert "not measured" in floor.assumes


def test_without_ceilings_or_work_there_is_no_floor():
    assert floor_of(contract(), {"n": 5}, NoCeilings(why="no clock")) == NoFloor(why="no clock")
    nothing = floor_of(contract(operations="0*n", nbytes="0*n"), {"n": 5}, CARD)
    assert isinstance(nothing, NoFloor)


def test_the_share_is_floor_over_latency():
    found = share(Floor(floor_us=2.0, bound="fp32", assumes=""), 4.0, 8.0)
    assert found == Share(floor_us=2.0, bound="fp32", candidate=0.5, baseline=0.25)
    assert share(NoFloor(why="x"), 4.0, 8.0) == NoFloor(why="x")


def test_a_latency_under_the_floor_asks_for_review_and_one_within_its_uncertainty_does_not():
    floor = Floor(floor_us=10.0, bound="dram", assumes="every byte moves once")
    found = under_floor("big", 9.0, floor)
    assert found is not None
    assert found.reason is Reason.UNDER_ROOFLINE
    assert "big" in found.detail
    assert "every byte moves once" in found.detail
    assert under_floor("big", 9.85, floor) is None
    assert under_floor("big", 11.0, floor) is None
    assert under_floor("big", 0.1, NoFloor(why="")) is None
