"""A small search space, and histories made of its results."""

from collections.abc import Callable, Mapping

from kerneltrial.propose.history import Failed, Fate, History, Measured, NoResources, Tried, Unknown
from kerneltrial.propose.proposer import Draft, candidate_of
from kerneltrial.propose.search.search import Search
from kerneltrial.records.device import Device
from kerneltrial.records.proposal import Unusable
from kerneltrial.records.reason import Reason

SPACE = """\
source: space.cu
parameters:
  TILE: [8, 16, 32, 64]
  DEPTH: [1, 2, 4, 8]
  SPLIT: [1, 2, 4]
derived:
  THREADS: TILE * 4
constraints:
  - TILE * DEPTH <= 256
  - SPLIT == 1 or TILE < 64
plan:
  scratch: [{name: partial, dtype: float32, elements: "{TILE * SPLIT} * n", initial: uninitialised}]
  variants:
    - when: n % {TILE} == 0
      launches: [{entry: scale, grid: ["n // {TILE}", "{SPLIT}", 1], block: ["{THREADS}", 1, 1], args: [x, n, partial]}]
    - launches: [{entry: scale, grid: ["ceil_div(n, {TILE})", 1, 1], block: ["{THREADS}", 1, 1], args: [x, n, partial]}]
prior:
  registers: 16 + DEPTH
  instructions: ceil_div(n, DEPTH)
seeds:
  - {parameters: {TILE: 16, DEPTH: 2, SPLIT: 1}, hypothesis: An expert likes it., pattern: algebra}
reasons:
  SPLIT: {pattern: hardware, because: "split {SPLIT} gives {blocks} blocks for {multiprocessors} SMs at {case}"}
  TILE: {pattern: memory_access, because: "tiles of {TILE} serve {TILE * DEPTH} values"}
"""
DEVICE = Device(kind="cpu", arch="sm_80", name="x86_64", fingerprint={})


def tried(draft: Draft, fate: Fate, iteration: int = 1) -> Tried:
    return Tried(
        iteration=iteration,
        candidate=candidate_of(draft).id,
        origin=draft.origin,
        resources=NoResources(),
        fate=fate,
    )


def failed(reason: Reason = Reason.WRONG_VALUES) -> Failed:
    return Failed(stage="validate", reason=reason, detail="wrong")


def play(search: Search, ratio: Callable[[Mapping[str, int]], float], iterations: int, count: int) -> History:
    """Run a trial against a function of the parameters; 0 stands for a wrong kernel, -1 for an unchecked one."""
    history = History(0, 0, ())
    for number in range(1, iterations + 1):
        drafts = [d for d in search.propose(history, count) if not isinstance(d, Unusable)]
        new = tuple(tried(d, _fate(ratio(d.origin.parameters)), number) for d in drafts)
        history = History(number, history.attempts + len(drafts), history.tried + new)
    return history


def _fate(ratio: float) -> Fate:
    if ratio < 0:
        return Unknown(reason=Reason.UNSUPPORTED_INSTRUCTION)
    return Measured(ratio=ratio) if ratio else failed()
