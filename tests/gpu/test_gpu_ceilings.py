"""Ceilings on a card: they repeat, they lie above what a kernel reaches, and stay within what a data sheet allows."""

import pytest
from test_gpu_run import factors, product
from test_gpu_timing import medians, request_of

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def ceilings(card):
    return card.ceilings()


def test_ceilings_repeat_within_three_percent(card, ceilings):
    again = card.ceilings()
    for name in ("dram_bytes_per_s", "l2_bytes_per_s", "fp32_flop_per_s", "fp64_flop_per_s"):
        assert getattr(again, name) == pytest.approx(getattr(ceilings, name), rel=0.03), name


def test_arithmetic_comes_near_the_units_peak_and_not_above(card, ceilings):
    print(ceilings)
    major, minor = card.device.arch.removeprefix("sm_").rstrip("a")[:-1], card.device.arch.rstrip("a")[-1]
    per_clock = {("9", "0"): (256, 128), ("8", "0"): (128, 64)}.get((major, minor))
    if per_clock is None or card.device.fingerprint["nvml"] != "read":
        pytest.skip("the peak of this card is not known here")
    clock = float(card.device.fingerprint["sm_clock_limit_mhz"]) * 1e6
    units = clock * int(card.device.fingerprint["multiprocessors"])
    assert 0.80 * units * per_clock[0] < ceilings.fp32_flop_per_s <= 1.01 * units * per_clock[0]
    assert 0.70 * units * per_clock[1] < ceilings.fp64_flop_per_s <= 1.01 * units * per_clock[1]


def test_the_l2_is_faster_than_dram_and_a_launch_takes_about_a_microsecond(ceilings):
    assert ceilings.l2_bytes_per_s > 1.1 * ceilings.dram_bytes_per_s
    assert 0.3 < ceilings.launch_us < 5


def test_no_kernel_is_under_its_floor(card, matmul, ceilings):
    shape = (1024, 1024, 1024)
    call = product("blocked", *shape)
    samples = card.time(request_of(matmul, call, matmul, call, rounds=10), [factors(*shape)])
    floor_us = 2 * 1024**3 / ceilings.fp32_flop_per_s * 1e6
    assert medians(samples)["a"] > floor_us
