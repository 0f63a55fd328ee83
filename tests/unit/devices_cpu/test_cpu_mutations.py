"""A small sample of tests/bench/cpu_fuzz.py: mutated PTX is refused or run, and takes nothing down."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).parents[2] / "bench" / "cpu_fuzz.py"


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("cpu_fuzz", BENCH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["cpu_fuzz"] = module
    spec.loader.exec_module(module)
    return module


def test_a_sample_of_mutated_texts(bench: ModuleType) -> None:
    tally = bench.Tally()
    bench.fuzz(bench.texts(250, seed=7), runs=8, tally=tally)
    assert tally.faults == []
    assert tally.before.total() == 250
    assert tally.before["passed"] > 20, tally.before
    assert tally.after.total() == 8


def test_a_child_that_dies_or_raises_is_a_fault(bench: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    seed = bench.seeds()[0]

    def execute(_: object, text: str) -> str:
        if text == "dies":
            bench.os._exit(9)
        return text

    monkeypatch.setattr(bench, "execute", execute)
    outcomes = bench.in_child([(0, seed, "ran"), (1, seed, "dies"), (2, seed, "ran")])
    assert [outcome.split()[0] for outcome in outcomes] == ["ran", "FAULT", "ran"]
    monkeypatch.setattr(bench, "parse", lambda _: 1 // 0)
    assert bench.read("", "kern").startswith("FAULT")
