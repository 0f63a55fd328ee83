"""Makes the models and the runner beside these tests importable (pytest's importlib mode adds no folder)."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "gpu" / "corpus")]
