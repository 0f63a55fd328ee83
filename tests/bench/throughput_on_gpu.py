"""How long 32 candidates of the matmul space take to be validated and timed on two performance cases. No Snakemake.

    python tests/bench/throughput_on_gpu.py [--candidates 32] [--device auto]

In a fresh copy of the tracked files, with one iteration of so many candidates, the stages up to the timing are run one
after another, each as a process of its own as a rule starts it. What issue 3/7 asks is the sum of `validate` and `time`
(the search's own times, one process a candidate) in at most 60 s on one H200; the other stages stand beside. The exit
status is 1 where that is missed on a card, or where a candidate of the space was not validated and timed at all.
On the `cpu` device (`--device cpu`) candidates are counted instead; that checks this script and is no figure.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BEFORE = ("lock", "terms", "qualify", "prize")
ITERATION = ("propose", "build", "validate", "time")
ASKED_S = 60.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=32)
    parser.add_argument("--device", default="auto", choices=("auto", "cuda", "cpu"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kerneltrial-throughput-") as held:
        folder = copied(Path(held))
        seconds = {stage: ran(folder, stage, given) for stage in (*BEFORE, *ITERATION)}
        text, bad = judged(records(folder), seconds, given.candidates)
        if "OUT" in os.environ:
            shutil.copytree(folder / "results", Path(os.environ["OUT"]) / "results", dirs_exist_ok=True)
    print(text)
    return bad


def copied(folder: Path) -> Path:
    """The files that a trial reads, and the package."""
    for name in ("config.yaml", "workflow", "kernels", "cases"):
        source, to = ROOT / name, folder / name
        if source.is_file():
            shutil.copy2(source, to)
        else:
            shutil.copytree(source, to, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def ran(folder: Path, stage: str, given: argparse.Namespace) -> float:
    """Wall seconds of a stage; ends the bench where it fails."""
    sets = {"iterations": 1, "candidates_per_iteration": given.candidates, "device": given.device}
    command = [sys.executable, "-m", "kerneltrial", stage]
    command += [word for key, value in sets.items() for word in ("--set", f"{key}={value}")]
    command += ["--iteration", "1"] if stage in ITERATION else []
    path = os.pathsep.join(filter(None, (str(folder / "workflow"), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path}
    began = time.monotonic()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{stage}: {done.stdout}{done.stderr}")
    return time.monotonic() - began


def records(folder: Path) -> dict[str, Any]:
    """The bodies of lock, validation and timing."""
    results = folder / "results/matmul_f32"
    paths = {name: results / f"iterations/0001/{name}.json" for name in ("validation", "timing")}
    paths["lock"] = results / "lock.json"
    return {name: json.loads(path.read_bytes())["body"] for name, path in paths.items()}


def judged(found: dict[str, Any], seconds: dict[str, float], asked: int) -> tuple[str, int]:
    """The table, and 1 where something is amiss."""
    device, whole = found["lock"]["device"], seconds["validate"] + seconds["time"]
    states = {name: Counter(one["state"] for one in found[name]["candidates"]) for name in ("validation", "timing")}
    cases = {case["case"] for one in found["timing"]["candidates"] for case in one.get("cases", ())}
    measured = states["timing"]["timed"] + states["timing"]["counted"]
    lines = [
        f"{device['name']}, driver {device['fingerprint'].get('driver', 'none')}, {len(os.sched_getaffinity(0))} cores",
        *(f"  {stage:10s} {s:7.1f} s" for stage, s in seconds.items()),
        f"validated: {dict(states['validation'])}; timed: {dict(states['timing'])}; performance cases: {len(cases)}",
        f"validate and time: {whole:.1f} s ({whole / asked:.2f} a candidate); asked: {ASKED_S:.0f} for 32 on an H200",
    ]
    right = states["validation"]["valid"]
    missed = [
        f"{sum(states['validation'].values())} candidates came of {asked}" * (states["validation"].total() != asked),
        f"{right - measured} valid ones have no figure" * (measured != right),
        "no candidate is valid" * (right == 0),
        "not reached" * (device["kind"] == "cuda" and whole > ASKED_S * asked / 32),
    ]
    lines += [f"! {line}" for line in missed if line]
    return "\n".join(lines), int(any(missed))


if __name__ == "__main__":
    sys.exit(main())
