"""Compilers' baselines: torch on the contract's expression, judged like a candidate, timed once and found again."""

from kerneltrial.devices.cuda import torch_baselines
from kerneltrial.devices.cuda.torch_child import TorchFailed, TorchTimed
from kerneltrial.inputs.resolve import resolve
from kerneltrial.judge.answers import Answers
from kerneltrial.judge.timed import timed_fault
from kerneltrial.records.compilers import CompilerLatency, CompilerName, Compilers, NoCompiler
from kerneltrial.stages.ground import Ground
from kerneltrial.stages.measuring import Kernel, input_sets, performance_cases


def compilers_of(g: Ground, baseline: Kernel, answers: Answers) -> Compilers:
    """What compilers make of the contract's expression on this card; each measured, or with the reason why not."""
    if g.lock.device.kind != "cuda" or not g.lock.contract.torch.strip():
        return Compilers()

    def draw() -> Compilers:
        cases = [(case.name, case.dimensions, input_sets(g, case)) for case in performance_cases(g)]
        found = torch_baselines.measured(g.lock.contract, cases)
        return Compilers(
            entries=tuple(_entry(g, baseline, answers, name, found[name]) for name in torch_baselines.NAMES)
        )

    key = {
        "compilers": torch_baselines.NAMES,
        "contract": g.lock.contract,
        "cases": performance_cases(g),
        "device": g.lock.device,
        "seed": g.lock.seed,
    }
    return g.job.measurements.once(key, draw, Compilers).value


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
