"""Residency: what lies in the L2 when a call starts, as a case states it, and the latencies of such calls."""

from typing import Literal

from kerneltrial.records.record import Interval, Record

Residence = Literal["warm", "cold"]


class AsStated(Record):
    """Latencies in microseconds of calls that find the L2 as the case states: medians, beside the cold and the warm.

    Before each call the L2 was emptied and the buffers that the case states as warm were read into it. `speedup` is
    baseline over candidate, `process_ratios` the median of each process that it follows from.
    """

    us: float
    baseline_us: float
    speedup: Interval
    process_ratios: tuple[float, ...]
