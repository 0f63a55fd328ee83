"""Kernels of a family on a card, for `families_on_gpu.py`: building, binding to buffers, checking and timing."""

from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from families_shapes import Shape, Timed

from kerneltrial.build.nvrtc import received
from kerneltrial.inputs.expressions import evaluate
from kerneltrial.inputs.plans import plan_path, read_plan
from kerneltrial.inputs.resolve import resolve
from kerneltrial.propose.search.search import Search
from kerneltrial.propose.search.space import Space, read_space
from kerneltrial.records.contract import Contract
from kerneltrial.records.plan import LaunchPlan

ROOT = Path(__file__).resolve().parents[2]
COARSE_US, FINE_US = 500.0, 1000.0  # of one reading
# Of the norm of the baseline's output; integers must be equal. A silent TF32 would show as 1e-3.
DIFFERENCE = {"float32": 3e-5, "float16": 5e-3, "bfloat16": 2e-2}


@dataclass
class Entry:
    """A kernel of ours. `us` by shape, coarse; `wrong` says why it has none."""

    name: str
    source: str
    plan: LaunchPlan
    parameters: dict[str, int]
    module: Any = None
    wrong: str = ""
    us: dict[str, float] = field(default_factory=dict)
    clusters: dict[str, int] = field(default_factory=dict)  # by shape, how many the card holds at once


