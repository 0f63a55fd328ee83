"""Read the trial's config with the overrides of the command line."""

import argparse
from pathlib import Path

from kerneltrial.inputs.config import Config, read
from kerneltrial.inputs.problem import InputProblem


def read_config(given: argparse.Namespace, here: Path) -> tuple[Config, Path]:
    """The checked config that `--config` and `--set` name, and the folder that its paths are relative to.

    That folder is the config file's own; for the effective config of a run, results/TRIAL/config.json, it is the folder
    of the results.
    """
    overrides: dict[str, str] = {}
    for item in given.set:
        key, equals, value = item.partition("=")
        if not equals:
            raise InputProblem(f"--set {item}: write KEY=VALUE, such as --set iterations=7")
        overrides[key] = value
    path = (here / given.config).resolve()
    folder = path.parents[2] if path.name == "config.json" and path.parents[1].name == "results" else path.parent
    return read(path, overrides, folder), folder
