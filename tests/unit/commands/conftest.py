"""Makes the golden trials importable for the tests beside it (pytest's importlib mode adds no folder)."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "golden"))
