"""Where the shipped rules lie, for a Snakefile outside the clone."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent


def rules_folder() -> Path:
    """The folder of `common.smk` and its siblings: beside the package in a clone, inside it when installed."""
    inside, beside = _PACKAGE / "rules", _PACKAGE.parent / "rules"
    return inside if (inside / "common.smk").is_file() else beside


RULES = str(rules_folder())
