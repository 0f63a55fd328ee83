"""What the Snakefile asks for: a checked config, the lock held, stale records set aside, and paths for rules."""

import contextlib
import importlib
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from kerneltrial.dag import closure, freshness, graph, guard, locked, stem
from kerneltrial.dag.asked import readable, stop
from kerneltrial.dag.ending import Ending
from kerneltrial.dag.environment import say_where_expired
from kerneltrial.dag.secrets import require_no_secret
from kerneltrial.devices import opening
from kerneltrial.inputs.config import Config, check, sources
from kerneltrial.records.problem import Problem
from kerneltrial.store.canonical import builtins, canonical
from kerneltrial.store.files import refused, sweep, write_atomic
from kerneltrial.store.plain import require_plain
from kerneltrial.store.printed import fault_of_ours


@dataclass(frozen=True)
class Prepared:
    """A run of the workflow on one trial."""

    config: Config
    root: Path

    @property
    def trial(self) -> str:
        return self.config.trial

    @property
    def iterations(self) -> int:
        return self.config.iterations

    @property
    def config_path(self) -> str:
        """The effective config, as the stages read it."""
        return f"{graph.results(self.trial)}/config.json"

    @cached_property
    def ending(self) -> Ending:
        return Ending(self.trial, self.iterations, self.root)

    @cached_property
    def files(self) -> dict[str, tuple[str, ...]]:
        """The files of each group; they are read once, as every job asks."""
        return sources(self.config, self.root)

    def import_ahead(self) -> None:
        """Import what Snakemake will want when its first job has ended, while it waits for that job.

        It looks whether a rule's param is a table, and imports pandas for that, where pandas is installed.
        """
        threading.Thread(target=_import_pandas, daemon=True).start()

    def inputs(self, stage: str, iteration: int) -> list[str]:
        names = [path for group in graph.STAGES[stage].sources for path in self.files.get(group, ())]
        names += graph.record_inputs(self.trial, stage, iteration, self.iterations)
        return names + graph.received(self.trial, stage, self.root)

    def pattern(self, stage: str) -> str:
        spec = graph.STAGES[stage]
        return f"{graph.results(self.trial)}/" + ("iterations/{i}/" if spec.loop else "") + f"{spec.record}.json"

    def log(self, stage: str) -> str:
        suffix = "-{i}" if graph.STAGES[stage].loop else ""
        return f"{graph.results(self.trial)}/logs/{stage}{suffix}.log"

    @property
    def stage(self) -> str:
        """How a rule's shell line starts a stage."""
        return stem.command()

    def share(self, percent: int) -> int:
        """The part of the card that a job asks for: 100 where it times, less where others may be beside it.

        The `cpu` device needs no card, so its jobs may all run side by side.
        """
        return percent * self.cards

    @property
    def cards(self) -> int:
        """How many cards a job on the device needs."""
        lock = locked.held(self.trial, self.root)
        if lock is not None:
            return 1 if lock.device.kind == "cuda" else 0
        return 0 if self.config.device == "cpu" or not opening.driver_is_there() else 1

    def code(self, stage: str) -> str:
        return closure.code_digest(stage)

    def given(self, stage: str) -> str:
        return canonical(self.config.slice(graph.STAGES[stage].reads)).decode().strip()


def _import_pandas() -> None:
    with contextlib.suppress(ImportError):
        importlib.import_module("pandas")


def prepare(
    values: Mapping[str, Any], root: Path, main_process: bool, files: Sequence[str | Path] = (), dry: bool = False
) -> Prepared:
    """Check the config and ready the results folder; end the process with one line where something is wrong.

    `files` are the config files that Snakemake read; what is wrong with a value is said of the last. A `dry` run
    changes nothing and says what a run would make again.
    """
    try:
        readable(root)  # a Snakefile of an earlier version does not look first
        config = check(values, root, Path(files[-1]).name if files else "config.yaml")
        require_no_secret(builtins(config), config.model.key_variable)
        require_plain(root, graph.results(config.trial), graph.reports(config.trial))
        guard.announce_run()
        run = Prepared(config, root)
        if main_process and dry:
            _foretell(run)
        elif main_process:
            _ready(run)
            run.ending.when_the_process_ends()
        return run
    except Problem as error:
        stop(str(error))
    except KeyboardInterrupt:
        stop("stopped before any job; the same command goes on from here")
    except OSError as fault:
        problem = refused(fault)
        if problem is None:
            _stop_for_a_fault(fault)
        stop(str(problem))
    except Exception as fault:
        _stop_for_a_fault(fault)


def _stop_for_a_fault(fault: Exception) -> NoReturn:
    """Snakemake would say it by its logger, which `--quiet all` silences: a run shall not end without a word."""
    traceback.print_exc()
    stop(fault_of_ours(fault))


def _ready(run: Prepared) -> None:
    folder = run.root / graph.results(run.trial)
    if not guard.only_run(folder):
        stop(f"{graph.results(run.trial)}: another run is at work here; wait for it to end, or use another trial name")
    if locked.sealed(run.config, run.root):
        return
    sweep(folder)
    wrong = locked.problem(run.config, run.root)
    if wrong:
        stop(wrong)
    write_atomic(run.root / run.config_path, canonical(builtins(run.config)))
    freshness.tidy(run.config, run.root)
    say_where_expired(run.trial, run.root)  # what measures refuses by itself
    records = (graph.record_path(run.trial, stage, i) for stage, i in graph.jobs(run.iterations))
    if not all((run.root / record).is_file() for record in records):
        stem.begin("cuda" if run.cards else "cpu", run.config_path, run.root)


def _foretell(run: Prepared) -> None:
    """Say what is stale, as Snakemake's own list knows only what is missing, or what its own notes tell it of."""
    if locked.sealed(run.config, run.root):
        return
    wrong = locked.problem(run.config, run.root)
    if wrong:
        stop(wrong)
    gone = freshness.tidy(run.config, run.root, dry=True)
    if gone:
        back = f"take them back from {graph.results(run.trial)}/aside"
        print(
            f"kerneltrial: {len(gone)} records are stale, which Snakemake's list does not know, and a run would set "
            f"them aside and make them anew, or {back}: {', '.join(gone)}",
            file=sys.stderr,
        )
