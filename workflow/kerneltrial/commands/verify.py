"""`kerneltrial verify`: check a trial's evidence from its bytes alone."""

import argparse
from pathlib import Path

from kerneltrial.commands.configuration import read_config
from kerneltrial.dag.graph import STAGES, record_path, results
from kerneltrial.inputs.config import read


def run(given: argparse.Namespace, root: Path) -> int:
    """Print what was looked at, every problem, and whether the decision still holds here; 0 without problems, else 1.

    A decision that has expired is no problem of the evidence, which is as whole as before.
    """
    from kerneltrial.dag.environment import compared
    from kerneltrial.dag.locked import held
    from kerneltrial.evidence.verify import verify
    from kerneltrial.stages.rederived import differences

    config, root = read_config(given, root)
    effective = root / results(config.trial) / "config.json"
    if effective.is_file() and not given.set:  # the run's own, with its command line's keys
        config = read(effective, {}, root)
    verdict = verify(root / results(config.trial), root, lambda stage: stage in STAGES)
    if verdict.records:
        verdict.problems += differences(config, root)
    for line in verdict.problems:
        print(line)
    print(
        f"{results(config.trial)}: {verdict.records} records, {verdict.objects} objects, {verdict.measurements} "
        f"measurements, {verdict.journal_lines} journal lines: "
        + (f"{len(verdict.problems)} problems" if verdict.problems else "all whole, every link holds")
    )
    lock = held(config.trial, root)
    if lock is not None and (root / record_path(config.trial, "decide")).is_file():
        print(compared(lock).line)
    return 1 if verdict.problems else 0
