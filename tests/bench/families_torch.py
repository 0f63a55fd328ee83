"""PyTorch beside a family's kernels, for `families_on_gpu.py`: eager, vendor calls, and torch.compile in two modes."""

import fcntl
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from families_bench import Bench, difference
from families_shapes import FAMILIES, Arrays, Shape, expression_of

from kerneltrial.records.contract import Contract

MODES = {"compile": "default", "autotune": "max-autotune-no-cudagraphs"}
Maker = Callable[[], Callable[[], Any]]


@dataclass
class Beside:
    """One of torch's ways: a call and what it gave, or why there is none."""

    name: str
    call: Any = None
    results: tuple[Any, ...] = ()
    why: str = ""


def one_at_a_time(lock: Path) -> str:
    """Let torch's compiler time its choices only while no other process with this lock does: it would choose badly.

    Returns why that cannot be, or nothing.
    """
    try:
        from torch._inductor.runtime.benchmarking import benchmarker

        kind = type(benchmarker)
        own = kind.benchmark_gpu
    except (ImportError, AttributeError) as fault:
        return f"torch's compiler times its choices beside others: {fault}"
    holding: list[bool] = []

    def benchmark_gpu(self: Any, *words: Any, **more: Any) -> Any:
        if holding:
            return own(self, *words, **more)
        with lock.open() as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            holding.append(True)
            try:
                return own(self, *words, **more)
            finally:
                holding.clear()

    kind.benchmark_gpu = benchmark_gpu
    return ""


def prepared(
    torch: Any, contract: Contract, arrays: dict[str, Arrays], modes: tuple[str, ...], until: float
) -> dict[str, list[Beside]]:
    """By shape, everything that torch has, compiled and run once; what would begin after `until` is left out."""
    timed = FAMILIES[contract.name]
    shapes = dict(zip(arrays, timed.shapes, strict=True))
    found: dict[str, list[Beside]] = {at: [] for at in shapes}
    for at, shape in shapes.items():
        for name, maker in timed.entrants.items():
            found[at].append(_made(torch, name, lambda m=maker, a=at, s=shape: m(torch, arrays[a], s)))
        found[at].append(_made(torch, "eager", lambda a=at, s=shape: _eager(torch, contract, arrays[a], s)))
    for name in modes if timed.compiled and contract.torch else ():
        for at, shape in shapes.items():
            if name == "autotune" and timed.autotuned and at not in timed.autotuned:
                continue
            if time.time() > until:
                found[at].append(Beside(name, why="no time was left"))
                continue
            found[at].append(
                _made(torch, name, lambda m=MODES[name], a=at, s=shape: _compiled(torch, contract, arrays[a], s, m))
            )
    return found


def _made(torch: Any, name: str, maker: Maker) -> Beside:
    try:
        call = maker()
        result = call()
        torch.cuda.synchronize()
    except Exception as fault:  # torch and its compiler fail in ways of their own
        return Beside(name, why=f"{type(fault).__name__}: {next(iter(str(fault).splitlines()), '')}"[:300])
    return Beside(name, call, result if isinstance(result, tuple) else (result,))


def _eager(torch: Any, contract: Contract, arrays: Arrays, shape: Shape) -> Callable[[], Any]:
    expression = expression_of(torch, contract, arrays, shape)
    if expression is None:
        raise LookupError("the contract has no expression")
    function, given = expression
    return lambda: function(**given)


def _compiled(torch: Any, contract: Contract, arrays: Arrays, shape: Shape, mode: str) -> Callable[[], Any]:
    """Each time a function of its own, so that no two share a cache of compiled code."""
    expression = expression_of(torch, contract, arrays, shape)
    assert expression is not None
    function, given = expression
    made = torch.compile(function, mode=None if mode == "default" else mode, dynamic=False)
    return lambda: made(**given)


def admit(
    bench: Bench, one: Beside, wanted: dict[str, Any], subjects: dict[str, tuple[Any, float]], notes: dict[str, Any]
) -> None:
    """Put one of torch's calls among the subjects, or say why not; what cannot be captured is timed call by call."""
    if one.call is None:
        notes[one.name] = one.why
        return
    pairs = zip(wanted.values(), one.results, strict=False)
    worst = max((difference(bench.torch, r.reshape(w.shape).to(w.dtype), w) for w, r in pairs), default=float("nan"))
    notes[one.name] = f"differs from the baseline by {worst:.1e}"
    if one.name not in ("eager", *MODES) or FAMILIES[notes["family"]].capturable:
        try:
            about = bench.once(one.call)
            bench.graph(one.call, 1).replay()
            bench.torch.cuda.synchronize()
            subjects[one.name] = (one.call, about)
            return
        except Exception as fault:
            notes[one.name] += f"; not captured: {next(iter(str(fault).splitlines()), '')[:200]}"
            bench.torch.cuda.synchronize()
    notes[f"{one.name}_us"] = median([bench.pair(one.call, cold=False) for _ in range(11)])
