"""`kerneltrial cost-sheet`: prices and workload as a CSV file to be filled in, every field explained."""

import argparse
import os
from pathlib import Path

from kerneltrial.commands.configuration import read_config
from kerneltrial.inputs.cases import read_cases
from kerneltrial.inputs.cost_sheet import KEY, template
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.store.canonical import builtins
from kerneltrial.store.files import write_atomic


def run(given: argparse.Namespace, here: Path) -> int:
    """Write the sheet with the present values; 3 where there is a file of that name."""
    config, root = read_config(given, here)
    out = root / given.out
    if os.path.lexists(out):
        raise InputProblem(f"{given.out}: is there already; remove it, or name another with --out")
    cases = [case.name for case in read_cases(root / config.cases).cases if case.kind == "performance"]
    write_atomic(out, template(builtins(config), cases).encode())
    print(f"{given.out}: fill it in; then in the config `{KEY}: {given.out}`, without the keys that the sheet has")
    return 0
