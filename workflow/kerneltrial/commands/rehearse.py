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
from kerneltrial.records.qualification import Qualification, SecondOpinion
from kerneltrial.store import envelopes

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
            opinion = _staged(config, copy)
        except Problem as problem:
            raise InputProblem(str(problem).replace(f"{copy}/", "").partition("; it is locked")[0]) from None
    tried = ["the baseline", "the oracle", "the cases", *(["the reference"] if config.reference else [])]
    tried += ["the application with the baseline"] if config.end_to_end.words else []
    print(f"rehearsed in a scratch copy, and nothing was wrong with {', '.join(tried[:-1])} and {tried[-1]}")
    if not opinion.agrees:
        print(f"but {opinion.detail}: until a plain kernel is the config's `reference`, no verdict can be GO")
    print("nothing was locked, and no candidate was tried; next: `snakemake --cores 1`")
    return 0


def _copied(config: Config, root: Path, copy: Path) -> None:
    for path in {path for group in sources(config, root).values() for path in group}:
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / path, copy / path)


def _staged(config: Config, copy: Path) -> SecondOpinion:
    """Run both stages; what qualification came to on the oracle."""
    from kerneltrial.dag.closure import code_digest
    from kerneltrial.stages.running import run_stage

    for stage in STAGES:
        record = run_stage(config, stage, 0, code_digest(stage), copy)
    return envelopes.body(Qualification, record.read_bytes(), record.name).second_opinion
