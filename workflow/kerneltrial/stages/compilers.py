"""Compilers' baselines: torch on the contract's expression, judged like a candidate, timed once and found again."""

import contextlib
from collections.abc import Iterator

from kerneltrial.devices.cuda import torch_baselines
from kerneltrial.devices.cuda.torch_baselines import Torch
from kerneltrial.devices.cuda.torch_child import TorchFailed, TorchTimed
from kerneltrial.inputs.resolve import resolve
from kerneltrial.judge.answers import Answers
from kerneltrial.judge.timed import timed_fault
from kerneltrial.records.compilers import CompilerLatency, CompilerName, Compilers, NoCompiler
from kerneltrial.records.lock import Lock
from kerneltrial.stages.ground import Ground
from kerneltrial.stages.job import Job
from kerneltrial.stages.measuring import Kernel, input_sets, performance_cases


@contextlib.contextmanager
def torch_of(job: Job, lock: Lock) -> Iterator[Torch | None]:
    """torch's process, importing while the stage does other things; None where no figure of it is wanted here."""
    wanted = lock.device.kind == "cuda" and lock.contract.torch.strip()
    if not wanted or job.measurements.path(_key(lock)).is_file():
        yield None
        return
    with Torch(lock.contract) as torch:
        yield torch


def compilers_of(g: Ground, baseline: Kernel, answers: Answers, torch: Torch | None) -> Compilers:
    """What compilers make of the contract's expression on this card; each measured, or with the reason why not."""
    if g.lock.device.kind != "cuda" or not g.lock.contract.torch.strip():
        return Compilers()

    def draw() -> Compilers:
        cases = [(case.name, case.dimensions, input_sets(g, case)) for case in performance_cases(g)]
        assert torch is not None  # it is there whenever nothing is stored
        found = torch.measured(cases)
        return Compilers(
            entries=tuple(_entry(g, baseline, answers, name, found[name]) for name in torch_baselines.NAMES)
        )

    return g.job.measurements.once(_key(g.lock), draw, Compilers).value


def _key(lock: Lock) -> dict[str, object]:
    return {
        "compilers": torch_baselines.NAMES,
        "contract": lock.contract,
        "cases": tuple(case for case in lock.cases.cases if case.kind == "performance"),
        "device": lock.device,
        "seed": lock.seed,
    }


def _entry(
    g: Ground, baseline: Kernel, answers: Answers, name: CompilerName, found: TorchTimed | TorchFailed
) -> CompilerLatency | NoCompiler:
    """A kernel that computes something else is no faster way to compute this."""
    if isinstance(found, TorchFailed):
        return NoCompiler(name=name, why=found.why)
    for case in performance_cases(g):
        call = resolve(baseline.plan, g.lock.contract, case.dimensions, baseline.built.abi)
        fault = timed_fault(answers, case, call, found.outputs[case.name])
        if fault is not None:
            return NoCompiler(name=name, why=f"it computes something else: {fault.detail}"[:2000])
    return CompilerLatency(name=name, version=found.version, cases=found.latency_us)
