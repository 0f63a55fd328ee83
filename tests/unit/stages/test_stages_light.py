"""What every stage imports before its own modules costs nothing: numpy alone would double the start of a cheap one."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("heavy", ["numpy", "pandas", "llvmlite", "jinja2", "cuda"])
@pytest.mark.parametrize(
    "module", ["kerneltrial.stages.running", "kerneltrial.stages.prize", "kerneltrial.stages.terms"]
)
def test_a_cheap_stage_starts_without(module: str, heavy: str) -> None:
    code = f"import sys, {module}; sys.exit({heavy!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_sources_are_built_without_numpy() -> None:
    """Compilers work in children of their own, and what comes back is bytes."""
    code = "import sys, kerneltrial.stages.build; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_model_is_asked_without_numpy() -> None:
    """The proposal of a model reads records and contracts, and computes with no array."""
    code = "import sys, kerneltrial.stages.modelling; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
