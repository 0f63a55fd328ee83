"""What the cuda device itself costs, and how its clocks differ.

    PYTHONPATH=workflow python tests/bench/device_costs.py

With OUT set in the environment, all samples are written to $OUT/device_costs.json. Needs an NVIDIA card.
"""

import json
import os
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "gpu"))

from own_process import KERNELS, compile_cuda
from test_gpu_run import factors, product

from kerneltrial.devices.cuda.device import CudaDevice, open_cuda
from kerneltrial.devices.cuda.probe import probe
from kerneltrial.devices.device import Binary, Conditions, Samples, TimingRequest
from kerneltrial.measure.rounds import case_latency, without_outputs

SHAPES = ((31, 37, 29), (256, 256, 256), (384, 256, 320), (1024, 1024, 1024))


def seconds(work: Any) -> tuple[float, Any]:
    """How long a call took by the wall clock, and what it gave."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def timed(card: CudaDevice, binary: Binary, shape: tuple[int, int, int], clock: str, order: str) -> Samples:
    """`blocked` against itself: every speedup should be 1."""
    call = product("blocked", *shape)
    request = TimingRequest(
        baseline=binary, baseline_call=call, candidate=binary, candidate_call=call,
        rounds=60, clock=clock, seed=3, order=order,
    )  # fmt: skip
    return card.time(request, [factors(*shape, seed) for seed in (0, 7)])


def main() -> None:
    took, found = seconds(probe)
    print(f"probe {took:.3f} s: {found.name}, {found.arch}")
    print(json.dumps(found.fingerprint, indent=1))
    took, card = seconds(lambda: open_cuda(found.arch))
    print(f"open {took:.3f} s")
    took, binary = seconds(lambda: compile_cuda((KERNELS / "matmul.cu").read_text(), found.arch))
    print(f"compile {took:.3f} s")
    took, loaded = seconds(lambda: card.load(binary))
    print(f"load {took:.4f} s")
    for shape in SHAPES:
        call, values = product("split", *shape), factors(*shape)
        runs = [seconds(lambda c=call, v=values: loaded.run(c, v, Conditions(poison="nan")))[0] for _ in range(5)]
        print(f"run {shape}: first {runs[0] * 1e3:.2f} ms, then {median(runs[1:]) * 1e3:.2f} ms")
    kept = {}
    print("shape, clock, order: wall s | batch, warm, cold, empty pair us | speedup low..high | noise low..high")
    for shape in SHAPES:
        for clock, order in (("graph", "random"), ("graph", "abba"), ("events", "random"), ("events-10-100", "random")):
            took, samples = seconds(lambda s=shape, c=clock, o=order: timed(card, binary, s, c, o))
            one = case_latency("x", samples, "0" * 64, 0.95)
            spread = np.std(np.log(samples.warm_us["a"]))
            print(
                f"{shape} {clock} {order}: {took:.2f} | {samples.calls_per_sample} {one.warm_us:.3f} {one.cold_us:.3f} "
                f"{samples.device_state['cold_empty_pair_us_a'][:5]} | {one.speedup.low:.4f} {one.speedup.high:.4f} | "
                f"{one.noise_floor.low:.4f} {one.noise_floor.high:.4f} | round spread {spread:.4f}"
            )
            kept[f"{shape} {clock} {order}"] = msgspec.to_builtins(without_outputs(samples))
    print(json.dumps(samples.device_state, indent=1))
    if "OUT" in os.environ:
        (Path(os.environ["OUT"]) / "device_costs.json").write_text(json.dumps(kept))


if __name__ == "__main__":
    main()
