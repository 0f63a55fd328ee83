"""`kerneltrial try FILE`: have a draft judged, from within a program that proposes."""

import argparse
from pathlib import Path

from kerneltrial.inputs.problem import InputProblem
from kerneltrial.propose.command.posting import NotPosted, post


def run(given: argparse.Namespace, root: Path) -> int:
    """Print the verdict as JSON; 0 right, 1 wrong, 2 no tries left."""
    try:
        return post(root / given.draft)
    except NotPosted as problem:
        raise InputProblem(str(problem)) from None
