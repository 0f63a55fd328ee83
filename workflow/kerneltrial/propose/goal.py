"""Whether a trial has what it wants: `stop: beats_compiler` ends it once the best is 5 % faster than torch.compile.

Both figures are warm latencies. The compiler's was measured in another process than any candidate, so it ends the
proposing and decides nothing.
"""

from collections.abc import Sequence

from kerneltrial.measure.statistics import geometric_mean
from kerneltrial.propose.history import Iteration
from kerneltrial.records.compilers import CompilerLatency, Compilers
from kerneltrial.records.timing import Timed

FASTER = 1.05


def goal_reached(iterations: Sequence[Iteration], compilers: Compilers) -> str:
    """Say how much faster the best candidate is than the compiler's kernel, where that is enough; else nothing.

    Where nothing was timed, or the compiler was not measured, nothing can be said and the trial goes on.
    """
    compiled = next(
        (c for c in compilers.entries if isinstance(c, CompilerLatency) and c.name == "torch_compile"), None
    )
    if compiled is None:
        return ""
    found = [_over(timed, compiled) for i in iterations for timed in i.timing.candidates if isinstance(timed, Timed)]
    best = max(found, default=0.0)
    if best < FASTER:
        return ""
    return f"the best is {best:.3f} times as fast as torch.compile's kernel, so no more was asked for"


def _over(timed: Timed, compiled: CompilerLatency) -> float:
    """Geometric mean over the performance cases; nothing where the compiler lacks one of them."""
    if not timed.cases or any(case.case not in compiled.cases for case in timed.cases):
        return 0.0
    return geometric_mean([compiled.cases[case.case] / case.warm_us for case in timed.cases])
