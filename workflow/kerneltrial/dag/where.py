"""Where the shipped rules lie, for a Snakefile outside the clone."""

from pathlib import Path

RULES = str(Path(__file__).resolve().parent.parent / "rules")  # in a clone a link to `workflow/rules`
