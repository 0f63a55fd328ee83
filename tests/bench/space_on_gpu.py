"""Measure every configuration of a shipped search space on a GPU: one table, for the search's tests and for its seeds.

    PYTHONPATH=workflow python tests/bench/space_on_gpu.py matmul_f32 ... [--limit N] [--again 40] [--processes N]

Configurations are compiled by NVRTC, one process a core, and as they come each is compared with the oracle on every
case and timed on the performance cases: a CUDA graph of whole cycles of inputs and outputs (the trial's own buffers), a
graph to warm the caches, then one between events behind a held queue; median of 5. The baseline is timed again every
50 configurations, so that a drift shows. The best `--again` and the seeds are then timed in random order within 11
rounds. Writes $OUT/space_NAME.json.gz (or here) and prints the best. Needs an NVIDIA GPU, no torch.
"""

import argparse
import multiprocessing
import os
import random
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit" / "families"))

from family_court import CLONE, Family
from space_tables import Row, Table, write_table

from kerneltrial.build import toolkit
from kerneltrial.build.messages import Compiled
from kerneltrial.build.nvrtc import compile_source
from kerneltrial.build.resources import Resources, resources
from kerneltrial.devices.cuda import probe
from kerneltrial.devices.cuda.clocks import Batch, call_each_set
from kerneltrial.devices.cuda.context import Context
from kerneltrial.devices.cuda.driver import CudaError
from kerneltrial.devices.cuda.launches import Module
from kerneltrial.devices.cuda.loaded import CudaLoaded
from kerneltrial.devices.cuda.subjects import PlanSubject, SharedBuffers
from kerneltrial.devices.device import Conditions
from kerneltrial.inputs.config import read
from kerneltrial.inputs.oracle import load
from kerneltrial.inputs.plans import plan_path, read_plan
from kerneltrial.inputs.resolve import PlanProblem, resolve
from kerneltrial.inputs.values import generate
from kerneltrial.judge.compare import Expected, compare
from kerneltrial.judge.precision import decode
from kerneltrial.propose.search.space import Space, read_space
from kerneltrial.records.case import Case
from kerneltrial.records.plan import LaunchPlan
from kerneltrial.store.canonical import digest

INPUT_SETS = 3
READINGS = 5
AGAIN_ROUNDS = 11
BASELINE_EVERY = 50
BATCH_US, BATCH_CALLS = 200.0, 192
_CONFIGS = {"matmul_f32": "config.yaml", "softmax_f32": "config_softmax.yaml"}


class Shipped(Family):
    """A family; also those whose config lies at the root."""

    @property
    def config(self) -> Any:  # type: ignore[override]
        return read(CLONE / _CONFIGS.get(self.name, f"trials/{self.name}.yaml"), {}, CLONE)

    @cached_property
    def space(self) -> Space:
        return read_space(CLONE / f"kernels/{self.name}/space.yaml", probe.probe())


@dataclass
class Entrant:
    """A configuration, or the baseline (no parameters)."""

    parameters: dict[str, int]
    source: bytes
    plan: LaunchPlan
    cubin: bytes = b""
    report: Resources = field(default_factory=lambda: Resources(0, 0, 0))
    wrong: str = ""
    us: tuple[float, ...] = ()
    again_us: tuple[float, ...] = ()


def built(entrant: Entrant, reply: object) -> Entrant:
    """Take the compiler's answer."""
    if not isinstance(reply, Compiled):
        entrant.wrong = f"does not compile: {getattr(reply, 'detail', reply)}"
        return entrant
    entrant.cubin = reply.cubin
    entries = {launch.entry for variant in entrant.plan.variants for launch in variant.launches}
    used = [spent for name, spent in resources(reply.log).items() if name in entries] or [Resources(0, 0, 0)]
    entrant.report = Resources(*(max(column) for column in zip(*used, strict=True)))
    return entrant


