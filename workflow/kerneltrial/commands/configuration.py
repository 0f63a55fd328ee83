"""Read the trial's config with the overrides of the command line."""

import argparse
from pathlib import Path

from kerneltrial.inputs.config import Config, read
from kerneltrial.inputs.documents import read_document
from kerneltrial.inputs.problem import InputProblem


def read_config(given: argparse.Namespace, here: Path) -> tuple[Config, Path]:
    """The checked config that `--config` and `--set` name, and the folder that its paths are relative to.

    That folder is the config file's own; for the effective config of a run, results/TRIAL/config.json, it is the folder
    of the results; for one such as trials/NAME.yaml it is `here`, as for Snakemake, which runs here.
    """
    overrides: dict[str, str] = {}
    for item in given.set:
        key, equals, value = item.partition("=")
        if not equals:
            raise InputProblem(f"--set {item}: write KEY=VALUE, such as --set iterations=7")
        overrides[key] = value
    path = (here / given.config).resolve()
    if not path.exists():
        raise InputProblem(f"{given.config}: is not here; go to the trial's folder, or name its config with --config")
    folder = path.parents[2] if path.name == "config.json" and path.parents[1].name == "results" else path.parent
    if path.suffix != ".json" and _is_of(here, path, folder):
        folder = here
    return read(path, overrides, folder), folder


def _is_of(here: Path, path: Path, folder: Path) -> bool:
    """Whether a config's files lie beside the Snakefile in the present folder, and not beside the config."""
    if not (here / "Snakefile").is_file() or not path.is_file():
        return False
    document = read_document(path)
    contract = document.get("contract") if isinstance(document, dict) else None
    return isinstance(contract, str) and not (folder / contract).is_file() and (here / contract).is_file()
