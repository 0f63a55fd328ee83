"""The fixture trials lie with the golden files that are made from them."""

import sys
from pathlib import Path

GOLDEN = Path(__file__).parents[2] / "golden"
if str(GOLDEN) not in sys.path:
    sys.path.insert(0, str(GOLDEN))
