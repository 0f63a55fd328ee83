"""Figures of one binary and case, drawn once and found again: raw samples on `cuda`, counts on `cpu`."""

import contextlib
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from kerneltrial.devices.device import Conditions, Refused, Samples, TimingRequest, Values
from kerneltrial.devices.runner import Runner
from kerneltrial.inputs.products import product_of
from kerneltrial.inputs.resolve import resolve
from kerneltrial.inputs.values import generate
from kerneltrial.judge.answers import Answers
from kerneltrial.judge.timed import timed_fault
from kerneltrial.measure.confirm import process_request
from kerneltrial.measure.rounds import without_outputs
from kerneltrial.records.build import Built, Cubin
from kerneltrial.records.case import Case
from kerneltrial.records.counts import Counts
from kerneltrial.records.plan import LaunchPlan
from kerneltrial.records.qualification import BaselineLatency, Qualification
from kerneltrial.records.reason import Finding
from kerneltrial.records.record import Record
from kerneltrial.records.roofline import Ceilings, Floor, NoCeilings, NoFloor
from kerneltrial.stages.ground import Ground, binary_of
from kerneltrial.store.measurements import Stored

SEARCH = -1  # the process that times a candidate for the search
CHOICE = -2  # the process of a confirmation that finds the clock `auto` and the vendor's algorithm; its times count not
_CHOICE_ROUNDS = 2
INPUT_SETS = 3  # rotated from call to call, so that no launch finds the inputs of the one before


class Kernel(Record):
    """A build and its launch plan: what a measurement is of."""

    built: Built
    plan: LaunchPlan


_ROLES = {SEARCH: "search", CHOICE: "choice of a clock"}


@dataclass(frozen=True)
class Asked:
    """How a pair is timed.

    `process` numbers the processes of a confirmation, whose rounds are in ABBA order and hold the vendors too; `SEARCH`
    is the search's own one, `CHOICE` the one before a confirmation. `clocks` says by case what the protocol's clock
    `auto` came to mean there, so that all processes have one clock and none has looked for it: CUPTI, once started,
    makes a process's graphs a little slower. `algorithms` says so of the vendor library's algorithm, which several
    processes would choose differently where two are about as fast. `runner` is a fresh child to do it in, opened
    already.
    """

    process: int = SEARCH
    clocks: Mapping[str, str] = field(default_factory=dict)
    algorithms: Mapping[str, int] = field(default_factory=dict)
    runner: Runner | None = None

    @property
    def role(self) -> str:
        return _ROLES.get(self.process, f"confirmation {self.process}")


class Drawn(Record):
    """Samples, and what was wrong with the outputs of the timed launches."""

    samples: Samples
    faults: tuple[Finding, ...]


def performance_cases(g: Ground) -> tuple[Case, ...]:
    """The cases that are timed or counted."""
    return tuple(case for case in g.lock.cases.cases if case.kind == "performance")


def counts_of(g: Ground, kernel: Kernel, cases: Sequence[Case]) -> dict[str, Stored[Counts]]:
    """Counts of one call of each case, by its name; `Refused` passes through. One child serves all cases."""
    conditions = Conditions(poison="nan", checks="bounds", budget_instructions=g.lock.protocol.budget_instructions)
    with contextlib.ExitStack() as runners:

        @functools.cache
        def runner() -> Runner:
            opened = runners.enter_context(g.runner())
            opened.load(binary_of(kernel.built, g.job.objects))
            return opened

        def draw(case: Case) -> Counts:
            call = resolve(kernel.plan, g.lock.contract, case.dimensions, kernel.built.abi)
            return runner().count(call, _values(g, case, 0), conditions)

        key = {"counts": identity(kernel)}
        return {
            case.name: g.job.measurements.once({**key, **_conditions(g, case)}, functools.partial(draw, case), Counts)
            for case in cases
        }


def samples_of(
    g: Ground, pair: tuple[Kernel, Kernel], cases: Sequence[Case], answers: Answers, asked: Asked
) -> dict[str, Stored[Drawn]]:
    """Samples of a candidate beside the baseline by case, all in one process; the pair is (baseline, candidate).

    `Refused` passes through.
    """
    with contextlib.ExitStack() as runners:

        @functools.cache
        def runner() -> Runner:
            return asked.runner or runners.enter_context(g.runner())

        def draw(case: Case) -> Drawn:
            request = timing_request(g, pair, case, asked)
            values = [answers.values(case, draw) for draw in range(INPUT_SETS)]
            return _checked(g, pair[1], case, answers, runner().time(request, values))

        once = g.job.measurements.once
        return {c.name: once(_key(g, pair, c, asked), functools.partial(draw, c), Drawn) for c in cases}


