"""The files of an imported problem's trial: what `kerneltrial init` leaves, with contract, oracle and baseline."""

import shutil
from pathlib import Path
from typing import Any

import yaml

from kerneltrial.records.contract import Contract
from kerneltrial.records.plan import LaunchPlan
from kerneltrial.store.canonical import builtins

STARTER = Path(__file__).resolve().parents[1] / "starter"
CASES = {
    "cases": [
        {"name": "first", "kind": "correctness", "dimensions": {}, "seed": 1},
        {"name": "timed", "kind": "performance", "dimensions": {}, "seed": 2},
    ]
}
_ONES = ["1", "1", "1"]  # a cluster of one block, as no word says
HOLDOUT = {"dimensions": {}, "count": 4}
_CONFIG = """# Made by `kerneltrial import torch`; kerneltrial's own config.yaml explains every key.
trial: {name}
contract: kernels/{name}/contract.yaml
baseline: kernels/{name}/baseline.cu       # plain kernels: put what production runs in their place, where it is better
cases: cases/{name}/cases.yaml
oracle: cases/{name}/oracle.py
oracle_author: {author}
holdout: cases/{name}/holdout.yaml

proposer: files                            # or openai, command: see the README, Who proposes
candidates: kernels/{name}/candidates      # NAME.cu or NAME.py, each with NAME.plan.yaml
iterations: 1
candidates_per_iteration: 1

prices:                                    # an EXAMPLE row: put your own in its place
  gpu_hour_usd: 3.50
  engineer_hour_usd: 120
  source: example row, no quotation
  date: 2026-12-01

workload:
  example: true                            # these are not your figures; they can never lead to GO
  calls_per_month: {{timed: 1000000000}}
  setup_hours: 4
  review_hours: 2
"""


def oracle_path(folder: Path, name: str) -> Path:
    return folder / "cases" / name / "oracle.py"


def write(folder: Path, contract: Contract, plan: LaunchPlan, source: str, author: str) -> None:
    """Write everything but the oracle into `folder`."""
    name = contract.name
    kernels, cases = folder / "kernels" / name, folder / "cases" / name
    (kernels / "candidates").mkdir(parents=True, exist_ok=True)
    cases.mkdir(parents=True, exist_ok=True)
    (kernels / "contract.yaml").write_text(_yaml(contract))
    (kernels / "baseline.cu").write_text(source)
    (kernels / "baseline.plan.yaml").write_text(_yaml(plan))
    (cases / "cases.yaml").write_text(yaml.safe_dump(CASES, sort_keys=False))
    (cases / "holdout.yaml").write_text(yaml.safe_dump(HOLDOUT, sort_keys=False))
    (folder / "config.yaml").write_text(_CONFIG.format(name=name, author=author))
    shutil.copy(STARTER / "Snakefile", folder / "Snakefile")
    shutil.copytree(STARTER / "profiles", folder / "profiles", dirs_exist_ok=True)


def _yaml(record: Any) -> str:
    document = _said(builtins(record))
    if isinstance(record, Contract):
        document["dimensions"] = {}  # said although it is empty: the shape is the problem's own
    return yaml.safe_dump(document, sort_keys=False, width=120, default_flow_style=None)


def _said(value: Any) -> Any:
    """Without what is left open, so that a person can read it; numbers as people write them."""
    if isinstance(value, dict):
        kept = {key: _said(one) for key, one in value.items()}
        kept = {key: one for key, one in kept.items() if one not in (None, {}, [], "") and one is not False}
        return {key: one for key, one in kept.items() if (key, one) != ("cluster", _ONES)}
    if isinstance(value, list):
        return [_said(one) for one in value]
    if isinstance(value, str) and value.startswith("0.0000"):
        return f"{float(value):g}"
    return value
