"""Trace every problem here again and write traced.json, which the tests read where torch is not installed.

    PYTHONPATH=workflow python tests/import_problems/regenerate.py [NAME ...]

With names it traces those alone and leaves the other rows as they are.
A row a problem: its graph as the confined child tells it, or why there is none, the bounds that were found, and some of
torch's own outputs in float64 for the first draw. Needs torch.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from kerneltrial.commands.importing import problem
from kerneltrial.commands.importing.contract_of import contract_of, output_names
from kerneltrial.commands.importing.conversing import Asked, asking, nursery, require_torch
from kerneltrial.commands.importing.lowering import lowered
from kerneltrial.commands.importing.oracle_text import oracle_text
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.inputs.values import generate
from kerneltrial.records.case import Case

HERE = Path(__file__).resolve().parent
SAMPLES = 16


def main() -> None:
    require_torch()
    names, rows, recorded = set(sys.argv[1:]), [], HERE / "traced.json"
    before = {row["name"]: row for row in msgspec.json.decode(recorded.read_bytes())} if names else {}
    with nursery() as opened:
        for path in sorted(HERE.glob("level*/*.py")):
            if path.stem in before and path.stem not in names:
                rows.append(before[path.stem])
                continue
            with asking(opened, path.read_text()) as asked:
                row: dict[str, Any] = {"name": path.stem, "level": path.parent.name}
                try:
                    row |= _row(asked, path.stem)
                except InputProblem as fault:
                    row["why"] = str(fault)
            rows.append(row)
    text = ",\n".join(msgspec.json.encode(row).decode() for row in rows)
    recorded.write_text(f"[\n{text}\n]\n")


def _row(asked: Asked, name: str) -> dict[str, Any]:
    traced = asked.traced()
    graph = lowered(traced)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "oracle.py"
        path.write_text(oracle_text(graph, output_names(graph), name))
        _, bounds, scaled = problem._bounds(asked, graph, name, path)
    contract = contract_of(name, "", graph, bounds, scaled)
    case = Case(name="first", kind="correctness", dimensions={}, seed=1)
    values = generate(contract, case, 0)
    kinds = {one.name: one.dtype for one in graph.given}
    raw = {key: (one != 0) if kinds[key] == "bool" else one for key, one in values.items()}
    samples = []
    for array, content in zip(contract.outputs, asked.outputs(raw, True), strict=True):
        flat = np.frombuffer(content, np.float64 if array.dtype == "float32" else np.int64)
        samples.append([float(flat[at]) for at in np.linspace(0, flat.size - 1, SAMPLES).astype(int)])
    return {"traced": traced, "bounds": bounds, "scaled": scaled, "samples": samples}


if __name__ == "__main__":
    main()
