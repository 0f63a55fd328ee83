"""Read the trial's config with the overrides of the command line."""

import argparse
from pathlib import Path

from kerneltrial.inputs.config import Config, read
from kerneltrial.inputs.problem import InputProblem


def read_config(given: argparse.Namespace, root: Path) -> Config:
    """The checked config that `--config` and `--set` name; paths in it are relative to `root`."""
    overrides: dict[str, str] = {}
    for item in given.set:
        key, equals, value = item.partition("=")
        if not equals:
            raise InputProblem(f"--set {item}: write KEY=VALUE, such as --set iterations=7")
        overrides[key] = value
    return read(root / given.config, overrides)
