"""How an extra of this package is installed where it runs: from a clone, or by the package's name."""

from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).resolve().parent.parent


def install(extra: str, package: Path = _PACKAGE) -> str:
    """The command that adds an extra; no path stands in it, as what it says may be recorded."""
    cloned = package.parent.name == "workflow" and (package.parent.parent / "pyproject.toml").is_file()
    return f"pip install -e '.[{extra}]' in the clone" if cloned else f"pip install 'kerneltrial[{extra}]'"
