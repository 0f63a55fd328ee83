"""The pool of processes: recorded through real runners on a pretended card, written, and judged as one of a card."""

import gzip
import json
from math import log
from statistics import median

import false_alarms
import process_pool
import pytest
from process_pool import PAIRS, Recording, pairs_of, record, show, written

from kerneltrial.devices.device import Binary
from kerneltrial.sandbox.nursery import Nursery

PROCESSES = 44  # more than two batches
CODE = dict.fromkeys(("matmul.cu", "streams.cu"), Binary(ptx="", cubin=b"x"))
RATIOS = {"clones": 0.0, "scaled": log(1.02), "slower_2": -log(1.02), "slower_0_5": -log(1.005)}


def recording(**more) -> Recording:
    usual = {"processes": PROCESSES, "rounds": 30, "clock": "graph", "seconds": 300.0} | more
    return Recording(code=CODE, kind="cpu", arch="sm_90a", **usual)


@pytest.fixture(scope="module")
def pool():
    with Nursery(["pretended_card:install"]) as nursery:
        yield record(nursery, recording())


def test_every_process_times_clones_and_the_minimum_effect_and_every_second_a_slower_kernel(pool):
    assert {pair: len(runs) for pair, runs in pool.items()} == {
        "clones": PROCESSES, "scaled": PROCESSES, "slower_2": PROCESSES // 2, "slower_0_5": PROCESSES // 2,
    }  # fmt: skip
    assert len({tuple(pairs_of(process)) for process in range(PROCESSES)}) > 6


def test_what_is_recorded_is_the_ratio_of_each_pair_round_by_round(pool):
    for pair, runs in pool.items():
        medians = [median(run["rounds"]) for run in runs]
        assert sum(medians) / len(medians) == pytest.approx(RATIOS[pair], abs=3e-4)
        assert len(set(medians)) == len(medians)
        assert all(len(run["rounds"]) == len(run["noise"]) == 30 for run in runs)
        assert all(0 < run["gpu_s"] < 1 for run in runs)
    busy = 4 * 30 * (24e-6 * (2 * 24 + 1) + 1e8 / 3e12)  # batches and as long to warm up, single calls, sweeps
    assert pool["clones"][0]["gpu_s"] == pytest.approx(busy, rel=0.01)


def test_the_file_is_small_the_same_each_time_and_judged_without_a_card(pool, tmp_path, capsys):
    where = written(pool, {"driver": "580"}, tmp_path)
    first = where.read_bytes()
    assert first == written(pool, {"driver": "580"}, tmp_path).read_bytes()
    assert len(first) < 25 * len(pool) * PROCESSES * 30  # 200 processes take less than a MiB
    assert json.loads(gzip.decompress(first))["device"] == {"driver": "580"}
    figures = false_alarms.figures_of(false_alarms.recorded(where), draws=20)
    missed = {name for name, (figure, low, high) in figures.items() if not low <= figure <= high}
    assert missed - {"the 95 % interval holds, share of draws"} == {
        f"processes of {pair}" for pair in PAIRS
    }  # the pool is a small one, and nothing else is amiss
    show(pool)
    assert "44 processes, 24.00" in capsys.readouterr().out


def test_no_further_batch_is_opened_when_the_time_is_up(capsys):
    with Nursery(["pretended_card:install"]) as nursery:
        nothing = record(nursery, recording(seconds=-1.0))
        assert not any(nothing.values())
        show(nothing)


def test_a_pair_that_could_not_be_timed_is_told_and_the_others_are_kept(monkeypatch, capsys):
    def refuse(runner, pair, recording, process):
        if pair == "scaled":
            raise process_pool.DeviceProblem("cuda: more than a tenth of 30 rounds fell out")
        return {}

    monkeypatch.setattr(process_pool, "timed", refuse)
    with Nursery(["pretended_card:install"]) as nursery:
        found = record(nursery, recording(processes=2))
    assert [len(runs) for runs in found.values()] == [2, 0, 1, 1]
    assert "process 1, scaled: cuda: more than a tenth" in capsys.readouterr().out