class Bench:
    """A family's cases on the card: whether a configuration is right, and how long a call takes."""

    def __init__(self, context: Context, family: Family, baseline: Entrant) -> None:
        self._context, self._contract = context, family.contract
        folder = (CLONE / family.config.cases).parent
        oracle = load(CLONE / family.config.oracle)
        self._cases: list[tuple[Case, Any, list[Expected]]] = []
        for case in family.cases.cases:
            values = generate(self._contract, case, 0, folder)
            answer = oracle.answer(self._contract, values, case.dimensions)
            expected = [
                Expected(
                    name=o.name,
                    dtype=o.dtype,
                    want=answer.outputs[o.name],
                    terms=answer.terms.get(o.name),
                    tolerance=self._contract.tolerances[o.name],
                )
                for o in self._contract.outputs
            ]
            self._cases.append((case, values, expected))
        self.timed = [case for case in family.cases.cases if case.kind == "performance"]
        self._shared = [
            SharedBuffers(
                (self._call(baseline, case),),
                [generate(self._contract, case, draw, folder) for draw in range(INPUT_SETS)],
                context.queue.stream,
            )
            for case in self.timed
        ]

    def _call(self, entrant: Entrant, case: Case) -> Any:
        return resolve(entrant.plan, self._contract, case.dimensions, "pointer")

    def fault(self, entrant: Entrant) -> str:
        """What is wrong with the answers, or nothing."""
        module = Module(entrant.cubin)
        try:
            for case, values, expected in self._cases:
                call = self._call(entrant, case)
                ran = CudaLoaded(self._context, module).run(call, values, Conditions(poison="nan", checks="bounds"))
                if ran.findings or not (ran.inputs_intact and ran.guards_intact and ran.scratch_restored):
                    return f"{case.name}: {ran.findings[0].detail if ran.findings else 'wrote where it must not'}"
                shapes = {buffer.name: buffer.shape for buffer in call.buffers}
                for one in expected:
                    got = decode(ran.outputs[one.name], one.dtype, shapes[one.name])
                    finding = compare(got, one, None).finding
                    if finding is not None:
                        return f"{case.name}: {finding.detail}"
        except PlanProblem as problem:
            return str(problem)
        finally:
            module.unload()
        return ""

    def time(self, entrants: Sequence[Entrant], rounds: int, seed: int) -> list[tuple[float, ...]]:
        """Medians over the rounds by performance case, one tuple an entrant, in random order within rounds."""
        found: list[list[float]] = [[] for _ in entrants]
        for case, shared in zip(self.timed, self._shared, strict=True):
            stands = [Stand(self._context, entrant, self._call(entrant, case), shared) for entrant in entrants]
            readings: list[list[float]] = [[] for _ in entrants]
            order = list(range(len(stands)))
            for turn in range(rounds):
                random.Random(seed + turn).shuffle(order)
                for index in order:
                    readings[index].append(stands[index].read())
            for index, stand in enumerate(stands):
                found[index].append(statistics.median(readings[index]))
                stand.free()
        return [tuple(us) for us in found]


class Stand:
    """One entrant in one case, with its graph."""

    def __init__(self, context: Context, entrant: Entrant, call: Any, shared: SharedBuffers) -> None:
        self._queue, self._shared = context.queue, shared
        self._module = Module(entrant.cubin)
        self._subject = PlanSubject(self._module, call, shared, context.queue)
        self._subject.grow(shared.cycle)
        call_each_set(context.queue, self._subject, shared)
        self._calls = shared.cycle
        self._batch = Batch(self._queue, self._subject, self._shared, self._calls)
        us = self.read()
        while self._calls * us < BATCH_US and 2 * self._calls <= BATCH_CALLS:
            self._calls *= 2
        if self._calls > shared.cycle:
            self._batch.free()
            self._batch = Batch(self._queue, self._subject, self._shared, self._calls)

    def read(self) -> float:
        """Microseconds of one call in a batch, after one batch that warms."""
        return self._batch.span_us() / self._calls

    def free(self) -> None:
        self._batch.free()
        self._subject.free()
        self._module.unload()


def compiled(entrants: Sequence[Entrant], options: tuple[str, ...], processes: int) -> Iterator[Entrant]:
    """The entrants as their compiles end. Children are spawned: a fork would share the driver's state."""
    pool = ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn"))
    with pool:
        running: dict[Future[Any], Entrant] = {pool.submit(compile_source, e.source, options): e for e in entrants}
        for done in as_completed(running):
            yield built(running.pop(done), done.result())


def options_for(family: Family, arch: str) -> tuple[str, ...]:
    """The trial's own compiler options (`build.builder`)."""
    contract = family.contract
    defines = (f"-D{name}={value}" if value else f"-D{name}" for name, value in contract.defines.items())
    includes = (f"-I{folder}" for folder in toolkit.include_folders())
    return (
        f"--gpu-architecture={arch}", "--std=c++17", "--generate-line-info", "--ptxas-options=-v",
        *defines, *contract.options, *includes,
    )  # fmt: skip


