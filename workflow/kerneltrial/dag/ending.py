"""The last lines of a run: the verdict and where the report lies, or what the failed stage said.

Snakemake's own words on a failed job take twenty lines and come last, and it has no hook for a run in which nothing had
to be done; so the lines are written when the process ends.
"""

import atexit
import json
import sys
import time
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from kerneltrial.dag import graph
from kerneltrial.store.printed import printed

_NAMED = 5  # rules that the last lines name
_SILENT = "it left no word, as where the disk is full; what was printed above says more"


class Ending:
    """What to print when a run of the workflow ends; `failed` is set by its `onerror`."""

    def __init__(self, trial: str, iterations: int, root: Path) -> None:
        self.failed = False
        self._trial, self._iterations, self._root = trial, iterations, root
        self._started = time.time()

    def when_the_process_ends(self) -> None:
        """Have the lines printed on standard error at the end of this process."""
        atexit.register(
            lambda: print("".join(f"{line}\n" for line in self.lines()), end="", file=sys.stderr, flush=True)
        )

    def lines(self) -> Sequence[str]:
        """The lines; none where the run was stopped, or asked for less than the whole trial."""
        if self.failed:
            return self._stopped()
        records = (graph.record_path(self._trial, stage, i) for stage, i in graph.jobs(self._iterations))
        if not all((self._root / record).is_file() for record in records):
            return ()
        return verdict(self._trial, self._root)

    def _stopped(self) -> Sequence[str]:
        """One line a stage that failed in this run, from its log; a coarse clock of files may lag by a tick."""
        if quiet(sys.argv):
            return ()  # nothing stands between these lines and those that the stages printed themselves
        logs = sorted((self._root / graph.results(self._trial) / "logs").glob("*.log"))
        here = (log for log in logs if log.is_file() and log.stat().st_mtime >= self._started - 0.02)
        told = [(log.stem, log.read_text(errors="replace").strip()) for log in here]
        return [f"{stage} stopped: {line or _SILENT}" for stage, line in told if line != "done"]


def quiet(arguments: Sequence[str]) -> bool:
    """Whether Snakemake was asked to print nothing of its own: `--quiet all`."""
    for place, argument in enumerate(arguments):
        if argument in ("--quiet", "-q"):
            following = takewhile(lambda word: not word.startswith("-"), arguments[place + 1 :])
            if "all" in following:
                return True
    return "--quiet=all" in arguments


def verdict(trial: str, root: Path) -> Sequence[str]:
    """The outcome with its sentence, and the path of the page; nothing where there is no report.

    Between them a word on a trial whose proposer gave nothing to judge, which the outcome alone does not tell.
    """
    folder = root / graph.reports(trial)
    try:
        summary = json.loads((folder / "summary.json").read_bytes())
        outcome, meaning = str(summary["outcome"]), str(summary["meaning"])
        counts = summary.get("counts", {})
        attempts, proposed = counts.get("attempts", 0), counts.get("proposed", 0)
        rules = _rules(summary)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ()
    wrong = _first_wrong(folder)
    nothing = f"nothing was judged: no attempt ({attempts}) gave a candidate; the report's reasons say why"
    judged = () if proposed or not attempts else (nothing,)
    return (f"{outcome}: {meaning}", *rules, *judged, *wrong, f"report: {graph.reports(trial)}/report.html")


def _rules(summary: Mapping[str, Any]) -> Sequence[str]:
    """The rules that the verdict hangs on: those that failed, else those that are unknown; nothing where all passed."""
    for state, key in (("failed", "failed_rules"), ("unknown", "unknown_rules")):
        if names := [str(name) for name in summary.get(key, ())]:
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            return (f"{state}: {', '.join(names[:_NAMED])}{more}",)
    return ()


def _first_wrong(folder: Path) -> Sequence[str]:
    """What was wrong with the first attempt, where none was right: it may be a slip of who wrote it."""
    try:
        attempts = json.loads((folder / "history.json").read_bytes())["attempts"]
        wrong = [a for a in attempts if a["proposed"] and not a["valid"]]
        if not wrong or any(a["valid"] for a in attempts):
            return ()
        what = " ".join(str(wrong[0]["detail"] or wrong[0]["reason"]).split())
        return (f"attempt {wrong[0]['attempt']}: {printed(what)}",)
    except (OSError, ValueError, KeyError, TypeError):
        return ()
