"""A cost from counts, where there is no clock: arbitrary cycles of a model card; lower is better.

It ranks candidates on the `cpu` device; it is never a time. The model is a throughput bound with waves and latency:

- A block keeps each unit of its multiprocessor busy for (work / rate); the busiest unit is the bound.
- With few resident warps no unit reaches its rate: each warp issues one instruction every few cycles.
- The busiest multiprocessor has ceil(blocks / multiprocessors) blocks; each phase between barriers waits once for
  memory, less where other resident blocks fill the gap.

Rates are those of compute capability 9.0 (CUDA C++ Programming Guide, "Arithmetic Instructions", results per clock and
multiprocessor, and "Technical Specifications per Compute Capability"); the rest is named beside its number.
"""

from math import ceil

from kerneltrial.records.counts import Counts

_MULTIPROCESSORS = 132
_ISSUE = 128.0  # thread instructions per clock and multiprocessor: four schedulers of 32 lanes
# Classes as the cpu device counts them; accesses by space, such as load_global. What is not named issues, no more.
_RATES = {
    "fp16": 256.0,
    "fp32": 128.0,
    "fp64": 64.0,
    "integer": 64.0,
    "convert": 64.0,
    "special": 16.0,
    "collective": 32.0,
    "load": 32.0,
    "store": 32.0,
    "atomic": 32.0,
}
_FREE = frozenset({"move", "load_param", "load_const"})  # these mostly vanish when PTX is assembled
_SECTORS_PER_CLOCK = (
    2.0  # 64 bytes per clock and multiprocessor from L2 (Hopper tuning guide; 5.5 TB/s over 132 at 1.7 GHz)
)
_WARPS_TO_FILL = 12.0  # four schedulers, 4 cycles of ALU latency, some independent work in a warp
_MEMORY_LATENCY = 600.0  # clocks, L2 hit to DRAM
_BARRIER = 30.0  # clocks
_LAUNCH = 2000.0  # clocks before and after the work, about 1.2 us
_THREADS_RESIDENT, _BLOCKS_RESIDENT, _SHARED_RESIDENT = 2048, 32, 228 * 1024
_SHARED_RESERVED = 1024  # bytes that the system takes from each block's shared memory


def score(counts: Counts) -> float:
    """The cost of one call.

    Parameters
    ----------
    counts : Counts
        Over all launches of the call.

    Returns
    -------
    float
        Clocks of the model, above 0.
    """
    blocks = max(1, counts.blocks)
    on_one = ceil(blocks / _MULTIPROCESSORS)
    resident = min(on_one, resident_blocks(counts.threads_per_block, counts.shared_bytes))
    warps = resident * ceil(max(1, counts.threads_per_block) / 32)
    filled = min(1.0, warps / _WARPS_TO_FILL)
    busy = on_one * _block_clocks(counts) / filled
    phases = counts.barriers / blocks + 1
    waiting = (on_one / resident) * phases * (_BARRIER + _MEMORY_LATENCY / resident)
    return _LAUNCH + busy + waiting


def resident_blocks(threads: int, shared_bytes: int) -> int:
    """How many blocks a multiprocessor holds at once, at least 1; registers are not known from counts."""
    by_threads = _THREADS_RESIDENT // max(1, threads)
    by_shared = _SHARED_RESIDENT // (shared_bytes + _SHARED_RESERVED)
    return max(1, min(_BLOCKS_RESIDENT, by_threads, by_shared))


def _block_clocks(counts: Counts) -> float:
    """Clocks for which a block keeps its busiest unit."""
    paid = {name: count for name, count in sorted(counts.instructions.items()) if name not in _FREE}
    units = [sum(paid.values()) / _ISSUE]
    for unit, rate in _RATES.items():
        units.append(sum(count for name, count in paid.items() if name.split("_")[0] == unit) / rate)
    units.append(float(counts.shared_accesses + counts.shared_conflicts))
    units.append(counts.global_transactions / _SECTORS_PER_CLOCK)
    return max(units) / max(1, counts.blocks)
