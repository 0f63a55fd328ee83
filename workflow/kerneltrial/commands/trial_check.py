"""What a run would stop at in the trial here, as far as can be said without compiling anything."""

import argparse
from pathlib import Path

from kerneltrial.inputs.config import Config, check_files
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.inputs.sources import sources
from kerneltrial.records.problem import Problem


def wrong(given: argparse.Namespace, root: Path) -> str:
    """What is wrong with the trial, in one line; nothing where a run would come to its qualification.

    The config and its files, the device and the key that it asks for, the oracle on the smallest case, the plans of
    candidates. The kernels are not compiled: `kerneltrial rehearse` does that.
    """
    from kerneltrial.commands.configuration import read_config
    from kerneltrial.dag.asked import readable
    from kerneltrial.store.printed import as_named, printed

    try:
        readable(root)
        config, folder = read_config(given, root)
        check_files(config, folder, given.config.name)
        _require_what_is_asked(config)
        _ask_oracle(config, folder)
        read_plans(config, folder)
    except Problem as problem:
        return printed(as_named(" ".join(str(problem).replace(f"{root}/", "").split())))
    return ""


def _require_what_is_asked(config: Config) -> None:
    """The device and the key must be had here."""
    from kerneltrial.devices import opening

    if config.device == "cuda":
        opening.detect("cuda")
    if config.proposer == "openai":
        from kerneltrial.propose.openai.transport import key_of

        key_of(config.model)


def _ask_oracle(config: Config, folder: Path) -> None:
    from kerneltrial.inputs.trial import read_trial
    from kerneltrial.stages.oracle_apart import check_apart

    cases = (folder / config.cases).parent
    check_apart(folder / config.oracle, read_trial(sources(config, folder), folder), cases)


def read_plans(config: Config, folder: Path) -> None:
    """A run takes the folder as it is: a plan that cannot be read would be an attempt without a candidate."""
    from kerneltrial.inputs.candidates import kernels
    from kerneltrial.inputs.plans import plan_path, read_plan

    for kernel in kernels(folder / config.candidates) if config.proposer == "files" else ():
        try:
            read_plan(plan_path(kernel))
        except InputProblem as problem:
            raise InputProblem(f"{problem} (a run would count it as an attempt that gave no candidate)") from None
