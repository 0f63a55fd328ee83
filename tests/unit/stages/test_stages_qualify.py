"""A trusted kernel that does not build is spoken of by its own name."""

from pathlib import Path

from kerneltrial.records.build import NotBuilt
from kerneltrial.records.reason import Reason
from kerneltrial.stages.qualify import refusal


def _not_built(reason: Reason, detail: str) -> NotBuilt:
    return NotBuilt(candidate="a" * 64, reason=reason, detail=detail, log="b" * 64)


def test_a_compiler_error_names_the_baselines_file() -> None:
    line = refusal(_not_built(Reason.DOES_NOT_COMPILE, "candidate.cu(5): error: expected a ;"), Path("k/baseline.cu"))
    assert line == "does_not_compile: baseline.cu(5): error: expected a ;; correct baseline.cu"


def test_what_the_plan_may_be_wrong_in_names_the_plan_too() -> None:
    line = refusal(_not_built(Reason.ENTRY_MISSING, "the plan launches 'f', the binary has: g"), Path("k/reference.cu"))
    assert line.endswith("; correct reference.cu or reference.plan.yaml")
