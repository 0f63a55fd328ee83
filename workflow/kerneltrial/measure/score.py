"""A cost from counts, where there is no clock: clocks of a model card; lower is better.

It ranks candidates on the `cpu` device; it is never a time. Two bounds are added in quadrature, since each hides part
of the other:

- throughput: the busiest multiprocessor has ceil(blocks / multiprocessors) blocks, and its busiest unit works off all
  of theirs at its rate;
- latency: a thread issues its instructions one after another and waits at its barriers; blocks that are resident
  together do so at the same time, further ones after them.

Rates are those of compute capability 9.0 (CUDA C++ Programming Guide, "Arithmetic Instructions": results per clock and
multiprocessor; "Technical Specifications per Compute Capability"). The constants of latency were fitted to eleven
matmuls on an H200 at 1.98 GHz (naive, register-blocked, split over K; 3 to 37 us), which the score then gives to within
13 % (tests/unit/measure/measured_on_h200.json). Counts know no registers, no caches
and no width of an access, so occupancy is an upper bound and DRAM is taken for L2.
"""

from math import ceil, hypot

from kerneltrial.records.counts import Counts

_MULTIPROCESSORS = 132
_ISSUE = 128.0  # thread instructions per clock and multiprocessor: four schedulers of 32 lanes
# Classes as the cpu device counts them; what is named nowhere issues, no more.
_RATES = {
    "fp16": 256.0,
    "fp32": 128.0,
    "fp64": 64.0,
    "integer": 64.0,
    "convert": 64.0,
    "special": 16.0,
    "collective": 32.0,
}
_ACCESSES = ("load", "store", "atomic")
_ACCESS_RATE = 32.0  # lanes per clock of the load and store units
_GLOBAL_LOAD_RATE = 16.0  # 64 bytes per clock from L1, 4 bytes a lane
_FREE = frozenset({"move", "load_param", "load_const"})  # these mostly vanish when PTX is assembled
_SECTORS_PER_CLOCK = 2.0  # 64 bytes per clock and multiprocessor from L2
_CHAIN = 3.0  # clocks from one instruction of a thread to its next
_LOAD = 5.0  # more of them for a load from global memory; most of its latency shows at the barrier behind it
_BARRIER = 200.0  # clocks, with the wait for memory before it
_LAUNCH = 2000.0  # clocks around the work, about 1 us
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
    blocks, threads = max(1, counts.blocks), max(1, counts.threads_per_block)
    on_one = ceil(blocks / _MULTIPROCESSORS)
    resident = min(on_one, resident_blocks(threads, counts.shared_bytes))
    busy = on_one * _busiest_unit(counts) / blocks
    waiting = on_one / resident * _thread_clocks(counts, blocks * threads, blocks)
    return _LAUNCH + hypot(busy, waiting)


def resident_blocks(threads: int, shared_bytes: int) -> int:
    """How many blocks a multiprocessor holds at once, at least 1."""
    by_threads = _THREADS_RESIDENT // max(1, threads)
    by_shared = _SHARED_RESIDENT // (shared_bytes + _SHARED_RESERVED)
    return max(1, min(_BLOCKS_RESIDENT, by_threads, by_shared))


def _paid(counts: Counts) -> dict[str, int]:
    return {name: count for name, count in sorted(counts.instructions.items()) if name not in _FREE}


def _busiest_unit(counts: Counts) -> float:
    """Clocks for which all blocks together would keep the busiest unit of one multiprocessor."""
    paid = _paid(counts)
    units = [sum(paid.values()) / _ISSUE]
    units += [paid.get(name, 0) / rate for name, rate in _RATES.items()]
    accesses = sum(count for name, count in paid.items() if name.split("_")[0] in _ACCESSES)
    loads = paid.get("load_global", 0)
    units.append((accesses - loads) / _ACCESS_RATE + loads / _GLOBAL_LOAD_RATE)
    units.append(float(counts.shared_accesses + counts.shared_conflicts))
    units.append(counts.global_transactions / _SECTORS_PER_CLOCK)
    return max(units)


def _thread_clocks(counts: Counts, threads: int, blocks: int) -> float:
    """Clocks that one thread needs for its own instructions, on average."""
    paid = _paid(counts)
    issued = _CHAIN * sum(paid.values()) + _LOAD * paid.get("load_global", 0)
    return issued / threads + _BARRIER * counts.barriers / blocks
