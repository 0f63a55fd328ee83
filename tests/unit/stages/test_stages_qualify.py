"""A trusted kernel that does not build is spoken of by its own name."""

from pathlib import Path
from types import SimpleNamespace

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


def test_what_measures_is_a_child_of_its_own_that_was_opened_while_compilers_worked(monkeypatch) -> None:
    asked = []

    def samples_of(g, pair, cases, answers, how):
        asked.append(how.runner)
        return {}

    def ceilings_of(g, runner):
        asked.append(runner)
        return NoCeilings(why="nobody measured")

    monkeypatch.setattr(qualify, "samples_of", samples_of)
    monkeypatch.setattr(qualify, "ceilings_of", ceilings_of)
    monkeypatch.setattr(qualify, "performance_cases", lambda g: ())
    g = SimpleNamespace(lock=SimpleNamespace(device=SimpleNamespace(kind="cuda"), contract=None))
    qualify._performance(g, None, None, qualify.Fresh(times="times", ceilings="ceilings"))
    assert asked == ["times", "ceilings"]
