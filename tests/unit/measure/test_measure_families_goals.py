"""What is asked of the families is read off the reports; what was not measured is missed."""

import fcntl
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
from families_bench import ROOT, those_where
from families_goals import GOALS, goals, mean, ratio
from families_shapes import FAMILIES
from families_short import short
from families_table import ranking
from families_torch import one_at_a_time

from kerneltrial.propose.search.space import read_space
from kerneltrial.records.device import Device


def shape(best: float, eager: float, compiled: float | None = None) -> dict:
    us = {"baseline": 9.0, "BM=64": best, "BM=32": best * 2, "eager": eager}
    us |= {} if compiled is None else {"compile": compiled * 1.5, "autotune": compiled}
    return {
        "us": {name: {"warm_us": one, "cold_us": 2 * one} for name, one in us.items()}, "torch": {}, "bytes": 1,
        "operations": 1,
    }  # fmt: skip


def test_every_goal_names_shapes_that_are_timed() -> None:
    for goal in GOALS:
        for name in goal.families:
            keys = {"x".join(str(size) for size in one.values()) for one in FAMILIES[name].shapes}
            assert set(goal.shapes) <= keys, name


def test_a_product_in_two_spaces_counts_by_its_best_and_compiled_by_its_better_mode() -> None:
    at = "512x512x512"
    reports = [
        {"family": "matmul_f32", "shapes": {at: shape(10.0, 9.6)}},
        {"family": "matmul_large_f32", "shapes": {at: shape(12.0, 9.5)}},
        {"family": "softmax_wide_f32", "shapes": {"256x131072": shape(100.0, 700.0, 230.0), "8x131072": {"fault": ""}}},
    ]  # fmt: skip
    assert ratio(reports, ("matmul_f32", "matmul_large_f32"), at, "cuBLAS", "warm_us") == pytest.approx(0.95)
    lines = goals(reports)
    assert "| matmul_f32 or matmul_large_f32 | 512x512x512 | cuBLAS | 0.95 x | 0.95 |  |" in lines
    assert "| softmax_wide_f32 | 256x131072 | torch.compile | 2.2 x | 2.30 |  |" in lines
    assert "| histogram_u8 | 67108864 | torch.compile | 4 x | not measured | **missed** |" in lines
    assert lines[-1] == f"{len(GOALS) + 2 - 4} of {len(GOALS) + 2} goals missed"
    figure, shapes = mean(reports, "eager", "cold_us")
    assert shapes == 3
    assert figure == pytest.approx((0.96 * 9.5 / 12 * 7.0) ** (1 / 3))
    assert mean(reports, "eager", "warm_us", ("matmul_f32", "matmul_large_f32"))[0] == pytest.approx(7.0)


def test_choices_are_timed_while_no_other_process_has_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Benchmarker:
        def benchmark_gpu(self, deep: bool = True) -> list[bool]:
            with lock.open() as other:
                try:
                    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    free = True
                except BlockingIOError:
                    free = False
            return [free, *(self.benchmark_gpu(False) if deep else [])]

    lock = tmp_path / "lock"
    lock.touch()
    own = Benchmarker()
    modules = ("torch", "torch._inductor", "torch._inductor.runtime", "torch._inductor.runtime.benchmarking")
    for name in modules:
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    assert "cannot import name 'benchmarker'" in one_at_a_time(lock)
    sys.modules[modules[-1]].benchmarker = own  # type: ignore[attr-defined]
    assert own.benchmark_gpu() == [True, True]
    assert one_at_a_time(lock) == ""
    assert own.benchmark_gpu() == [False, False]
    with lock.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_the_readme_takes_the_largest_shape_of_a_family_from_the_last_file_that_timed_it(tmp_path: Path) -> None:
    limits = {"dram_bytes_per_s": 1e12, "l2_bytes_per_s": 4e12, "l2_bytes": 8, "fp32_flop_per_s": 1e6}
    small, large = shape(2.0, 3.0), shape(4.0, 7.0, 50.0)
    scan = {"family": "scan_i32", "shapes": {"64": small, "4096x64": large, "2": {"fault": "x"}}}
    spmv = {"family": "spmv_csr_f32", "shapes": {"9": shape(5.0, 5.0)}}
    for name, families in (
        ("first", [spmv, scan]),
        (
            "last",
            [{"family": "spmv_csr_f32", "shapes": {"9": {"fault": "no card"}}}, {**scan, "shapes": {"64": small}}],
        ),
    ):
        (tmp_path / name).write_text(json.dumps({"limits": limits, "families": families}))
    head, rule, *rows = short([tmp_path / "first"])
    assert len(head.split("|")) == len(rule.split("|")) == 9
    assert rows[1] == "| `scan_i32` | 4096×64 | 4.0 | 2.25 | 1.75 | 12 | 25% (fp32) |"
    later = short([tmp_path / "first", tmp_path / "last"])[2:]
    assert later[0] == rows[0] == "| `spmv_csr_f32` | 9 | 5.0 | 1.80 | 1.00 | – | 20% (fp32) |"
    assert later[1].startswith("| `scan_i32` | 64 | 2.0 | 4.50 | 1.50 | – |")


def test_the_best_of_each_shape_are_left_in_words_with_how_many_clusters_fit() -> None:
    ranked = [("WAY=8 HINT=0", 73.5, 32), ("baseline", 160.0, 0)]
    reports = [{"family": "softmax_wide_f32", "shapes": {"256x131072": {"ranked": ranked}, "8x8": {"fault": ""}}}]
    assert ranking(reports)[2:] == ["- softmax_wide_f32 256x131072, WAY HINT: 73.50 (32): 8 0; 160.00: baseline"]
    assert ranking([{"family": "scan_i32", "shapes": {"8": {"fault": ""}}}]) == []


def test_an_expression_chooses_configurations_and_a_limit_thins_them_evenly() -> None:
    space = read_space(
        ROOT / "kernels/softmax_wide_f32/space.yaml", Device(kind="cuda", arch="sm_90a", name="", fingerprint={})
    )
    found = those_where(space, "WAY >= 9 and AHEAD == 1", 200)
    assert {(c["WAY"], c["CHUNK"]) for c in found} == {(9, 16384)}
    assert len(those_where(space, "WAY == 1", 7)) <= 7
    assert those_where(space, "WAY > 99", 7) == []
