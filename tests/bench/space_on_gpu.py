"""Measure a whole search space on a GPU: which configurations are fast, and which should be the space's seeds.

    PYTHONPATH=workflow python tests/bench/space_on_gpu.py [matmul_f32|softmax_f32] [--limit N]

Every configuration is built by NVRTC (one thread a core), its answer is compared with float64, and it is timed by the
clock of a CUDA graph of 50 launches (warm L2, median). The best are timed again, interleaved, beside the baseline and
torch. With OUT set in the environment, all figures are written to $OUT/space_NAME.json.
Needs torch, cuda-bindings and an NVIDIA GPU.
"""

import argparse
import ctypes
import json
import math
import os
import re
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from cuda.bindings import driver, nvrtc

from kerneltrial.inputs.expressions import evaluate
from kerneltrial.inputs.plans import read_plan
from kerneltrial.propose.search.space import Space, read_space
from kerneltrial.records.plan import LaunchPlan

ROOT = Path(__file__).resolve().parents[2]
LAUNCHES = 50
DTYPES = {"float32": torch.float32, "int32": torch.int32}


@dataclass(frozen=True)
class Problem:
    """`timed` and `checked` are dimensions; `arrays` gives inputs, then the output's shape; `torch` is what to beat."""

    timed: Sequence[dict[str, int]]
    checked: Sequence[dict[str, int]]
    names: tuple[str, ...]
    inputs: Callable[[dict[str, int]], list[torch.Tensor]]
    output: Callable[[dict[str, int]], tuple[int, ...]]
    exact: Callable[..., torch.Tensor]
    torch: Callable[..., torch.Tensor]
    tolerance: float


def _normal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, device="cuda")


def _mnk(m: int, n: int, k: int) -> dict[str, int]:
    return {"m": m, "n": n, "k": k}


PROBLEMS = {
    "matmul_f32": Problem(
        timed=[_mnk(256, 256, 256), _mnk(384, 256, 320)],
        checked=[_mnk(31, 37, 29), _mnk(1, 1, 1), _mnk(130, 129, 127)],
        names=("a", "b", "c"),
        inputs=lambda d: [_normal(d["m"], d["k"]), _normal(d["k"], d["n"])],
        output=lambda d: (d["m"], d["n"]),
        exact=lambda a, b: a.double() @ b.double(),
        torch=lambda a, b, out: torch.matmul(a, b, out=out),
        tolerance=2e-6,  # of the largest sum of absolute terms
    ),
    "softmax_f32": Problem(
        timed=[{"rows": 512, "cols": 64}, {"rows": 64, "cols": 1024}, {"rows": 8192, "cols": 2048}],
        checked=[{"rows": 31, "cols": 37}, {"rows": 1, "cols": 1}, {"rows": 7, "cols": 4099}],
        names=("x", "y"),
        inputs=lambda d: [4 * _normal(d["rows"], d["cols"])],
        output=lambda d: (d["rows"], d["cols"]),
        exact=lambda x: torch.softmax(x.double(), 1),
        torch=lambda x, out: torch.softmax(x, 1, out=out),
        tolerance=2e-6,
    ),
}


@dataclass
class Entrant:
    """A configuration, or the baseline."""

    name: str
    source: bytes
    plan: LaunchPlan
    parameters: dict[str, int] = field(default_factory=dict)
    cubin: bytes = b""
    log: str = ""
    module: Any = None
    wrong: str = ""
    us: list[float] = field(default_factory=list)

    @property
    def mean_us(self) -> float:
        return math.exp(statistics.mean(map(math.log, self.us))) if self.us else math.inf

    @property
    def registers(self) -> int:
        return max((int(r) for r in re.findall(r"Used (\d+) registers", self.log)), default=0)


def ok(result: Sequence[Any]) -> Any:
    if int(result[0]) != 0:
        raise RuntimeError(str(result[0]))
    return result[1] if len(result) == 2 else result[1:]


def build(entrant: Entrant, arch: str) -> None:
    program = ok(nvrtc.nvrtcCreateProgram(entrant.source, b"kernel.cu", 0, [], []))
    options = [f"--gpu-architecture={arch}".encode(), b"--std=c++17", b"--ptxas-options=-v"]
    outcome = nvrtc.nvrtcCompileProgram(program, len(options), options)[0]
    log = b" " * ok(nvrtc.nvrtcGetProgramLogSize(program))
    nvrtc.nvrtcGetProgramLog(program, log)
    entrant.log = log.rstrip(b"\0").decode(errors="replace")
    if int(outcome) != 0:
        entrant.wrong = "does not compile: " + entrant.log[:300]
    else:
        entrant.cubin = b" " * ok(nvrtc.nvrtcGetCUBINSize(program))
        nvrtc.nvrtcGetCUBIN(program, entrant.cubin)
    nvrtc.nvrtcDestroyProgram(program)


