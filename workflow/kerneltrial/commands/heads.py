"""`kerneltrial heads`: how far the journal has come, to be handed to the reviewer while the trial runs."""

import argparse
from pathlib import Path

from kerneltrial.commands.configuration import read_config
from kerneltrial.dag import graph


def run(given: argparse.Namespace, root: Path) -> int:
    """Print one line a fragment of the journal: its name, its number of lines, the digest of the last."""
    from kerneltrial.evidence import chain

    config, root = read_config(given, root)
    print(f"kerneltrial heads of {config.trial}; later: kerneltrial verify BUNDLE --heads THIS_FILE")
    for name, head in chain.heads(chain.fragments(root / graph.results(config.trial))).items():
        print(f"{name} {head.lines} {head.digest}")
    return 0
