"""Makes `family_court` importable for the tests here (pytest's importlib mode adds no folder)."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "families"))
