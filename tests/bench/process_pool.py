"""Record what fresh processes measure of pairs whose true ratio is known: the pool that `false_alarms.py` draws from.

    PYTHONPATH=workflow python tests/bench/process_pool.py [--processes 200] [--rounds 30] [--seconds 190]

Each process is a runner of the trial, and times its pairs in an order of its own, by the confirmation's own request
(ABBA rounds, a seed a process). Contexts are opened and closed side by side, timings run one after another, as in a
confirmation. Pairs, baseline against candidate:

- `clones`: a matmul of 24 us against its identical clone, in every process;
- `scaled`: a chain of dependent multiply-adds, 2 % longer (the minimum effect), against the plain chain, in every one;
- `slower_2`, `slower_0_5`: the plain chain against one of 2 % and of 0.5 % more steps, in every second process each.

The part of a launch that does not grow with the steps makes the ratio of latencies a little smaller than that of the
steps; the mean over all processes is the truth.

Writes $OUT/pool.json.gz (or pool.json.gz here): for each pair the log ratios and the A/A' log ratios of each process,
round by round, and what each took. After `--seconds` no further batch of processes is opened. Needs an NVIDIA card.
"""

import argparse
import gzip
import json
import os
import random
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from math import fsum
from pathlib import Path
from statistics import median
from typing import Any

from fidelity_kernels import Subject, _chain, _matmul, binaries

from kerneltrial.devices.cuda.probe import probe
from kerneltrial.devices.device import Binary, DeviceProblem, Refused, Samples, TimingRequest
from kerneltrial.devices.preloading import preload
from kerneltrial.devices.runner import Runner
from kerneltrial.measure.confirm import process_request
from kerneltrial.measure.statistics import noise_log_ratios, round_log_ratios
from kerneltrial.sandbox.nursery import Nursery

