"""What a model's trial spends beside compiling, judging and timing, against a scripted server on loopback.

    PYTHONPATH=workflow python tests/bench/proposer_figures.py [--iterations 7] [--candidates 3]

The real Snakemake runs the starter's trial on `cpu`; every answer is a good kernel of another number. Printed: the
stages' own seconds by kind, and what is left over for proposing, records, Snakemake and the start of every process.
A stage's wall time begins when its process has started and read the config, so that every start counts as left over;
its processor time holds its whole process. Processor time hardly depends on what else the machine does. That of stages
which a run's stem forked (ADR 48) is not in that of Snakemake's own children, and is added; the stem's imports, about a
second, are in neither.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from itertools import count
from pathlib import Path

import yaml

from kerneltrial.store.canonical import canonical

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "unit" / "propose"))

from scripted_server import Answer, responses, serving

JUDGED = ("qualify", "build", "validate", "time", "holdout", "confirm")
SOURCE = """extern "C" __global__ void scale_add(const float* x, const float* y, float* out, int n, float alpha) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fmaf(alpha, x[i], y[i]);
}
"""


def answers() -> list[Answer]:
    """Good kernels that differ by a comment."""
    launch = {"entry": "scale_add", "grid": ["ceil_div(n, 128)", "1", "1"], "block": ["128", "1", "1"],
              "args": ["x", "y", "out", "n", "alpha"], "cluster": ["1", "1", "1"], "cooperative": False,
              "shared_bytes": "0"}  # fmt: skip
    plan = {"scratch": [], "variants": [{"when": "1", "launches": [launch]}]}
    whole = {"language": "cuda_cpp", "hypothesis": "another", "pattern": "none", "plan": plan}
    numbers = count(1)
    return [responses(json.dumps({**whole, "source": f"{SOURCE}// {next(numbers)}\n"})) for _ in range(200)]


def _processor_s() -> float:
    """Of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _run(folder: Path, environment: dict[str, str]) -> None:
    words = [sys.executable, "-m", "snakemake", "--cores", "1", "--quiet"]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def _configure(folder: Path, **changes: object) -> None:
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | changes))


def _proposals(folder: Path) -> list[bytes]:
    paths = sorted(folder.glob("iterations/*/proposal.json"))
    return [canonical(json.loads(path.read_bytes())["body"]) for path in paths]


def _replayed(folder: Path, environment: dict[str, str]) -> int:
    """Replay the trial in the same folder, its server being gone; return how many proposals came out byte-equal."""
    (folder / "results").rename(folder / "recorded")
    (recorded,) = (folder / "recorded").iterdir()
    _configure(folder, proposer="replay", replies=str(recorded.relative_to(folder) / "replies"))
    _run(folder, environment)
    pairs = zip(_proposals(recorded), _proposals(folder / "results" / recorded.name), strict=True)
    return sum(one == other for one, other in pairs)


def _with_forked(processor_s: float, told: list[tuple[str, dict[str, str]]]) -> float:
    """The processor time of the whole run: what Snakemake waited for, and the stages where it did not wait for them."""
    stages = sum(float(value["cpu_s"]) for _, value in told)
    return processor_s if processor_s >= stages else processor_s + stages


def _show(told: list[tuple[str, dict[str, str]]], wholes: dict[str, float]) -> None:
    for (name, whole), field in zip(wholes.items(), ("wall_s", "cpu_s"), strict=True):
        spent: dict[str, float] = {}
        for stage, value in told:
            spent[stage] = spent.get(stage, 0.0) + float(value[field])
        compiled = sum(spent.get(stage, 0.0) for stage in ("build", "validate", "time"))
        judged = sum(spent.get(stage, 0.0) for stage in JUDGED)
        print(
            f"{name}: {whole:.1f} s in all, {compiled:.1f} s in build, validate, time, {judged - compiled:.1f} s in "
            f"qualify, holdout, confirm; left over: {whole - judged:.1f} s ({(whole - judged) / whole:.2f} of all)"
        )
        print("   ", ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in sorted(spent.items())))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--iterations", type=int, default=7)
    options.add_argument("--candidates", type=int, default=3)
    options.add_argument("--replay", action="store_true", help="replay the trial afterwards, without the server")
    chosen = options.parse_args()
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "workflow"), "NO_PROXY": "127.0.0.1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installation has its modules compiled
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "trial"
        words = [sys.executable, "-m", "kerneltrial", "init", str(folder)]
        subprocess.run(words, env=environment, check=True, capture_output=True)
        price = {"kind": "tokens", "input_usd": 1, "cached_input_usd": 1, "output_usd": 1, "source": "own",
                 "date": "2026-12-01"}  # fmt: skip
        with serving(*answers()) as server:
            prices = yaml.safe_load((folder / "config.yaml").read_text())["prices"] | {"model": price}
            model = {"name": "m", "base_url": server.url, "api": "responses"}
            _configure(folder, proposer="openai", device="cpu", model=model, prices=prices)
            _configure(folder, iterations=chosen.iterations, candidates_per_iteration=chosen.candidates)
            started, before = time.monotonic(), _processor_s()
            _run(folder, environment)
            wholes = {"wall": time.monotonic() - started, "processor": _processor_s() - before}
        paths = folder.glob("results/*/usage/*/*.json")
        told = [(path.parent.name.rpartition("-")[0], json.loads(path.read_bytes())["value"]) for path in paths]
        wholes["processor"] = _with_forked(wholes["processor"], told)
        print(f"{len(server.seen)} answers, {len(told)} jobs")
        _show(told, wholes)
        if chosen.replay:
            print(f"replayed: {_replayed(folder, environment)} of {chosen.iterations} proposals byte-equal")


if __name__ == "__main__":
    main()
