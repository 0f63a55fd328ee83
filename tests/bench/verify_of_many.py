"""How long `kerneltrial verify` takes, and how much memory, for the bundle of a trial of many attempts.

    python tests/bench/verify_of_many.py [--attempts 500] [--device cpu] [--cores 2]

A real trial of `kerneltrial init`'s kernel, each attempt a source and a binary of its own, sealed without a signature
and packed. It prints the trial's time, the bundle's size, and what verifications took: of the bundle as it is, with the
winner compiled again (what `verify BUNDLE` does), with all of it, and with winner and baseline judged again. Memory is
the largest resident set of the process and its children.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
SOURCE = """extern "C" __global__ void scale_add(const float* x, const float* y, float* out, int n, float alpha) {{
  if (n == -2 - {number}) return;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    out[i] = fmaf(alpha, x[i], y[i]);
}}
"""
PLAN = {"variants": [{"launches": [{"entry": "scale_add", "grid": ["4", "1", "1"], "block": ["128", "1", "1"],
                                    "args": ["x", "y", "out", "n", "alpha"]}]}]}  # fmt: skip
A_ROUND = 50  # candidates
ORACLE = "cases/scale_add/oracle.py"


def prepare(folder: Path, given: argparse.Namespace) -> None:
    """A trial with as many candidates in its folder as there are attempts."""
    candidates = folder / "kernels/scale_add/candidates"
    for path in candidates.iterdir():
        path.unlink()
    for number in range(given.attempts):
        (candidates / f"a{number:04d}.cu").write_text(SOURCE.format(number=number))
        (candidates / f"a{number:04d}.plan.yaml").write_text(yaml.safe_dump(PLAN))
    path = folder / "config.yaml"
    config = yaml.safe_load(path.read_text())
    config |= {
        "trial": "many", "device": given.device, "proposer": "files", "iterations": -(-given.attempts // A_ROUND),
        "candidates_per_iteration": min(A_ROUND, given.attempts),
    }  # fmt: skip
    config["protocol"] |= {"boundary_shapes": 2}
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    (folder / "cases/scale_add/cases.yaml").write_text(
        "cases:\n"
        "  - {name: ragged, kind: correctness, dimensions: {n: 103}, seed: 1}\n"
        "  - {name: large, kind: performance, dimensions: {n: 2048}, seed: 2}\n"
    )
    (folder / "cases/scale_add/holdout.yaml").write_text("dimensions:\n  n: {minimum: 1, maximum: 2000}\ncount: 2\n")


def timed(words: list[str], folder: Path) -> tuple[float, float, str]:
    """Seconds, MiB and output of a command; ends the bench where it fails."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "workflow"), os.getenv("PYTHONPATH", "")])}
    read, write = os.pipe()
    started = time.perf_counter()
    child = os.fork()
    if child == 0:  # a process between, so that its children's largest resident set is the command's alone
        os.close(read)
        done = subprocess.run(
            words, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        with os.fdopen(write, "w") as told:
            told.write(f"{done.returncode} {peak}\n{done.stdout}")
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as told:
        status, peak = map(int, told.readline().split())
        said = told.read()
    os.waitpid(child, 0)
    if status:
        sys.exit(f"{' '.join(words)}\n{said[-3000:]}")
    return time.perf_counter() - started, peak / 1024, said


def main() -> None:
    """Run and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--attempts", type=int, default=500)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--cores", default="2")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kerneltrial-many-") as scratch:
        place = Path(scratch)
        own = [sys.executable, "-m", "kerneltrial"]
        timed([*own, "init", "trial"], place)
        folder = place / "trial"
        prepare(folder, given)
        seconds, _, _ = timed([sys.executable, "-m", "snakemake", "--cores", given.cores], folder)
        print(f"the trial itself: {given.attempts} attempts, {seconds:.0f} s on {given.device}", flush=True)
        print("| step | time | peak memory |\n| --- | --- | --- |")
        bundle = str(place / "bundle.tar")
        for name, words in (
            ("seal", ["seal"]),
            ("bundle", ["bundle", "--out", bundle]),
            ("verify, nothing compiled", ["verify", bundle, "--recompile", "none"]),
            ("verify, the winner compiled again", ["verify", bundle]),
            ("verify, all compiled again", ["verify", bundle, "--recompile", "all"]),
            ("verify, the winner compiled and judged again", ["verify", bundle, "--rerun", ORACLE]),
        ):
            seconds, peak, said = timed([*own, *words], folder)
            print(f"| {name} | {seconds:.1f} s | {peak:.0f} MiB |", flush=True)
        print(f"{Path(bundle).stat().st_size / 2**20:.1f} MiB; {said.strip().splitlines()[-2]}")


if __name__ == "__main__":
    main()
