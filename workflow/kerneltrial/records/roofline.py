"""The roofline: what a card does at most, and how little time a call can take there."""

from typing import Literal

from kerneltrial.records.record import Count, Record

Bound = Literal["dram", "cache", "fp32", "fp64"]


class Ceilings(Record, tag_field="state", tag="measured"):
    """The most that this package's own kernels got out of the card; medians of many launches.

    `dram_bytes_per_s` reads or copies (counted both ways) memory far larger than the L2, `l2_bytes_per_s` reads memory
    that stays in it. `fp32_flop_per_s` and `fp64_flop_per_s` are fused multiply-adds on the ordinary units, counted as
    two; tensor cores are not measured. `launch_us` is one empty kernel within a graph. `readings` names each kernel
    that was tried with its figure, `device_state` the card's state before and after.
    """

    dram_bytes_per_s: float
    l2_bytes_per_s: float
    l2_bytes: Count
    fp32_flop_per_s: float
    fp64_flop_per_s: float
    launch_us: float
    readings: dict[str, float]
    device_state: dict[str, str]


class NoCeilings(Record, tag_field="state", tag="none"):
    """Not measured, and why."""

    why: str


class Floor(Record, tag_field="state", tag="known"):
    """The least microseconds that one call can take, and what bounds it.

    `assumes` says what an honest kernel may do differently, and so stay below it.
    """

    floor_us: float
    bound: Bound
    assumes: str


class NoFloor(Record, tag_field="state", tag="unknown"):
    """No floor is known for this case, and why."""

    why: str


class Share(Record, tag_field="state", tag="share"):
    """How near the warm latencies come to the floor: floor over latency, 1 is the limit itself."""

    floor_us: float
    bound: Bound
    candidate: float
    baseline: float


NOT_ASKED = NoFloor(why="no ceilings of this card were measured")
