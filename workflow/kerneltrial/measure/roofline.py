"""The roofline's floor of a case, and how near a latency comes to it: pure functions (DESIGN.md section 7).

The floor is the larger of two times: the contract's bytes over the bandwidth, its operations over the arithmetic rate;
Williams, Waterman and Patterson, "Roofline", CACM 52(4), 2009. It is for warm calls, so what fits in the L2 may come
from there: the bytes take at least bytes / l2 rate, and those beyond the L2's size at least as long at DRAM's rate.
"""

from collections.abc import Mapping

from kerneltrial.inputs.dtypes import is_float
from kerneltrial.inputs.expressions import evaluate
from kerneltrial.records.contract import Contract
from kerneltrial.records.reason import Finding, Reason
from kerneltrial.records.roofline import Bound, Ceilings, Floor, NoCeilings, NoFloor, Share

_US = 1e6
_SLACK = 0.02  # ceilings and latencies are each known to about a percent


def floor_of(contract: Contract, dimensions: Mapping[str, int], ceilings: Ceilings | NoCeilings) -> Floor | NoFloor:
    """The least time of one warm call of the contract at these dimensions."""
    if isinstance(ceilings, NoCeilings):
        return NoFloor(why=ceilings.why)
    nbytes, operations = evaluate(contract.bytes, dimensions), evaluate(contract.operations, dimensions)
    times: dict[Bound, float] = {
        "cache": nbytes / ceilings.l2_bytes_per_s * _US,
        "dram": max(0, nbytes - ceilings.l2_bytes) / ceilings.dram_bytes_per_s * _US,
    }
    unit = _unit(contract)
    if unit is not None:
        rate = ceilings.fp32_flop_per_s if unit == "fp32" else ceilings.fp64_flop_per_s
        times[unit] = operations / rate * _US
    bound = max(times, key=lambda name: times[name])
    if times[bound] <= 0:
        return NoFloor(why="the contract counts no operations and no bytes at these dimensions")
    return Floor(floor_us=times[bound], bound=bound, assumes=_assumes(bound, unit))


def _unit(contract: Contract) -> Bound | None:
    """The arithmetic unit whose rate bounds the contract's operations, or None where none that was measured does."""
    floats = {array.dtype for array in contract.arrays if is_float(array.dtype)}
    if contract.tf32 or len(floats) != 1:
        return None
    units: dict[str, Bound] = {"float32": "fp32", "float64": "fp64"}
    return units.get(floats.pop())


def _assumes(bound: Bound, unit: Bound | None) -> str:
    if bound in ("fp32", "fp64"):
        return f"every operation on the ordinary {bound} units; fewer operations, or tensor cores, can go below"
    told = "every byte moves once, from the L2 as far as it fits"
    return told if unit else f"{told}; operations are not counted, since the rate of their unit was not measured"


def share(floor: Floor | NoFloor, warm_us: float, baseline_us: float) -> Share | NoFloor:
    """How near candidate and baseline come to the floor."""
    if isinstance(floor, NoFloor):
        return floor
    return Share(
        floor_us=floor.floor_us,
        bound=floor.bound,
        candidate=floor.floor_us / warm_us,
        baseline=floor.floor_us / baseline_us,
    )


def under_floor(case: str, warm_us: float, floor: Floor | NoFloor) -> Finding | None:
    """A latency below what the card can do asks for a person: a finding for review, no verdict."""
    if isinstance(floor, NoFloor) or warm_us >= floor.floor_us * (1 - _SLACK):
        return None
    detail = (
        f"{case}: {warm_us:.4g} us is below the {floor.bound} floor of {floor.floor_us:.4g} us, "
        f"which assumes: {floor.assumes}"
    )
    return Finding(reason=Reason.UNDER_ROOFLINE, detail=detail)
