"""How fast the cpu device is: three matmuls of 256^3 by level of checks, beside numba's CUDA simulator; compile times.

    PYTHONPATH=workflow python tests/bench/cpu_speed.py

The simulator runs the 16x16 tiled kernel in a process of its own on 32^3, the largest that it does in some seconds; its
time is scaled by the number of products. Times are of the processor, which other work on the machine moves least. With
bounds alone, blocks run on several cores, so that time by the clock stands beside (`taskset -c 0,1` for two cores).
With OUT set in the environment, the figures go to $OUT/cpu_speed.json.
"""

import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "unit" / "devices_cpu"), str(ROOT / "tests" / "gpu" / "corpus")]

N = 256
SMALL = 32
REPEATS = 5
SIMULATED = """
import sys, time
import numpy as np
from numba import cuda, float32

@cuda.jit
def tiled(A, B, C):
    s = cuda.shared.array((16, 16), float32)
    t = cuda.shared.array((16, 16), float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    acc = float32(0)
    for k in range((A.shape[1] + 15) // 16):
        s[ty, tx] = A[y, k * 16 + tx] if y < A.shape[0] and k * 16 + tx < A.shape[1] else float32(0)
        t[ty, tx] = B[k * 16 + ty, x] if x < B.shape[1] and k * 16 + ty < A.shape[1] else float32(0)
        cuda.syncthreads()
        for j in range(16):
            acc += s[ty, j] * t[j, tx]
        cuda.syncthreads()
    if y < C.shape[0] and x < C.shape[1]:
        C[y, x] = acc

n = int(sys.argv[1])
a, b = (np.random.default_rng(k).standard_normal((n, n), dtype=np.float32) for k in (0, 1))
c = np.zeros((n, n), np.float32)
start = time.process_time()
tiled[((n + 15) // 16, (n + 15) // 16), (16, 16)](a, b, c)
took = time.process_time() - start
assert np.allclose(c, a @ b, atol=1e-3)
print(took)
"""


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def simulator() -> float:
    """Seconds of numba's CUDA simulator for the tiled kernel, scaled from SMALL^3 to N^3."""
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SIMULATED, str(SMALL)], env=environment, capture_output=True, text=True, check=True
    )
    return float(done.stdout) * (N / SMALL) ** 3


def matmuls() -> dict[str, dict[str, float]]:
    """Median seconds of a run by kernel and level, and of what there is before it."""
    from ptx_runner import array, call_of, out
    from ptx_sources import NAIVE, REGISTERS, TILED, ptx_of

    from kerneltrial.devices.cpu import native
    from kerneltrial.devices.cpu.device import open_cpu
    from kerneltrial.devices.device import Binary, Conditions

    native.runtime()
    a, b = (np.random.default_rng(k).standard_normal((N, N), dtype=np.float32) for k in (0, 1))
    values = {"A": a, "B": b}
    found = {}
    for name, source, tile, block in (
        ("naive", NAIVE, 16, (16, 16)), ("tiled", TILED, 16, (16, 16)), ("register-blocked", REGISTERS, 32, (64,)),
    ):  # fmt: skip
        call = call_of([array("A", a), array("B", b), out("C", "float32", N, N), N, N, N], (N // tile,) * 2, block)
        ptx = ptx_of(source)
        row: dict[str, float] = {}
        outputs = set()
        for level in ("bounds", "all", "count"):
            loaded = open_cpu().load(Binary(ptx=ptx, cubin=b""))
            row[f"compile {level}"], _ = seconds(partial(loaded.kernel, "kern", level))
            conditions = Conditions(poison="nan", checks="bounds" if level == "count" else level)
            clock = time.perf_counter()
            if level == "count":
                runs = [seconds(partial(loaded.count, call, values, conditions)) for _ in range(2)]
            else:
                runs = [seconds(partial(loaded.run, call, values, conditions)) for _ in range(REPEATS)]
                assert all(done.completed and not done.findings for _, done in runs)
                outputs |= {done.outputs["C"] for _, done in runs}
            row[level] = median(took for took, _ in runs)
            row[f"{level} by the clock"] = (time.perf_counter() - clock) / len(runs)
        assert len(outputs) == 1, "two levels of checks gave different bits"
        got = np.frombuffer(outputs.pop(), np.float32).reshape(N, N)
        assert np.allclose(got, a.astype(np.float64) @ b, atol=1e-3)
        found[name] = row
    return found


def compile_times() -> list[tuple[float, str]]:
    """Seconds from PTX to machine code (bounds) over the corpus, each entry once."""
    from corpus_build import ptx_of
    from corpus_table import kernels

    from kerneltrial.devices.cpu.device import open_cpu
    from kerneltrial.devices.device import Binary

    entries = {(k.source, k.entry): k for k in kernels()}
    found = []
    for kernel in entries.values():
        ptx, entry = ptx_of(kernel)
        loaded = open_cpu().load(Binary(ptx=ptx, cubin=b""))
        took, _ = seconds(partial(loaded.kernel, entry, "bounds"))
        found.append((took, f"{kernel.source}:{kernel.entry}"))
    return sorted(found)


def main() -> None:
    simulated = simulator()
    rows = matmuls()
    times = compile_times()
    print(
        f"{platform.machine()}, {len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}; "
        f"ms a call of {N}^3"
    )
    print(f"{'kernel':18} {'bounds':>8} {'clock':>8} {'all':>8} {'count':>8}   {'compile (bounds, all, count)':>30}")
    for name, row in rows.items():
        compiled = " ".join(f"{1e3 * row[f'compile {level}']:9.0f}" for level in ("bounds", "all", "count"))
        print(
            f"{name:18} {1e3 * row['bounds']:8.1f} {1e3 * row['bounds by the clock']:8.1f} {1e3 * row['all']:8.1f} "
            f"{1e3 * row['count']:8.1f}   {compiled:>30}"
        )
    tiled = rows["tiled"]
    print(f"numba's simulator, tiled, scaled from {SMALL}^3: {1e3 * simulated:.0f} ms: "
          f"{simulated / tiled['bounds']:.0f} times bounds, {simulated / tiled['all']:.0f} times all")  # fmt: skip
    middle, (worst, which) = median(t for t, _ in times), times[-1]
    print(f"PTX to machine code, {len(times)} entries: median {middle:.2f} s, worst {worst:.2f} s ({which})")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of this process: {memory:.0f} MiB")
    if "OUT" in os.environ:
        figures = {"ms": rows, "simulator": simulated, "compile": times, "peak_mib": memory}
        Path(os.environ["OUT"], "cpu_speed.json").write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
