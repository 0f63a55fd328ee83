"""Write the report: one page for people, files for machines, the best kernel. Equal records give equal bytes."""

from collections.abc import Mapping
from pathlib import Path

from kerneltrial.records.best_case import BestCase
from kerneltrial.records.reported import Reported
from kerneltrial.report import files, heat, plot
from kerneltrial.report.inputs import ReportInputs
from kerneltrial.report.markdown import markdown
from kerneltrial.report.page import page
from kerneltrial.report.tables import attempts
from kerneltrial.report.texts import Say, plain
from kerneltrial.store.canonical import canonical, digest
from kerneltrial.store.files import write_atomic

_BEST = ("best.cu", "best.py", "best.plan.yaml", "heatmap.svg", "heatmap.png")  # there only where there is something


def render(inputs: ReportInputs, folder: Path, best_cases: Mapping[str, BestCase] | None = None) -> Reported:
    """Write the report into `folder`, with the winner's cases by file name, and say what was written.

    All figures come from the records; what is worked out here is counts of rows and the running best. A best kernel of
    an earlier report that is no longer one is removed.

    Raises
    ------
    StoreProblem
        The folder cannot be written.
    """
    made = contents(inputs) | {name: canonical(case) for name, case in (best_cases or {}).items()}
    for name, data in made.items():
        write_atomic(folder / name, data)
    for path in [*(folder / name for name in _BEST), *folder.glob("best-case-*.json")]:
        if path.name not in made:
            path.unlink(missing_ok=True)
    return Reported(
        files={name: digest(data) for name, data in sorted(made.items())}, no_winner=files.why_no_best(inputs)
    )


def contents(inputs: ReportInputs) -> dict[str, bytes]:
    """The report's files by name."""
    table = attempts(inputs)
    say = plain(inputs.language)
    drawing = plot.history(table, inputs.clocked, say)
    return {
        "decision.json": files.pretty(files.decision(inputs)),
        "history.json": files.pretty(files.history(inputs, table)),
        "summary.json": files.pretty(files.summary(inputs, table)),
        "history.svg": plot.standalone(drawing),
        "report.md": markdown(inputs, say).encode(),
        "report.html": page(inputs, table, drawing).encode(),
        **_heat_map(inputs, say),
        **files.best_files(inputs),
    }


def _heat_map(inputs: ReportInputs, say: Say) -> dict[str, bytes]:
    map_ = heat.heat(inputs)
    if map_ is None:
        return {}
    header = '<?xml version="1.0" encoding="utf-8"?>\n'
    return {
        "heatmap.svg": (header + heat.drawing(map_, say, standalone=True)).encode(),
        "heatmap.png": heat.picture(map_),
    }
