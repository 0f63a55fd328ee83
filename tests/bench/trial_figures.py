"""Figures of a trial on this machine: time, memory, the same command again, start-up of a stage. One run, one table.

    python tests/bench/trial_figures.py [--device cpu] [--cores 1] [--times 1] [--set KEY=VALUE ...] [--verify]
        [--no-memory]

Without `--set` it is the default trial, 7 x 4; what is set is handed to Snakemake's `--config`. Each trial runs in a
fresh copy of the tracked files. With `--times` so many run one after another, and memory is sampled in the last of
them alone, since sampling takes time. Each trial's line says what was decided and how long its stages took by their own
clocks, all iterations together. `--verify` has the last one verified. A trial that fails is told, and the exit status
is 1 then. With OUT set, decision, confirmation and qualification of each go to $OUT. Figures belong beside the
machine's name and date, and beside the load that is printed: other work on the machine makes them worse.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
NUMPY_AND_RECORDS = "import numpy, msgspec"
TOLD = ("confirmed_speedup", "measured_on_gpu", "vendor_not_faster")


class Failed(Exception):
    """A command ended badly; the text is the end of its output."""


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


def timed(command: list[str], folder: Path, sampled: bool = True) -> tuple[float, int]:
    """Wall seconds of a command, and its peak memory where that is sampled; raise `Failed` where it fails."""
    started = time.perf_counter()
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        memory = Memory(run.pid)
        if sampled:
            memory.start()
        output = run.communicate()[0]
    seconds = time.perf_counter() - started
    memory.over.set()
    if run.returncode:
        raise Failed(f"{' '.join(command[:4])} ended with {run.returncode}:\n{output[-3000:]}")
    return seconds, memory.peak


def startup(folder: Path, times: int = 7) -> tuple[float, float]:
    """Median seconds of a stage that finds nothing to compute, and of importing numpy and the record library."""
    # as a rule starts it: the run is announced, the digest of the code is handed in
    os.environ["KERNELTRIAL_RUN"] = str(os.getpid())
    config = next(folder.glob("results/*/config.json")).relative_to(folder)
    stage = [sys.executable, "-m", "kerneltrial", "prize", "--config", str(config), "--code", "0" * 64]
    bare = [sys.executable, "-c", NUMPY_AND_RECORDS]
    pairs = [(timed(stage, folder, False)[0], timed(bare, folder, False)[0]) for _ in range(times)]
    del os.environ["KERNELTRIAL_RUN"]
    return median(p[0] for p in pairs), median(p[1] for p in pairs)


def body(results: Path, name: str) -> dict:
    return json.loads((results / f"{name}.json").read_bytes())["body"]


def told(results: Path) -> list[str]:
    """What a trial came to: decision, speedups, compilers' kernels, seconds of the stages' own clocks."""
    decision = body(results, "decision")
    lines = [f"{decision['outcome']}; stopped: {decision['stop']}"]
    lines += [f"{rule['rule']}: {rule['seen']}" for rule in decision["rules"] if rule["rule"] in TOLD]
    outcome = body(results, "confirmation")["outcome"]
    for case in outcome.get("cases", ()):
        us = (case.get(f"{kind}_{heat}_us") for kind in ("baseline",) for heat in ("warm", "cold"))
        shown = " and ".join("?" if one is None else f"{one:.3f}" for one in us)
        lines.append(
            f"{case['case']}: winner {case['warm_us']:.3f} us warm, {case['cold_us']:.3f} cold, baseline {shown}; "
            f"{case['clock']}, {case['processes']} processes"
        )
    for entry in body(results, "qualification")["compilers"]["entries"]:
        figures = entry.get("why") or entry.get("cases") or entry
        lines.append(f"{entry['name']}: {json.dumps(figures)[:300]}")
    walls: Counter[str] = Counter()
    for path in (results / "usage").rglob("*.json"):
        one = json.loads(path.read_bytes())
        walls[one["key"]["usage"]] += float(one["value"]["wall_s"])
    return [*lines, "stages: " + ", ".join(f"{stage} {s:.1f}" for stage, s in walls.most_common())]


def copied(folder: Path) -> Path:
    """The tracked files, or what a trial needs where git does not know them."""
    try:
        tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.split()
    except OSError:
        tracked = []
    for name in tracked or _all_files():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def main() -> int:
    """Run and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--cores", default="1")
    parser.add_argument("--iterations", default="7")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="another key of the config")
    parser.add_argument("--verify", action="store_true")
    parser.add_argument("--no-memory", action="store_true", help="sample no memory at all")
    given = parser.parse_args()
    sets = [f"iterations={given.iterations}", f"device={given.device}", *given.set]
    run = [sys.executable, "-m", "snakemake", "--cores", given.cores, "--config", *sets]
    bad = 0
    for number in range(1, given.times + 1):
        with tempfile.TemporaryDirectory(prefix="kerneltrial-bench-") as held:
            try:
                measured(copied(Path(held)), run, given, number)
            except Failed as fault:
                bad = 1
                print(f"trial {number} FAILED: {fault}", flush=True)
    return bad


def measured(folder: Path, run: list[str], given: argparse.Namespace, number: int) -> None:
    """One trial; what is asked once is asked of the last."""
    load, last = os.getloadavg()[0], number == given.times
    sampled = last and not given.no_memory
    whole, memory = timed(run, folder, sampled)
    results = next(folder.glob("results/*/lock.json")).parent
    print(f"trial {number}: {whole:.1f} s, load {load:.1f}" + " (memory sampled)" * sampled, flush=True)
    print(*(f"  {line}" for line in told(results)), sep="\n", flush=True)
    if "OUT" in os.environ:
        for name in ("decision", "confirmation", "qualification"):
            shutil.copy2(results / f"{name}.json", Path(os.environ["OUT"]) / f"{name}_{number}.json")
    again, _ = timed(run, folder, sampled=False)
    if not last:
        print(f"  the same command again: {again:.1f} s", flush=True)
        return
    stage, bare = startup(folder)
    print(f"{platform.processor() or platform.machine()}, {len(os.sched_getaffinity(0))} cores, load {load:.1f}")
    print("| figure | measured | asked |\n| --- | --- | --- |")
    print(f"| trial, {given.iterations} iterations | {whole:.1f} s | 120 s on 2 cores without a GPU, 60 s on an H200 |")
    if sampled:
        print(f"| peak memory of all its processes | {memory / 2**20:.0f} MiB | 2 GB |")
    print(f"| the same command again | {again:.1f} s ({again / whole:.3f} of the first) | 5 s |")
    beside = f"{stage / bare:.2f} x numpy and msgspec ({bare:.2f} s)"
    print(f"| start-up of a stage | {stage:.2f} s, {beside} | 1.5 x |", flush=True)
    if given.verify:
        started = time.perf_counter()
        verify = [sys.executable, "-m", "kerneltrial", "verify", str(results)]
        done = subprocess.run(verify, cwd=folder, capture_output=True, text=True)
        print(f"verify: status {done.returncode}, {time.perf_counter() - started:.1f} s")
        print((done.stdout + done.stderr)[-3000:], flush=True)
        if done.returncode:
            raise Failed("verify found a fault")


def _all_files() -> list[str]:
    kept = ("Snakefile", "config.yaml", "workflow", "kernels", "cases", "profiles")
    paths = [ROOT / name for name in kept]
    files = [p for path in paths for p in ([path] if path.is_file() else path.rglob("*")) if p.is_file()]
    return [str(p.relative_to(ROOT)) for p in files if "__pycache__" not in p.parts]


if __name__ == "__main__":
    sys.exit(main())
