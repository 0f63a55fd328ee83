"""`kerneltrial prices MODEL`: the list price of a model, to be put under `prices` in the config."""

import argparse
from datetime import UTC, datetime
from pathlib import Path

from kerneltrial.store.canonical import builtins


def run(given: argparse.Namespace, _root: Path) -> int:
    """Print the key `prices.model` as YAML."""
    import yaml

    from kerneltrial.propose.openai.prices import listed_prices

    found = listed_prices(given.model, datetime.now(UTC).date().isoformat())
    text = yaml.safe_dump({"model": builtins(found)}, sort_keys=False)
    print("prices:", *(f"  {line}" for line in text.splitlines()), sep="\n")
    return 0
