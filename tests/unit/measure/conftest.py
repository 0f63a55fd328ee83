"""The benches that these tests run, and the pretended card beside them, are importable."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
for folder in (HERE, HERE.parents[1] / "bench"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
