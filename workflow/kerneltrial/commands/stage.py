"""Run one stage by hand or from a rule of the workflow."""

import argparse
import sys
from pathlib import Path

from kerneltrial.dag import graph, guard
from kerneltrial.inputs.config import Config, check_files
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.records.problem import Problem
from kerneltrial.store.files import write_atomic

_RELOCK = "mend it, try `kerneltrial rehearse`, then `kerneltrial lock --new`"


def run(given: argparse.Namespace, root: Path) -> int:
    """Run the stage; under a workflow run it dies with it, by hand it takes the trial's lock itself."""
    from kerneltrial.commands.configuration import read_config

    if guard.under_run():
        guard.die_with_parent()
    config, root = read_config(given, root)
    iteration = getattr(given, "iteration", 0)
    _require_iteration(given.command, iteration, config)
    key = given.sign.resolve() if getattr(given, "sign", None) else None
    if not guard.under_run():
        if key is not None:
            from kerneltrial.evidence.signatures import require_key

            require_key(key)
        if given.command == "lock":  # what a run would refuse is refused before anything is locked, set aside or signed
            check_files(config, root, given.config.name)
        _prepare(given, config, root)
    path = _record_of(given, config, iteration, root)
    if not guard.under_run():
        print(path.relative_to(root))
        _show(given.command, config, root, key)
    if given.command == "decide":
        from kerneltrial.dag.environment import say_where_expired

        say_where_expired(config.trial, root)
    return 0


def _record_of(given: argparse.Namespace, config: Config, iteration: int, root: Path) -> Path:
    """Run the stage; the path of its record. What the oracle printed lies beside the log however it ends."""
    from kerneltrial.stages.running import run_stage

    kept = root / graph.printed_path(config.trial, given.command, iteration)
    try:
        path = run_stage(config, given.command, iteration, given.code or _code_digest(given.command), root)
    except Problem as problem:
        _keep_printed(kept)
        if given.command == "qualify" and problem.is_of_what_is_locked:
            raise InputProblem(f"{problem}; it is locked: {_RELOCK}") from None
        raise
    told = _keep_printed(kept)
    if told:
        print(f"kerneltrial: {given.command}: {told}: {kept.relative_to(root)}", file=sys.stderr)
    return path


def _show(stage: str, config: Config, root: Path, key: Path | None) -> None:
    """What a person sees after a stage by hand: the page to be signed (terms come with the lock), or the verdict."""
    if stage == "lock":
        from kerneltrial.commands.locking import show_page
        from kerneltrial.stages.running import run_stage

        run_stage(config, "terms", 0, _code_digest("terms"), root)
        show_page(config, root, key)
    if stage == "report":
        from kerneltrial.dag.ending import verdict

        print("\n".join(verdict(config.trial, root)))


def _require_iteration(stage: str, iteration: int, config: Config) -> None:
    if graph.STAGES[stage].loop and iteration < 1:
        raise InputProblem(f"--iteration {iteration}: iterations are counted from 1")
    if iteration > config.iterations:
        raise InputProblem(
            f"--iteration {iteration}: the config has iterations: {config.iterations}; add --set "
            f"iterations={iteration}, or run `snakemake --cores 1 --config iterations={iteration}`"
        )


def _keep_printed(path: Path) -> str:
    """Write what the oracle printed beside the stage's log, in place of what it printed before; in words how much."""
    from kerneltrial.inputs.heard import HEARD, amount

    text, size, lines = HEARD.taken()
    try:
        if size:
            write_atomic(path, text)
        else:
            path.unlink(missing_ok=True)
    except (OSError, Problem):  # the stage itself is done, or says what stopped it
        return ""
    return amount(size, lines)


def _code_digest(stage: str) -> str:
    from kerneltrial.dag.closure import code_digest

    return code_digest(stage)


def _prepare(given: argparse.Namespace, config: Config, root: Path) -> None:
    from kerneltrial.dag import locked

    if not guard.only_run(root / graph.results(config.trial)):
        raise InputProblem(f"{graph.results(config.trial)}: another run is at work here; wait for it to end")
    if getattr(given, "new", False):
        _set_aside(config, root)
    wrong = locked.problem(config, root)
    if wrong:
        raise InputProblem(wrong)


def _set_aside(config: Config, root: Path) -> None:
    """Move the old trial out of the way; nothing is deleted."""
    for folder in (root / graph.results(config.trial), root / graph.reports(config.trial)):
        if not folder.exists() or not any(folder.iterdir()):
            continue
        number = 1
        while (aside := folder.with_name(f"{folder.name}.old{number}")).exists():
            number += 1
        folder.rename(aside)
        print(f"set aside: {aside.relative_to(root)}", file=sys.stderr)
    guard.only_run(root / graph.results(config.trial))
