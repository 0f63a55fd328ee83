"""From a profiler's counters to one sentence: pure functions.

The threshold is that of Nsight Compute's "GPU Speed Of Light" section: a unit above 60 % of its peak is what bounds a
kernel; where none is, it waits (Nsight Compute documentation, "Kernel Profiling Guide").
"""

from collections.abc import Mapping, Sequence
from math import fsum

DURATION = "gpu__time_duration.sum"
SHARES = {
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "the SMs' arithmetic and issue",
    "l1tex__throughput.avg.pct_of_peak_sustained_active": "L1 and shared memory",
    "lts__throughput.avg.pct_of_peak_sustained_elapsed": "the L2",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "DRAM",
}
OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
ISSUE = "smsp__issue_active.avg.pct_of_peak_sustained_active"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"
DRAM_BYTES = ("dram__bytes_read.sum", "dram__bytes_write.sum")
METRICS = (DURATION, *SHARES, OCCUPANCY, ISSUE, CONFLICTS, *DRAM_BYTES)
_BUSY = 60.0


def merged(launches: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The counters of a plan from those of its launches: sums are added, shares weighted by duration.

    Raises
    ------
    ValueError
        There is no launch, or one lacks a counter.
    """
    if not launches:
        raise ValueError("the profiler saw no launch")
    lacking = sorted({name for launch in launches for name in METRICS if name not in launch})
    if lacking:
        raise ValueError(f"the profiler gave no {', '.join(lacking)}")
    whole = fsum(launch[DURATION] for launch in launches)
    return {
        name: fsum(launch[name] for launch in launches)
        if name.endswith(".sum")
        else fsum(launch[name] * launch[DURATION] for launch in launches) / whole
        for name in METRICS
    }


def sentence(counters: Mapping[str, float]) -> str:
    """What holds a kernel up, in one sentence; `counters` are those of `METRICS`, time in ns, shares in per cent."""
    busiest = max(SHARES, key=lambda name: counters[name])
    share = f"{SHARES[busiest]} at {counters[busiest]:.0f} % of the peak"
    bound = f"bound by {share}" if counters[busiest] >= _BUSY else f"bound by latency: the busiest unit is {share}"
    moved = fsum(counters[name] for name in DRAM_BYTES) / 1e6
    told = [
        f"{counters[OCCUPANCY]:.0f} % of the warps' places are taken",
        f"an instruction is issued in {counters[ISSUE]:.0f} % of the cycles",
        f"{moved:.3g} MB move to and from DRAM",
    ]
    if counters[CONFLICTS] >= 1:
        told.append(f"{counters[CONFLICTS]:.3g} cycles go to conflicts of shared memory banks")
    return f"{bound}; {', '.join(told)}"
