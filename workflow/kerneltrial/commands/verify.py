"""`kerneltrial verify`: check a trial's evidence from its bytes alone."""

import argparse
from pathlib import Path

from kerneltrial.commands.configuration import read_config
from kerneltrial.dag.graph import STAGES, results
from kerneltrial.inputs.config import read


def run(given: argparse.Namespace, root: Path) -> int:
    """Print what was looked at and every problem; 0 where there is none, else 1."""
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
    return 1 if verdict.problems else 0
