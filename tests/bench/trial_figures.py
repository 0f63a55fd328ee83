"""Figures of the default trial on this machine: time, memory, no-op rerun, start-up of a stage. One run, one table.

    python tests/bench/trial_figures.py [--device cpu] [--cores 1]

It runs in a fresh copy of the tracked files. Figures belong beside the machine's name and date, and beside the load
that it prints: other work on the machine makes them worse.
"""

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
NUMPY_AND_RECORDS = "import numpy, msgspec"


class Memory(threading.Thread):
    """Samples the proportional set size of a process and all its descendants; `peak` is in bytes."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.peak, self.over = pid, 0, threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.5):
            self.peak = max(self.peak, sum(map(_pss, _family(self.pid))))


def _family(root: int) -> list[int]:
    parents = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            continue
    found, grown = {root}, True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        found, grown = found | more, bool(more)
    return sorted(found)


def _pss(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def timed(command: list[str], folder: Path) -> tuple[float, int]:
    """Wall seconds and peak memory of a command; ends the bench where it fails."""
    started = time.perf_counter()
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        memory = Memory(run.pid)
        memory.start()
        output = run.communicate()[0]
    seconds = time.perf_counter() - started
    memory.over.set()
    if run.returncode:
        sys.exit(output[-3000:])
    return seconds, memory.peak


def startup(folder: Path, times: int = 7) -> tuple[float, float]:
    """Median seconds of a stage that finds nothing to compute, and of importing numpy and the record library."""
    # as a rule starts it: the run is announced, the digest of the code is handed in
    os.environ["KERNELTRIAL_RUN"] = str(os.getpid())
    config = "results/matmul_f32/config.json"
    stage = [sys.executable, "-m", "kerneltrial", "prize", "--config", config, "--code", "0" * 64]
    bare = [sys.executable, "-c", NUMPY_AND_RECORDS]
    pairs = [(timed(stage, folder)[0], timed(bare, folder)[0]) for _ in range(times)]
    return median(p[0] for p in pairs), median(p[1] for p in pairs)


def main() -> None:
    """Run and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--cores", default="1")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="kerneltrial-bench-"))
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    for name in tracked.stdout.split() or _all_files():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    run = [
        sys.executable,
        "-m",
        "snakemake",
        "--cores",
        given.cores,
        "--config",
        "iterations=7",
        f"device={given.device}",
    ]
    load = os.getloadavg()[0]
    whole, memory = timed(run, folder)
    again, _ = timed(run, folder)
    stage, bare = startup(folder)
    print(f"{platform.processor() or platform.machine()}, {len(os.sched_getaffinity(0))} cores, load {load:.1f}")
    print("| figure | measured | asked |\n| --- | --- | --- |")
    print(f"| default trial, 7 x 4 | {whole:.1f} s | 120 s on 2 cores without a GPU, 60 s on an H200 |")
    print(f"| peak memory of all its processes | {memory / 2**20:.0f} MiB | 2 GB |")
    print(f"| the same command again | {again:.1f} s ({again / whole:.3f} of the first) | 5 s |")
    beside = f"{stage / bare:.2f} x numpy and msgspec ({bare:.2f} s)"
    print(f"| start-up of a stage | {stage:.2f} s, {beside} | 1.5 x |")
    shutil.rmtree(folder)


def _all_files() -> list[str]:
    kept = ("Snakefile", "config.yaml", "workflow", "kernels", "cases", "profiles")
    paths = [ROOT / name for name in kept]
    files = [p for path in paths for p in ([path] if path.is_file() else path.rglob("*")) if p.is_file()]
    return [str(p.relative_to(ROOT)) for p in files if "__pycache__" not in p.parts]


if __name__ == "__main__":
    main()
