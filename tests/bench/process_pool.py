"""Record what fresh processes measure of pairs whose true ratio is known: the pool that `false_alarms.py` draws from.

    PYTHONPATH=workflow python tests/bench/process_pool.py [--processes 200] [--rounds 20] [--seconds 480]

Each process is a runner of the trial, and times every pair once, in an order of its own, by the confirmation's own
request (ABBA rounds, a seed a process). Pairs, baseline against candidate:

- `matmul`: a matmul against its identical clone;
- `chain`: a chain of dependent multiply-adds against its identical clone;
- `faster_2`, `faster_0_5`, `slower_2`: a chain with 2 % and 0.5 % more steps than the candidate, and one of 2 % fewer.
  The part of a launch that does not grow with the steps makes the ratio of latencies a little smaller than that of the
  steps; the mean over all processes is the truth.

Writes $OUT/pool.json (or pool.json here): for each pair the log ratios and the A/A' log ratios of each process, round
by round. Needs an NVIDIA card.
"""

import argparse
import json
import os
import random
import time
from collections.abc import Mapping
from math import log
from pathlib import Path
from statistics import median
from typing import Any

from fidelity_kernels import Subject, _chain, _matmul, binaries

from kerneltrial.devices.cuda.probe import probe
from kerneltrial.devices.device import Binary, Samples, TimingRequest
from kerneltrial.devices.preloading import preload
from kerneltrial.devices.runner import Runner
from kerneltrial.measure.confirm import process_request
from kerneltrial.measure.statistics import noise_log_ratios, round_log_ratios
from kerneltrial.sandbox.nursery import Nursery

STEPS = 10_000
PAIRS: Mapping[str, tuple[Subject, Subject]] = {
    "matmul": (_matmul("blocked", 384, 256, 320), _matmul("blocked", 384, 256, 320)),
    "chain": (_chain(STEPS), _chain(STEPS)),
    "faster_2": (_chain(STEPS * 102 // 100), _chain(STEPS)),
    "faster_0_5": (_chain(STEPS * 1005 // 1000), _chain(STEPS)),
    "slower_2": (_chain(STEPS), _chain(STEPS * 102 // 100)),
}


def request_of(pair: str, code: Mapping[str, Binary], rounds: int, process: int) -> TimingRequest:
    """The confirmation's request for one pair in one process."""
    a, b = PAIRS[pair]
    request = TimingRequest(
        baseline=code[a.source], baseline_call=a.call, candidate=code[b.source], candidate_call=b.call,
        rounds=rounds, clock="auto", seed=11,
    )  # fmt: skip
    return process_request(request, process)


def told(samples: Samples, wall_s: float) -> dict[str, Any]:
    """What of the samples goes into the pool."""
    return {
        "clock": samples.clock,
        "choice": samples.device_state.get("clock_choice", ""),
        "a_us": median(samples.warm_us["a"]),
        "b_us": median(samples.warm_us["b"]),
        "rounds": [round(value, 9) for value in round_log_ratios(samples)],
        "noise": [round(value, 9) for value in noise_log_ratios(samples)],
        "calls": samples.calls_per_sample,
        "wall_s": round(wall_s, 4),
        "sm_clock_mhz": samples.device_state.get("after_sm_clock_mhz", ""),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=480, help="start no further process after so long")
    arguments = parser.parse_args()
    device = probe()
    code = binaries(device.arch)
    pool: dict[str, list[dict[str, Any]]] = {pair: [] for pair in PAIRS}
    start = time.monotonic()
    with Nursery(preload("cuda")) as nursery:
        for process in range(arguments.processes):
            if time.monotonic() - start > arguments.seconds:
                break
            order = random.Random(process).sample(list(PAIRS), len(PAIRS))
            with Runner(nursery, "cuda", arch=device.arch) as runner:
                for pair in order:
                    values = [PAIRS[pair][0].values(seed) for seed in range(3)]
                    began = time.monotonic()
                    samples = runner.time(request_of(pair, code, arguments.rounds, process), values)
                    pool[pair].append(told(samples, time.monotonic() - began))
    where = Path(os.environ.get("OUT", ".")) / "pool.json"
    expected = {pair: log(1.02) * (pair == "faster_2") for pair in PAIRS}
    expected |= {"faster_0_5": log(1.005), "slower_2": -log(1.02)}
    where.write_text(json.dumps({"device": device.fingerprint, "expected": expected, "pairs": pool}))
    print(f"{len(pool['chain'])} processes in {time.monotonic() - start:.0f} s; {where}")
    for pair, runs in pool.items():
        medians = [median(run["rounds"]) for run in runs]
        noise = [median(run["noise"]) for run in runs]
        mean = sum(medians) / len(medians)
        spread = (sum((m - mean) ** 2 for m in medians) / max(1, len(medians) - 1)) ** 0.5
        clocks = {run["clock"] for run in runs}
        print(
            f"{pair:12s} {median(run['a_us'] for run in runs):8.3f} us, mean log ratio {mean:+.5f} "
            f"(by steps {expected[pair]:+.5f}), over processes {spread:.5f}, A/A' {sum(noise) / len(noise):+.6f}, "
            f"{median(run['wall_s'] for run in runs):.2f} s a pair, clocks {sorted(clocks)}"
        )


if __name__ == "__main__":
    main()
