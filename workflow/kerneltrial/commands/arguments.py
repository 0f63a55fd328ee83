"""The arguments of the command line; each command's work lies in its own module, imported when it is asked for."""

import argparse
import importlib
from pathlib import Path

from kerneltrial.dag.graph import STAGES

COMMANDS = {
    "verify": "rehash every object and follow every link of a trial",
    "doctor": "say what is installed, which device there is, and what is missing",
    "init": "make a folder with a trial of one's own",
}


def parser() -> argparse.ArgumentParser:
    """The parser of all stages and commands."""
    top = argparse.ArgumentParser(
        prog="kerneltrial",
        description="A locked, evidence-keeping trial of one question: should we replace this kernel by that one?",
    )
    kinds = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for stage, spec in STAGES.items():
        one = kinds.add_parser(stage, help=f"stage: make the record {spec.record}.json")
        _trial_arguments(one)
        one.add_argument("--code", default="", help=argparse.SUPPRESS)
        one.add_argument("--log", type=Path, help=argparse.SUPPRESS)
        if spec.loop:
            one.add_argument("--iteration", type=int, required=True, metavar="N", help="which iteration, from 1")
        if stage == "lock":
            one.add_argument("--new", action="store_true", help="set the old trial aside and lock anew")
    for command, text in COMMANDS.items():
        one = kinds.add_parser(command, help=text)
        if command == "verify":
            _trial_arguments(one)
        if command == "init":
            one.add_argument("folder", type=Path)
    return top


def _trial_arguments(one: argparse.ArgumentParser) -> None:
    one.add_argument("--config", type=Path, default=Path("config.yaml"), help="the trial's config (config.yaml)")
    one.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="override a config key, such as iterations=7"
    )


def dispatch(given: argparse.Namespace, root: Path) -> int:
    """Run what was asked for; return the exit status."""
    name = "stage" if given.command in STAGES else given.command
    status: int = importlib.import_module(f"kerneltrial.commands.{name}").run(given, root)
    return status
