"""Launch plans that lie beside a source: `NAME.cu` or `NAME.py` has `NAME.plan.yaml`."""

from pathlib import Path, PurePath
from typing import TypeVar

from kerneltrial.inputs.documents import read_document, to_record, with_text_expressions
from kerneltrial.records.plan import LaunchPlan

P = TypeVar("P", bound=PurePath)


def plan_path(source: P) -> P:
    """Return where the plan of a source lies.

    >>> plan_path(Path("kernels/baseline.cu")).as_posix()
    'kernels/baseline.plan.yaml'
    """
    return source.with_suffix(".plan.yaml")


def read_plan(path: Path) -> LaunchPlan:
    """Read a launch plan; raises `InputProblem` with file and field. What it means is checked by `inputs.resolve`."""
    return to_record(with_text_expressions(read_document(path)), LaunchPlan, str(path))
