"""A trusted kernel that does not build is spoken of by its own name."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from kerneltrial.records.build import NotBuilt
from kerneltrial.records.reason import Reason
from kerneltrial.records.roofline import NoCeilings
from kerneltrial.stages import qualify
from kerneltrial.stages.qualify import refusal


def _not_built(reason: Reason, detail: str) -> NotBuilt:
    return NotBuilt(candidate="a" * 64, reason=reason, detail=detail, log="b" * 64)


def test_a_compiler_error_names_the_baselines_file() -> None:
    line = refusal(_not_built(Reason.DOES_NOT_COMPILE, "candidate.cu(5): error: expected a ;"), Path("k/baseline.cu"))
    assert line == "does_not_compile: baseline.cu(5): error: expected a ;; correct baseline.cu"


def test_what_the_plan_may_be_wrong_in_names_the_plan_too() -> None:
    line = refusal(_not_built(Reason.ENTRY_MISSING, "the plan launches 'f', the binary has: g"), Path("k/reference.cu"))
    assert line.endswith("; correct reference.cu or reference.plan.yaml")


@pytest.mark.parametrize("stored", [False, True])
def test_what_measures_is_a_child_of_its_own_and_none_comes_up_while_another_measures(monkeypatch, stored) -> None:
    asked = []

    class Child:
        def __init__(self, name: str) -> None:
            self.name = name

        def device(self) -> None:
            asked.append(f"{self.name} is open")

    def samples_of(g, pair, cases, answers, how):
        asked.append(how.runner.name)
        return {}

    def ceilings_of(g, runner):
        asked.append(runner.name)
        return NoCeilings(why="nobody measured")

    monkeypatch.setattr(qualify, "Runner", Child)
    monkeypatch.setattr(qualify, "is_stored", lambda *_: stored)
    monkeypatch.setattr(qualify, "samples_of", samples_of)
    monkeypatch.setattr(qualify, "ceilings_of", ceilings_of)
    monkeypatch.setattr(qualify, "performance_cases", lambda g: ())
    g = SimpleNamespace(lock=SimpleNamespace(device=SimpleNamespace(kind="cuda"), contract=None))
    qualify._performance(g, None, None, qualify.Fresh(times=Child("times"), ceilings=Child("ceilings")))
    assert asked[-2:] == ["times", "ceilings"]
    assert sorted(asked[:-2]) == ([] if stored else ["ceilings is open", "times is open"])
