"""Write the report: one page for people, files for machines, the best kernel. Equal records give equal bytes."""

from pathlib import Path

from kerneltrial.records.reported import Reported
from kerneltrial.report import files, plot
from kerneltrial.report.inputs import ReportInputs
from kerneltrial.report.page import page
from kerneltrial.report.tables import attempts
from kerneltrial.store.canonical import digest
from kerneltrial.store.files import write_atomic

_BEST = ("best.cu", "best.py", "best.plan.yaml")


def render(inputs: ReportInputs, folder: Path) -> Reported:
    """Write the report into `folder` and say what was written.

    All figures come from the records; what is worked out here is counts of rows and the running best. A best kernel of
    an earlier report that is no longer one is removed.

    Raises
    ------
    StoreProblem
        The folder cannot be written.
    """
    made = contents(inputs)
    for name, data in made.items():
        write_atomic(folder / name, data)
    for name in _BEST:
        if name not in made:
            (folder / name).unlink(missing_ok=True)
    return Reported(
        files={name: digest(data) for name, data in sorted(made.items())}, no_winner=files.why_no_best(inputs)
    )


def contents(inputs: ReportInputs) -> dict[str, bytes]:
    """The report's files by name."""
    table = attempts(inputs)
    drawing = plot.history(table, inputs.clocked)
    return {
        "decision.json": files.pretty(files.decision(inputs)),
        "history.json": files.pretty(files.history(inputs, table)),
        "summary.json": files.pretty(files.summary(inputs, table)),
        "history.svg": plot.standalone(drawing),
        "report.html": page(inputs, table, drawing).encode(),
        **files.best_files(inputs),
    }