STEPS = 10_000
PAIRS: Mapping[str, tuple[Subject, Subject]] = {
    "clones": (_matmul("blocked", 384, 256, 320), _matmul("blocked", 384, 256, 320)),
    "scaled": (_chain(STEPS * 102 // 100), _chain(STEPS)),
    "slower_2": (_chain(STEPS), _chain(STEPS * 102 // 100)),
    "slower_0_5": (_chain(STEPS), _chain(STEPS * 1005 // 1000)),
}
SETS = 3
BATCH = 20  # processes that are open at once
_SWEEP_BYTES_A_US = 3e6  # how fast the L2 is swept, at least; an H200 streams 4.1e6


@dataclass(frozen=True)
class Recording:
    """How a pool is recorded. `code` has machine code by source file, `kind` and `arch` say what runners open."""

    code: Mapping[str, Binary]
    kind: str
    arch: str
    processes: int
    rounds: int
    clock: str
    seconds: float


def pairs_of(process: int) -> list[str]:
    """What a process times, in its own order."""
    names = ["clones", "scaled", ("slower_2", "slower_0_5")[process % 2]]
    return random.Random(process).sample(names, len(names))


def request_of(pair: str, recording: Recording, process: int) -> TimingRequest:
    """The confirmation's request for one pair in one process."""
    a, b = PAIRS[pair]
    request = TimingRequest(
        baseline=recording.code[a.source], baseline_call=a.call, candidate=recording.code[b.source],
        candidate_call=b.call, rounds=recording.rounds, clock=recording.clock, seed=11,
    )  # fmt: skip
    return process_request(request, process)


def busy_s(samples: Samples) -> float:
    """Seconds that the card worked for these samples: batches and as long again to warm up, single calls, sweeps."""
    warm = fsum(us for row in samples.warm_us.values() for us in row) * samples.calls_per_sample * 2
    sweep_us = float(samples.device_state["cold_sweep_bytes"]) / _SWEEP_BYTES_A_US
    cold = fsum(us + sweep_us for row in samples.cold_us.values() for us in row)
    return (warm + cold) / 1e6


def told(samples: Samples, wall_s: float) -> dict[str, Any]:
    """What of the samples goes into the pool."""
    return {
        "clock": samples.clock,
        "a_us": round(median(samples.warm_us["a"]), 4),
        "rounds": [round(value, 7) for value in round_log_ratios(samples)],
        "noise": [round(value, 7) for value in noise_log_ratios(samples)],
        "calls": samples.calls_per_sample,
        "wall_s": round(wall_s, 4),
        "gpu_s": round(busy_s(samples), 4),
        "sm_clock_mhz": samples.device_state.get("after_sm_clock_mhz", ""),
    }


def record(nursery: Nursery, recording: Recording) -> dict[str, list[dict[str, Any]]]:
    """The pool by pair, one entry a process; fewer processes where the seconds do not suffice."""
    pool: dict[str, list[dict[str, Any]]] = {pair: [] for pair in PAIRS}
    start = time.monotonic()
    for first in range(0, recording.processes, BATCH):
        if time.monotonic() - start > recording.seconds:
            break
        numbers = range(first, min(first + BATCH, recording.processes))
        with ExitStack() as open_runners, ThreadPoolExecutor(len(numbers)) as threads:
            runners = [
                open_runners.enter_context(Runner(nursery, recording.kind, arch=recording.arch)) for _ in numbers
            ]
            for runner in runners:
                runner.begin()
            list(threads.map(Runner.device, runners))
            opened = time.monotonic()
            for process, runner in zip(numbers, runners, strict=True):
                for pair in pairs_of(process):
                    try:
                        pool[pair].append(timed(runner, pair, recording, process))
                    except (DeviceProblem, Refused) as problem:  # told, and the pool is one smaller
                        print(f"process {process}, {pair}: {problem}", flush=True)
            timings = time.monotonic() - opened
            list(threads.map(Runner.close, runners))
        print(f"processes to {numbers[-1]}: timings {timings:.1f} s, in all {time.monotonic() - start:.1f}", flush=True)
    return pool


def timed(runner: Runner, pair: str, recording: Recording, process: int) -> dict[str, Any]:
    """One pair in one process."""
    values = [PAIRS[pair][0].values(seed) for seed in range(SETS)]
    request = request_of(pair, recording, process)
    began = time.monotonic()
    samples = runner.time(request, values)
    return told(samples, time.monotonic() - began)


def show(pool: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """A line a pair."""
    for pair, runs in pool.items():
        if len(runs) < 2:
            print(f"{pair:12s} {len(runs)} processes")
            continue
        medians = [median(run["rounds"]) for run in runs]
        noise = [median(run["noise"]) for run in runs]
        mean = fsum(medians) / len(medians)
        spread = (fsum((m - mean) ** 2 for m in medians) / (len(medians) - 1)) ** 0.5
        print(
            f"{pair:12s} {len(runs)} processes, {median(run['a_us'] for run in runs):.3f} us, mean log ratio "
            f"{mean:+.5f}, over processes {spread:.5f}, A/A' {fsum(noise) / len(noise):+.6f}, "
            f"{median(run['wall_s'] for run in runs):.2f} s a pair, of which the card works "
            f"{median(run['gpu_s'] for run in runs):.2f}; clocks {sorted({run['clock'] for run in runs})}"
        )


def written(pool: Mapping[str, Any], fingerprint: Mapping[str, str], folder: Path) -> Path:
    """The pool in one compressed file; equal pools give equal bytes."""
    where = folder / "pool.json.gz"
    text = json.dumps({"device": dict(fingerprint), "pairs": pool}, separators=(",", ":"))
    where.write_bytes(gzip.compress(text.encode(), mtime=0))
    return where


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--clock", default="graph", choices=("graph", "cupti"))
    parser.add_argument("--seconds", type=float, default=190)
    arguments = parser.parse_args()
    device = probe()
    recording = Recording(
        code=binaries(device.arch), kind="cuda", arch=device.arch, processes=arguments.processes,
        rounds=arguments.rounds, clock=arguments.clock, seconds=arguments.seconds,
    )  # fmt: skip
    with Nursery(preload("cuda")) as nursery:
        pool = record(nursery, recording)
    where = written(pool, device.fingerprint, Path(os.environ.get("OUT", ".")))
    print(f"{where}, {where.stat().st_size >> 10} KiB")
    show(pool)


if __name__ == "__main__":
    main()
