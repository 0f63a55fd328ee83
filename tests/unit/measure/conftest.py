"""The simulation of confirmations lies with the bench that draws them from recorded processes."""

import sys
from pathlib import Path

BENCH = Path(__file__).parents[2] / "bench"
if str(BENCH) not in sys.path:
    sys.path.insert(0, str(BENCH))