class Bound:
    """A plan with numbers and buffers: call it to launch it on the current stream."""

    def __init__(self, entrant: Entrant, dims: Mapping[str, int], arrays: Mapping[str, torch.Tensor]) -> None:
        variant = next(v for v in entrant.plan.variants if evaluate(v.when, dims))
        self.buffers = dict(arrays)
        for s in entrant.plan.scratch:
            fill = 0 if s.initial != "uninitialised" else math.nan if s.dtype == "float32" else -1
            self.buffers[s.name] = torch.full((evaluate(s.elements, dims),), fill, dtype=DTYPES[s.dtype], device="cuda")
        self.launches = []
        for launch in variant.launches:
            function = ok(driver.cuModuleGetFunction(entrant.module, launch.entry.encode()))
            values = [self.buffers[a].data_ptr() if a in self.buffers else dims[a] for a in launch.args]
            kinds = [ctypes.c_void_p if a in self.buffers else ctypes.c_int for a in launch.args]
            sizes = [evaluate(e, dims) for e in (*launch.grid, *launch.block, launch.shared_bytes)]
            self.launches.append((function, sizes, (tuple(values), tuple(kinds))))

    def __call__(self) -> None:
        stream = torch.cuda.current_stream().cuda_stream
        for function, (*sizes, shared), parameters in self.launches:
            ok((*driver.cuLaunchKernel(function, *sizes, shared, stream, parameters, 0), None))


def graph_of(call: Callable[[], object]) -> torch.cuda.CUDAGraph:
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(LAUNCHES):
            call()
    return graph


def sample(graph: torch.cuda.CUDAGraph) -> float:
    """Microseconds a launch; the graph runs behind another one, so that the queue is never idle."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    graph.replay()
    start.record()
    graph.replay()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) * 1e3 / LAUNCHES


def check(entrant: Entrant, problem: Problem, dims: dict[str, int], inputs: list[torch.Tensor]) -> None:
    """Set `wrong` unless two runs agree bit for bit, match float64 and leave self-restoring scratch at zero."""
    out = torch.full(problem.output(dims), math.nan, device="cuda")
    bound = Bound(entrant, dims, dict(zip(problem.names, [*inputs, out], strict=True)))
    bound()
    first = out.clone()
    out.fill_(math.nan)
    bound()
    torch.cuda.synchronize()
    exact = problem.exact(*inputs)
    scale = problem.exact(*[i.abs() for i in inputs]).max().item()
    error = (first.double() - exact).abs().max().item() / scale
    if not torch.equal(first, out):
        entrant.wrong = f"{dims}: two runs differ"
    elif not error <= problem.tolerance:
        entrant.wrong = f"{dims}: error {error:.2e} of {scale:.2e}"
    for s in entrant.plan.scratch:
        if s.initial == "self_restoring" and bound.buffers[s.name].any():
            entrant.wrong = f"{dims}: scratch {s.name} is not restored"


def entrants_of(space: Space, folder: Path, limit: int) -> list[Entrant]:
    found = [
        Entrant(" ".join(f"{k}={v}" for k, v in c.items()), space.source(c), space.plan(c), dict(c))
        for c in space.configurations
    ]
    if limit and limit < len(found):
        seeds = [s.parameters for s in space.file.seeds]
        found = [e for i, e in enumerate(found) if e.parameters in seeds or i % (len(found) // limit) == 0]
    plan = folder / "baseline.plan.yaml"
    if plan.exists():
        launch = read_plan(plan)
        found.append(Entrant("baseline", (folder / "baseline.cu").read_bytes(), launch))
    return found


def measure(entrants: list[Entrant], problem: Problem, repeats: int) -> list[float]:
    """Time all entrants case by case, interleaved within `repeats` rounds; return torch's medians by case."""
    vendor = []
    for dims in problem.timed:
        inputs = problem.inputs(dims)
        out = torch.empty(problem.output(dims), device="cuda")
        arrays = dict(zip(problem.names, [*inputs, out], strict=True))
        bounds = [Bound(e, dims, arrays) for e in entrants]
        graphs = [graph_of(call) for call in (*bounds, partial(problem.torch, *inputs, out=out))]
        rounds = [[sample(g) for g in graphs] for _ in range(repeats)]
        medians = [statistics.median(column) for column in zip(*rounds, strict=True)]
        for entrant, us in zip(entrants, medians, strict=False):
            entrant.us.append(us)
        vendor.append(medians[-1])
        del graphs, bounds
    return vendor


