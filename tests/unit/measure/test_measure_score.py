"""The cost from counts: near what a card measured, monotone, and right about known trade-offs."""

import json
from itertools import combinations
from math import log
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerneltrial.measure.score import resident_blocks, score
from kerneltrial.records.counts import Counts

FIELDS = ["global_transactions", "shared_accesses", "shared_conflicts", "barriers"]
CLOCK_MHZ = 1980.0
# Matmuls as counted by the cpu device, with the medians of warm graph timings on an H200 (tests/gpu/kernels/matmul.cu
# and kernels/matmul_f32 as of 2026-12-01).
MEASURED = json.loads((Path(__file__).parent / "measured_on_h200.json").read_text())


def counts(**more) -> Counts:
    usual = {
        "instructions": {"fp32": 10_000_000, "integer": 2_000_000, "load_shared": 500_000},
        "global_transactions": 100_000,
        "shared_accesses": 200_000,
        "shared_conflicts": 0,
        "barriers": 16 * 264,
        "blocks": 264,
        "threads_per_block": 256,
        "shared_bytes": 8192,
    }
    return Counts(**(usual | more))


def as_counts(row: dict) -> Counts:
    return msgspec.convert(row["counts"], Counts)


@pytest.mark.parametrize("row", MEASURED, ids=lambda row: f"{row['kernel']}-{row['shape']}")
def test_the_score_is_near_the_clocks_that_a_card_took(row):
    assert score(as_counts(row)) == pytest.approx(row["us"] * CLOCK_MHZ, rel=0.13)


def test_the_score_ranks_kernels_of_a_shape_as_the_card_does():
    pairs = [(a, b) for a, b in combinations(MEASURED, 2) if a["shape"] == b["shape"]]
    clear = [(a, b) for a, b in pairs if abs(log(a["us"] / b["us"])) > log(1.1)]
    right = [(a["us"] < b["us"]) == (score(as_counts(a)) < score(as_counts(b))) for a, b in clear]
    assert len(clear) >= 10
    assert sum(right) >= 0.9 * len(right)


def test_the_score_is_positive_and_the_same_every_time():
    assert score(counts()) == score(counts()) > 0


@pytest.mark.parametrize("field", FIELDS)
@given(factor=st.integers(2, 1000))
def test_more_of_anything_is_never_cheaper(field, factor):
    one = counts(shared_conflicts=1000)
    more = counts(**({"shared_conflicts": 1000} | {field: factor * getattr(one, field)}))
    assert score(more) >= score(one)


@pytest.mark.parametrize("name", ["fp32", "integer", "load_global", "special", "a class of its own"])
def test_many_more_instructions_cost_more(name):
    assert score(counts(instructions={name: 100_000_000})) > score(counts(instructions={name: 1_000_000}))


def test_moves_are_free():
    work = {"fp32": 10_000_000}
    assert score(counts(instructions=work | {"move": 10**9, "load_param": 10**9})) == score(counts(instructions=work))


def test_stores_and_shared_loads_share_one_unit():
    apart = counts(instructions={"store_global": 10**8, "load_shared": 10**8})
    assert score(apart) == score(counts(instructions={"load_shared": 2 * 10**8}))


def test_heavy_bank_conflicts_cost():
    assert score(counts(shared_conflicts=31 * 200_000)) > 2 * score(counts())


def test_work_in_one_block_costs_more_than_the_same_work_in_many():
    assert score(counts(blocks=1, barriers=16)) > 10 * score(counts())


def test_a_block_more_than_fits_a_wave_costs_a_wave():
    full = {"threads_per_block": 1024, "instructions": {"fp32": 10**9}}
    whole, over = (counts(blocks=blocks, barriers=blocks, **full) for blocks in (264, 265))
    assert 1.4 < score(over) / score(whole) < 1.6


def test_special_functions_cost_more_than_additions():
    assert score(counts(instructions={"special": 10**8})) > 2 * score(counts(instructions={"fp32": 10**8}))


@pytest.mark.parametrize(
    ("threads", "shared", "blocks"),
    [(1024, 0, 2), (256, 0, 8), (32, 0, 32), (256, 100 * 1024, 2), (256, 227 * 1024, 1)],
)
def test_resident_blocks_follow_the_limits_of_compute_capability_9(threads, shared, blocks):
    assert resident_blocks(threads, shared) == blocks
