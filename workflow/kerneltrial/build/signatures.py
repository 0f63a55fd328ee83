"""What each kernel of a Python candidate is called with, from its plan and the contract."""

import re

from kerneltrial.build.messages import NumbaParameter
from kerneltrial.records.contract import Array, Contract
from kerneltrial.records.plan import LaunchPlan

_CAST = re.compile(r"(int32|int64)\(.*\)", re.DOTALL)


def signatures(plan: LaunchPlan, contract: Contract) -> dict[str, tuple[NumbaParameter, ...]]:
    """Parameters by entry, of the first launch of each. The plan must be one that `inputs.resolve` has checked."""
    found: dict[str, tuple[NumbaParameter, ...]] = {}
    for launch in (launch for variant in plan.variants for launch in variant.launches):
        found.setdefault(launch.entry, tuple(_parameter(word.strip(), plan, contract) for word in launch.args))
    return found


def _parameter(word: str, plan: LaunchPlan, contract: Contract) -> NumbaParameter:
    cast = _CAST.fullmatch(word)
    if cast:
        return NumbaParameter(dtype="int32" if cast.group(1) == "int32" else "int64", axes=0)
    for scratch in plan.scratch:
        if scratch.name == word:
            return NumbaParameter(dtype=scratch.dtype, axes=1)
    argument = next(argument for argument in contract.arguments if argument.name == word)
    if isinstance(argument, Array):
        return NumbaParameter(dtype=argument.dtype, axes=len(argument.shape))
    return NumbaParameter(dtype=argument.dtype, axes=0)