def build_all(entrants: list[Entrant]) -> str:
    major, minor = torch.cuda.get_device_capability()
    arch = f"sm_{major}{minor}" + ("a" if major >= 9 else "")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda e: build(e, arch), entrants))
    return arch


def check_all(entrants: list[Entrant], problem: Problem) -> list[Entrant]:
    """Return those that are wrong somewhere."""
    for dims in [*problem.checked, *problem.timed]:
        inputs = problem.inputs(dims)
        for entrant in (e for e in entrants if not e.wrong):
            entrant.module = entrant.module or ok(driver.cuModuleLoadData(entrant.cubin))
            check(entrant, problem, dims, inputs)
    wrong = [e for e in entrants if e.wrong]
    for entrant in wrong[:10]:
        print("  wrong:", entrant.name, entrant.wrong)
    return wrong


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("problem", nargs="?", default="matmul_f32", choices=sorted(PROBLEMS))
    options.add_argument("--limit", type=int, default=0, help="measure about this many configurations (0: all)")
    options.add_argument("--again", type=int, default=60, help="how many of the best are timed again")
    chosen = options.parse_args()
    problem, folder = PROBLEMS[chosen.problem], ROOT / "kernels" / chosen.problem
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.zeros(1, device="cuda")  # makes the context that everything below uses
    clock = time.perf_counter()

    def report(what: str) -> None:
        print(f"{time.perf_counter() - clock:6.1f} s  {what}", flush=True)

    space = read_space(folder / "space.yaml")
    entrants = entrants_of(space, folder, chosen.limit)
    report(f"{len(entrants)} built for {build_all(entrants)}, {torch.cuda.get_device_name()}")
    wrong = check_all(entrants, problem)
    report(f"{len(wrong)} wrong")
    right = [e for e in entrants if not e.wrong]
    for start in range(0, len(right), 100):
        measure(right[start : start + 100], problem, 5)
    report(f"all timed; median configuration {statistics.median(e.mean_us for e in right):.2f} us")
    coarse = [(e, e.us) for e in right]
    seeds = [s.parameters for s in space.file.seeds]
    order = sorted(right, key=lambda e: e.mean_us)
    again = [e for i, e in enumerate(order) if i < chosen.again or e.parameters in seeds or e.name == "baseline"]
    for entrant in again:
        entrant.us = []
    vendor = measure(again, problem, 21)
    report("best timed again")
    show(sorted(again, key=lambda e: e.mean_us), problem, vendor, seeds)
    rows = [
        {"parameters": e.parameters, "name": e.name, "registers": e.registers, "coarse_us": first, "us": e.us}
        for e, first in coarse
    ]
    content = {"cases": problem.timed, "torch_us": vendor, "rows": rows, "wrong": [(e.name, e.wrong) for e in wrong]}
    if "OUT" in os.environ:
        (Path(os.environ["OUT"]) / f"space_{chosen.problem}.json").write_text(json.dumps(content))


def show(order: list[Entrant], problem: Problem, torch_us: list[float], seeds: list[dict[str, int]]) -> None:
    print("us by case:", *problem.timed)
    print(f"    {'torch':60s}", *[f"{us:8.2f}" for us in torch_us])
    for rank, e in enumerate(order):
        seed = e.parameters in seeds
        if rank < 15 or seed or e.name == "baseline":
            ratios = " ".join(f"{t / us:5.2f}x" for t, us in zip(torch_us, e.us, strict=True))
            figures = " ".join(f"{us:8.2f}" for us in e.us)
            print(f"{rank + 1:3d} {e.name:60s} {figures}  {ratios} of torch, {e.registers} regs{' SEED' * seed}")
    for c, dims in enumerate(problem.timed):
        best = sorted(order, key=lambda e: e.us[c])[:5]
        print("best at", dims, *[f"\n    {e.us[c]:.2f} {e.name}" for e in best])


if __name__ == "__main__":
    main()