def entrants_of(family: Family, limit: int) -> list[Entrant]:
    """Every configuration, or about `limit` of them evenly and the seeds."""
    space = family.space
    seeds = [seed.parameters for seed in space.file.seeds]
    step = max(1, len(space.configurations) // limit) if limit else 1
    chosen = [c for i, c in enumerate(space.configurations) if c in seeds or i % step == 0]
    return [Entrant(dict(c), space.source(c), space.plan(c)) for c in chosen]


def measured(bench: Bench, incoming: Iterator[Entrant], baseline: Entrant) -> list[str]:
    """Check and time what comes in; return the baseline's times along the way, as text."""
    for _ in range(40):  # bring the clocks up
        bench.time([baseline], READINGS, 0)
    course = []
    for number, entrant in enumerate(incoming):
        if number % BASELINE_EVERY == 0:
            (us,) = bench.time([baseline], READINGS, number)
            course.append("/".join(f"{one:.4g}" for one in us))
        try:
            entrant.wrong = entrant.wrong or bench.fault(entrant)
            if not entrant.wrong:
                (entrant.us,) = bench.time([entrant], READINGS, number)
        except CudaError as error:
            if error.is_fault:
                raise
            entrant.wrong = str(error)
    return course


def table_of(family: Family, bench: Bench, entrants: Sequence[Entrant], told: dict[str, str], device: str) -> Table:
    def rounded(us: Sequence[float]) -> tuple[float, ...]:
        return tuple(float(f"{one:.4g}") for one in us)

    space = family.space
    rows = (
        Row(tuple(e.parameters.values()), *e.report, rounded(e.us), rounded(e.again_us), e.wrong[:120])
        for e in entrants
    )
    return Table(
        problem=family.name,
        space=digest(space.path.read_bytes() + space.template.encode()),
        device=device,
        cases=tuple(dict(case.dimensions) for case in bench.timed),
        parameters=tuple(space.file.parameters),
        rows=tuple(rows),
        told=told,
    )


def record(family: Family, context: Context, limit: int, again: int, processes: int) -> Table:
    """Measure the space and return its table."""
    clock = time.perf_counter()
    path = CLONE / family.config.baseline
    baseline = Entrant({}, path.read_bytes(), read_plan(plan_path(path)))
    options = options_for(family, context.device.arch)
    assert not built(baseline, compile_source(baseline.source, options)).wrong, baseline.wrong
    entrants = entrants_of(family, limit)
    bench = Bench(context, family, baseline)
    course = measured(bench, compiled(entrants, options, processes), baseline)
    print(f"{time.perf_counter() - clock:6.1f} s  all {len(entrants)} checked and timed", flush=True)
    seeds = [seed.parameters for seed in family.space.file.seeds]
    order = sorted((e for e in entrants if e.us), key=lambda e: statistics.geometric_mean(e.us))
    best = [e for i, e in enumerate(order) if i < again or e.parameters in seeds]
    for entrant, us in zip(best, bench.time(best, AGAIN_ROUNDS, 1), strict=True):
        entrant.again_us = us
    (us,) = bench.time([baseline], READINGS, 0)
    told = {
        "clock": f"graph of whole cycles, warm, median of {READINGS}; the best again, median of {AGAIN_ROUNDS}",
        "baseline_us": " ".join([*course, "/".join(f"{one:.4g}" for one in us)]),
        "options": " ".join(option for option in options if not option.startswith("-I")),
        "seconds": f"{time.perf_counter() - clock:.0f}",
    }
    print(f"{time.perf_counter() - clock:6.1f} s  the best {len(best)} timed again", flush=True)
    return table_of(family, bench, entrants, told, context.device.name)


def show(table: Table) -> None:
    found = sorted(table.latencies().items(), key=lambda item: item[1])
    wrong = [row for row in table.rows if row.wrong]
    print(f"{table.problem} on {table.device}: {len(found)} timed, {len(wrong)} wrong; cases {list(table.cases)}")
    print("baseline us along the way:", table.told["baseline_us"])
    for row in wrong[:5]:
        print("  wrong:", dict(zip(table.parameters, row.parameters, strict=True)), row.wrong)
    if not found:
        return
    middle = statistics.median(us for _, us in found)
    for rank, (parameters, us) in enumerate(found[:8], start=1):
        words = " ".join(f"{name}={value}" for name, value in zip(table.parameters, parameters, strict=True))
        print(f"{rank:3d} {us:9.3f} us  {middle / us:5.2f} x the median configuration  {words}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("problems", nargs="+", metavar="problem")
    options.add_argument("--limit", type=int, default=0, help="measure about this many configurations (0: all)")
    options.add_argument("--again", type=int, default=40, help="how many of the best are timed again")
    options.add_argument("--processes", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    chosen = options.parse_args()
    context = Context(probe.probe().arch)
    for problem in chosen.problems:
        table = record(Shipped(problem), context, chosen.limit, chosen.again, chosen.processes)
        path = Path(os.environ.get("OUT", ".")) / f"space_{problem}.json.gz"
        write_table(path, table)
        show(table)
        print(f"{path.name}: {path.stat().st_size} bytes, {table.told['seconds']} s", flush=True)


if __name__ == "__main__":
    main()
