"""`kerneltrial rehearse`: lock and qualification in a scratch copy, so that mistakes show before anything is locked.

What a trial is about is locked before its baseline is compiled, so a mistake that qualification finds costs a new lock.
Here the same two stages run on a copy that is gone afterwards. No candidate is compiled or tried: only a locked trial
does that, and counts it.
"""

import argparse
import shutil
import tempfile
from pathlib import Path

from kerneltrial.commands.configuration import read_config
from kerneltrial.commands.trial_check import read_plans
from kerneltrial.inputs.config import Config, check_files
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.inputs.sources import sources
from kerneltrial.records.problem import Problem

STAGES = ("lock", "qualify")


def run(given: argparse.Namespace, here: Path) -> int:
    """Print what was tried; raise what a run would stop at, in the same words."""
    config, root = read_config(given, here)
    check_files(config, root, given.config.name)
    read_plans(config, root)
    with tempfile.TemporaryDirectory(prefix="kerneltrial-") as scratch:
        copy = Path(scratch).resolve()
        try:
            _copied(config, root, copy)
            _staged(config, copy)
        except Problem as problem:
            raise InputProblem(str(problem).replace(f"{copy}/", "").partition("; it is locked")[0]) from None
    tried = ["the baseline", "the oracle", "the cases", *(["the reference"] if config.reference else [])]
    tried += ["the application with the baseline"] if config.end_to_end.words else []
    print(f"rehearsed in a scratch copy, and nothing was wrong with {', '.join(tried[:-1])} and {tried[-1]}")
    print("nothing was locked, and no candidate was tried; next: `snakemake --cores 1`")
    return 0


def _copied(config: Config, root: Path, copy: Path) -> None:
    for path in {path for group in sources(config, root).values() for path in group}:
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / path, copy / path)


def _staged(config: Config, copy: Path) -> None:
    from kerneltrial.dag.closure import code_digest
    from kerneltrial.stages.running import run_stage

    for stage in STAGES:
        run_stage(config, stage, 0, code_digest(stage), copy)
