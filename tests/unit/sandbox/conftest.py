"""Makes `sandbox_children` importable here and, since a nursery gets this process's path, in its children."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
