"""Import every problem of `tests/import_problems` and qualify what was imported, on the `cpu` device.

    PYTHONPATH=workflow python tests/bench/import_problems.py [FOLDER] [--only NAME]

Prints a line a problem (imported and qualified, or why not) and a row a level; qualification is the trial's own: the
plain baseline must pass every draw, and every null candidate must fail one. Needs torch; takes minutes. Exits 1 where a
problem that can be imported does not qualify.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "unit" / "families"))

from family_court import folder_court

from kerneltrial.commands.importing.conversing import nursery, require_torch
from kerneltrial.commands.importing.problem import Imported, imported
from kerneltrial.devices.device import Refused
from kerneltrial.records.problem import Problem


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "tests" / "import_problems")
    parser.add_argument("--only", default="", help="problems whose name holds this")
    given = parser.parse_args()
    require_torch()
    count: Counter[tuple[str, str]] = Counter()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as out, nursery() as opened:
        for path in sorted(given.folder.glob("level*/*.py")):
            if given.only not in path.stem:
                continue
            one = imported(opened, path, Path(out))
            count[one.level, "problems"] += 1
            if not isinstance(one, Imported):
                print(f"{one.name}: cannot be imported: {one.why}", flush=True)
                continue
            count[one.level, "imported"] += 1
            why = _qualified(Path(out) / one.name, one.name)
            count[one.level, "refused" if why else "qualified"] += 1
            print(f"{one.name}: {why or 'qualified'}; {one.launches} launches; values {one.values}", flush=True)
    for level in sorted({level for level, _ in count}):
        print(level, ", ".join(f"{count[level, w]} {w}" for w in ("problems", "imported", "qualified", "refused")))
    print(f"{time.perf_counter() - began:.0f} s")
    return 1 if any(word == "refused" for _, word in count) else 0


def _qualified(folder: Path, name: str) -> str:
    court = folder_court(folder, name)
    try:
        court.qualified(court.judge(court.cases, 0))
    except (Problem, Refused) as problem:
        return f"does not qualify: {problem}"
    return ""


if __name__ == "__main__":
    sys.exit(main())