def is_stored(g: Ground, pair: tuple[Kernel, Kernel], cases: Sequence[Case], asked: Asked) -> bool:
    """Whether the samples of all these cases were drawn before."""
    return all(g.job.measurements.path(_key(g, pair, case, asked)).is_file() for case in cases)


def _key(g: Ground, pair: tuple[Kernel, Kernel], case: Case, asked: Asked) -> dict[str, object]:
    """What a measurement is stored under: binaries, plans, case, protocol, device fingerprint, its role, its clock."""
    baseline, candidate = (identity(kernel) for kernel in pair)
    own = {"samples": candidate, "beside": baseline, "role": asked.role, "clock": _clock(g, case, asked)}
    return {**own, **_conditions(g, case)}


def _clock(g: Ground, case: Case, asked: Asked) -> str:
    """What was asked for by name. `auto` is the graph for the search, which only ranks: it is cheap, and never far off.

    In a confirmation `auto` is what it came to mean before.
    """
    clock = g.lock.protocol.clock
    if clock != "auto":
        return clock
    return "graph" if asked.process == SEARCH else asked.clocks.get(case.name, clock)


def _checked(g: Ground, candidate: Kernel, case: Case, answers: Answers, samples: Samples) -> Drawn:
    """The samples with what was wrong in the outputs of the timed launches."""
    call = resolve(candidate.plan, g.lock.contract, case.dimensions, candidate.built.abi)
    fault = timed_fault(answers, case, call, samples.outputs)
    return Drawn(samples=without_outputs(samples), faults=() if fault is None else (fault,))


def timing_request(g: Ground, pair: tuple[Kernel, Kernel], case: Case, asked: Asked) -> TimingRequest:
    """Baseline, the same again and the candidate, interleaved; in a confirmation the vendors' kernels beside them."""
    baseline, candidate = pair
    contract = g.lock.contract
    request = TimingRequest(
        baseline=binary_of(baseline.built, g.job.objects),
        baseline_call=resolve(baseline.plan, contract, case.dimensions, baseline.built.abi),
        candidate=binary_of(candidate.built, g.job.objects),
        candidate_call=resolve(candidate.plan, contract, case.dimensions, candidate.built.abi),
        rounds=_rounds(g, asked),
        clock=_clock(g, case, asked),
        seed=g.lock.seed,
        warm=case.warm,
    )
    if asked.process == SEARCH:
        return request
    product = product_of(contract)
    if product is not None:
        product = msgspec.structs.replace(product, algorithm=asked.algorithms.get(case.name, -1))
        request = msgspec.structs.replace(request, vendors=(product,))
    if asked.process == CHOICE:
        return request
    request = msgspec.structs.replace(request, energy=g.lock.protocol.energy)
    return process_request(request, asked.process)


def _rounds(g: Ground, asked: Asked) -> int:
    protocol = g.lock.protocol
    return {SEARCH: protocol.search_rounds, CHOICE: _CHOICE_ROUNDS}.get(asked.process, protocol.rounds)


def floors_of(g: Ground) -> Mapping[str, Floor | NoFloor]:
    """The roofline's floor of each case."""
    performance = g.job.record("qualify", Qualification).performance
    return performance.floors if isinstance(performance, BaselineLatency) else {}


def ceilings_of(g: Ground, runner: Runner) -> Ceilings | NoCeilings:
    """What the card does at most: measured once for a device of this fingerprint, in a fresh child."""
    try:
        return g.job.measurements.once({"ceilings": g.lock.device}, runner.ceilings, Ceilings).value
    except Refused as refused:
        return NoCeilings(why=str(refused))


def timed_draws(g: Ground) -> list[tuple[Case, int]]:
    """What timed launches are given: each performance case with its first draws."""
    return [(case, draw) for case in performance_cases(g) for draw in range(INPUT_SETS)]


def input_sets(g: Ground, case: Case) -> Sequence[Values]:
    """The inputs that timed launches rotate through: the case's first draws."""
    return [_values(g, case, draw) for draw in range(INPUT_SETS)]


def _values(g: Ground, case: Case, draw: int) -> Values:
    return generate(g.lock.contract, case, draw, g.job.source("cases").parent)


def identity(kernel: Kernel) -> dict[str, object]:
    """What a measurement of a kernel is stored under: its binary and its plan."""
    cubin = kernel.built.cubin
    return {"binary": cubin.digest if isinstance(cubin, Cubin) else kernel.built.ptx, "plan": kernel.plan}


def _conditions(g: Ground, case: Case) -> dict[str, object]:
    return {"case": case, "protocol": g.lock.protocol, "device": g.lock.device, "contract": g.lock.contract}