def chosen(space: Space, shapes: list[Shape], device: Any, limit: int) -> list[dict[str, int]]:
    """Seeds, the prior's first for each shape, and every so many-th configuration."""
    found = [dict(seed.parameters) for seed in space.file.seeds]
    every = space.configurations
    for shape in shapes:
        guess = Search(space, [shape], device, 1).points.guess
        found += [every[row] for row in guess.argsort()[::-1][: max(2, limit // (2 * len(shapes)))]]
    found += every[:: max(1, len(every) // max(1, limit // 2))]
    return list({tuple(c.values()): c for c in found}.values())


def those_where(space: Space, condition: str, limit: int) -> list[dict[str, int]]:
    """Every configuration that meets an expression in the space's names; every so many-th where they are more."""
    found = [c for c in space.configurations if evaluate(condition, space.named(c))]
    return found[:: -(-len(found) // limit) if found else 1]


def entries_of(name: str, timed: Timed, device: Any, limit: int, where: str = "") -> list[Entry]:
    """The baseline, configurations of every space, and candidates; with `where`, configurations that meet it."""
    folder = ROOT / "kernels" / name
    source = folder / "baseline.cu"
    found = [Entry("baseline", source.read_text(), read_plan(plan_path(source)), {})]
    for space in (read_space(path, device) for path in sorted(folder.glob("space*.yaml"))):
        if space.file.language == "cuda_cpp":
            some = those_where(space, where, limit) if where else chosen(space, list(timed.shapes), device, limit)
            for c in some:
                name = " ".join(f"{k}={v}" for k, v in c.items())
                found.append(Entry(name, space.source(c).decode(), space.plan(c), c))
    for path in sorted((folder / "candidates").glob("*.cu")):
        found.append(Entry(path.stem, path.read_text(), read_plan(plan_path(path)), {}))
    return found


def built(source: str, arch: str, options: tuple[str, ...]) -> bytes:
    """Machine code by NVRTC; raise RuntimeError with the compiler's words."""
    from cuda.bindings import nvrtc

    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], [])
    words = [f"--gpu-architecture={arch}".encode(), b"--std=c++17", *(o.encode() for o in options)]
    (code,) = nvrtc.nvrtcCompileProgram(program, len(words), words)
    if int(code) != 0:
        log = received(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
        raise RuntimeError("does not compile: " + log.decode(errors="replace")[:400])
    return received(program, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)


class Bound:
    """A plan with numbers, buffers and outputs of its own: call it to put it on the stream."""

    def __init__(self, torch: Any, entry: Entry, contract: Contract, dims: Shape, arrays: dict[str, Any], stream: Any):
        from cuda.bindings import driver

        from kerneltrial.devices.cuda.launches import BoundLaunch

        call = resolve(entry.plan, contract, dims, "pointer")
        self.held, self.zeroed, self.outputs = dict(arrays), [], {}
        for b in call.buffers:
            if b.initial == "given":
                continue
            kind = getattr(torch, b.dtype)
            zero = b.initial in ("zeroed", "self_restoring")
            one = torch.zeros(b.shape, dtype=kind, device="cuda") if zero else _poisoned(torch, b.shape, kind)
            self.held[b.name] = one
            if b.initial == "zeroed":
                self.zeroed.append(one)
            if b.role == "output":
                self.outputs[b.name] = one
        addresses = {name: array.data_ptr() for name, array in self.held.items()}
        queue = driver.CUstream(stream.cuda_stream)
        self.launches = [BoundLaunch(entry.module, launch, addresses, queue) for launch in call.launches]

    def clusters(self) -> int:
        """How many clusters of the first launch the card holds at once; 0 where it has none, -1 where none can tell."""
        from kerneltrial.devices.cuda.driver import CudaError
        from kerneltrial.devices.cuda.driver import call as ask

        first = self.launches[0]
        if first._launch.cluster == (1, 1, 1):
            return 0
        try:
            return int(ask("cuOccupancyMaxActiveClusters", first._function, first._configuration))
        except (CudaError, AttributeError, TypeError):
            return -1  # of an aside, no measurement is lost

    def __call__(self) -> None:
        for array in self.zeroed:
            array.zero_()
        for launch in self.launches:
            launch.enqueue()


def _poisoned(torch: Any, shape: tuple[int, ...], kind: Any) -> Any:
    return torch.full(shape, float("nan") if kind.is_floating_point else 77, dtype=kind, device="cuda")


class Bench:
    """One family's turn with the card, on one stream."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.stream = torch.cuda.Stream()
        self.flush = torch.zeros(1 << 26, device="cuda")
        self.empty_us = median([self.pair(lambda: None, cold=True) for _ in range(15)])

    def graph(self, call: Any, calls: int) -> Any:
        """A graph of so many calls; `torch.cuda.graph` collects garbage each time, which would take most of the run."""
        graph = self.torch.cuda.CUDAGraph()
        self.torch.cuda.synchronize()
        with self.torch.cuda.stream(self.stream):
            graph.capture_begin(capture_error_mode="thread_local")
            try:
                for _ in range(calls):
                    call()
            finally:
                graph.capture_end()
        return graph

    def pair(self, work: Any, cold: bool) -> float:
        """Microseconds between two events around `work`, behind the work itself, or behind 256 MB of reading."""
        start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        with self.torch.cuda.stream(self.stream):
            if cold:
                self.flush.sum()
            else:
                work()
            start.record()
            work()
            end.record()
            end.synchronize()
        return float(start.elapsed_time(end)) * 1e3

    def once(self, call: Any) -> float:
        with self.torch.cuda.stream(self.stream):
            call()
        self.torch.cuda.synchronize()
        return min(self.pair(call, cold=True) for _ in range(2))

    def product_rate(self, dtype: str) -> float:
        """Operations a second of the vendor's largest product of this type: tensor cores' measured ceiling."""
        size = 8192
        kind = getattr(self.torch, dtype)
        a, b = (self.torch.randn(size, size, device="cuda").to(kind) for _ in range(2))
        out = self.torch.empty(size, size, device="cuda", dtype=kind)
        us = min(self.pair(lambda: self.torch.matmul(a, b, out=out), cold=False) for _ in range(10))
        return 2.0 * size**3 / us * 1e6

    def coarse(self, call: Any, about_us: float) -> float:
        calls = _calls(about_us, COARSE_US)
        graph = self.graph(call, calls)
        graph.replay()
        return min(self.pair(graph.replay, cold=False) for _ in range(3)) / calls

    def fine(self, subjects: dict[str, tuple[Any, float]]) -> dict[str, dict[str, float]]:
        """Warm and cold medians by name, of interleaved rounds; a subject is a call and about how long it takes."""
        graphs = {}
        for name, (call, about_us) in subjects.items():
            calls = _calls(about_us, FINE_US)
            graphs[name] = (self.graph(call, calls), calls, self.graph(call, 1))
        warm: dict[str, list[float]] = {name: [] for name in graphs}
        cold: dict[str, list[float]] = {name: [] for name in graphs}
        for turn in range(13):
            for name, (many, calls, single) in graphs.items():
                reading = self.pair(many.replay, cold=False) / calls
                once = self.pair(single.replay, cold=True) - self.empty_us
                if turn > 0:
                    warm[name].append(reading)
                    cold[name].append(once)
        return {name: {"warm_us": median(warm[name]), "cold_us": median(cold[name])} for name in graphs}


def _calls(about_us: float, wanted_us: float) -> int:
    return max(1, min(200, int(wanted_us / max(about_us, 1.0))))


def difference(torch: Any, one: Any, other: Any) -> float:
    """Norm of the difference over the norm of the second; infinite where integers differ."""
    if not one.dtype.is_floating_point:
        return 0.0 if torch.equal(one, other) else float("inf")
    a, b = one.float(), other.float()
    return float((a - b).norm() / b.norm().clamp_min(1e-30))


def checked(bench: Bench, bound: Bound, wanted: dict[str, Any]) -> str:
    """Why the outputs of a second call are not the baseline's, or not the first call's; nothing where they are."""
    torch = bench.torch
    first = {n: o.clone() for n, o in bound.outputs.items()}
    for output in bound.outputs.values():
        output.fill_(float("nan") if output.dtype.is_floating_point else 99)
    torch.cuda.synchronize()
    bench.pair(bound, cold=False)
    for name, output in bound.outputs.items():
        allowed = DIFFERENCE.get(str(output.dtype).removeprefix("torch."), 0.0)
        far = difference(torch, output, wanted[name])
        if not far <= allowed:
            return f"{name} differs from the baseline's by {far:.1e}"
        if not torch.equal(output, first[name]):
            return f"{name}: two calls differ"
    return ""
