"""From a launch plan and a case's dimensions to a call in numbers.

A plan comes from a proposer, so what is wrong with it is a finding of the candidate, never a fault of the pipeline.
Limits are those of the CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability", for 8.0
and later, with the 16-block clusters and 227 KiB of shared memory that 9.0 has; a device may allow less and says so.
"""

import math
import re
import struct
from collections.abc import Mapping
from typing import NoReturn

from kerneltrial.inputs.calls import Buffer, Call, Pointer, ResolvedLaunch, Scalar
from kerneltrial.inputs.contracts import MAXIMUM_ARRAY_BYTES, array_shapes
from kerneltrial.inputs.dtypes import item_bytes
from kerneltrial.inputs.expressions import ExpressionProblem, evaluate, names
from kerneltrial.records.build import Abi
from kerneltrial.records.contract import Array, Contract, DimensionArgument, ScalarArgument
from kerneltrial.records.plan import Grid, Launch, LaunchPlan, Scratch, Variant
from kerneltrial.records.reason import Finding, Reason

MAXIMUM_GRID = (2**31 - 1, 65535, 65535)
MAXIMUM_BLOCK = (1024, 1024, 64)
MAXIMUM_THREADS = 1024
MAXIMUM_CLUSTER = 16
MAXIMUM_SHARED_BYTES = 227 * 1024
_CAST = re.compile(r"(int32|int64)\((.*)\)", re.DOTALL)

Shapes = Mapping[str, tuple[int, ...]]


class PlanProblem(Exception):
    """The plan cannot be launched; `finding` is BAD_PLAN or NO_LAUNCH_FOR_SHAPE and says why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(f"{finding.reason.value}: {finding.detail}")
        self.finding = finding


def resolve(plan: LaunchPlan, contract: Contract, dimensions: Mapping[str, int], abi: Abi) -> Call:
    """Return the call of a plan at `dimensions`.

    Parameters are in the order of `args`: with the `pointer` interface an array is its address; with `numba_array` it
    is 0, 0, elements, bytes an element, address, the extent of each axis, the stride of each axis in bytes (8 each).

    Raises
    ------
    PlanProblem
        Where no variant matches, a name is unknown, or a size is beyond CUDA's limits.
    """
    check_plan(plan, contract)
    variant = _variant(plan, dimensions)
    shapes = {**array_shapes(contract, dimensions), **_scratch_shapes(plan, dimensions)}
    buffers = (
        *(_array_buffer(array, shapes) for array in contract.arrays),
        *(_scratch_buffer(scratch, shapes) for scratch in plan.scratch),
    )
    arguments = _Arguments({buffer.name: buffer for buffer in buffers}, contract, dimensions, abi)
    return Call(buffers=buffers, launches=tuple(_launch(launch, arguments) for launch in variant.launches))


def check_plan(plan: LaunchPlan, contract: Contract) -> None:
    """Raise `PlanProblem` for what is wrong with a plan at any dimensions: names, and expressions that do not parse."""
    known = set(contract.dimensions)
    taken = known | {argument.name for argument in contract.arguments}
    for scratch in plan.scratch:
        if scratch.name in taken:
            _bad(f"scratch {scratch.name!r} has the name of another buffer, argument or dimension")
        taken.add(scratch.name)
        _check_names(f"scratch {scratch.name}", scratch.elements, known)
    for variant in plan.variants:
        _check_names("when", variant.when, known)
        for launch in variant.launches:
            for expression in (*launch.grid, *launch.block, *launch.cluster, launch.shared_bytes):
                _check_names(launch.entry, expression, known)
            for argument in launch.args:
                _width(argument, plan, contract, "pointer", launch.entry)


def parameter_sizes(plan: LaunchPlan, contract: Contract, abi: Abi) -> dict[str, tuple[int, ...]]:
    """Return the sizes in bytes of the parameters that each entry of a plan must have, in order.

    Raises
    ------
    PlanProblem
        As `check_plan`; and where two launches of one entry pass different sizes.
    """
    check_plan(plan, contract)
    found: dict[str, tuple[int, ...]] = {}
    for launch in (launch for variant in plan.variants for launch in variant.launches):
        sizes = tuple(size for argument in launch.args for size in _width(argument, plan, contract, abi, launch.entry))
        if found.setdefault(launch.entry, sizes) != sizes:
            _bad(f"{launch.entry} is launched with different parameters: {found[launch.entry]} and {sizes} bytes")
    return found


def _bad(detail: str, reason: Reason = Reason.BAD_PLAN) -> NoReturn:
    raise PlanProblem(Finding(reason=reason, detail=detail))


def _check_names(where: str, expression: str, known: set[str]) -> None:
    try:
        strange = names(expression) - known
    except ExpressionProblem as fault:
        _bad(f"{where}: {fault}")
    if strange:
        _bad(
            f"{where}: {expression!r} speaks of {', '.join(sorted(strange))}; dimensions are {', '.join(sorted(known))}"
        )


def _width(argument: str, plan: LaunchPlan, contract: Contract, abi: Abi, where: str) -> tuple[int, ...]:
    """Sizes in bytes of the parameters that one word of `args` becomes."""
    cast = _CAST.fullmatch(argument.strip())
    if cast:
        _check_names(f"{where}: {argument}", cast.group(2), set(contract.dimensions))
        return (int(cast.group(1)[3:]) // 8,)
    if any(scratch.name == argument for scratch in plan.scratch):
        return _array_width(1, abi)
    for known in contract.arguments:
        if known.name == argument:
            return _array_width(len(known.shape), abi) if isinstance(known, Array) else (item_bytes(known.dtype),)
    if argument in contract.dimensions:
        _bad(f"{where}: the dimension {argument!r} is no argument of the contract; write int32({argument})")
    allowed = [*(known.name for known in contract.arguments), *(scratch.name for scratch in plan.scratch)]
    _bad(f"{where}: unknown argument {argument!r}; allowed are {', '.join(allowed)}, int32(...), int64(...)")


def _array_width(axes: int, abi: Abi) -> tuple[int, ...]:
    return (8,) if abi == "pointer" else (8,) * (5 + 2 * axes)


def _variant(plan: LaunchPlan, dimensions: Mapping[str, int]) -> Variant:
    for variant in plan.variants:
        if _number("when", variant.when, dimensions):
            return variant
    at = ", ".join(f"{name}={value}" for name, value in dimensions.items())
    _bad(f"no variant of the plan takes {at}", Reason.NO_LAUNCH_FOR_SHAPE)


def _number(where: str, expression: str, dimensions: Mapping[str, int]) -> int:
    try:
        return evaluate(expression, dimensions)
    except ExpressionProblem as fault:
        _bad(f"{where}: {fault}")


def _scratch_shapes(plan: LaunchPlan, dimensions: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for scratch in plan.scratch:
        elements = _number(f"scratch {scratch.name}", scratch.elements, dimensions)
        if not 1 <= elements * item_bytes(scratch.dtype) <= MAXIMUM_ARRAY_BYTES:
            _bad(f"scratch {scratch.name}: {elements} elements; at least 1 and at most 2**40 bytes are allowed")
        found[scratch.name] = (elements,)
    return found


def _array_buffer(array: Array, shapes: Shapes) -> Buffer:
    return Buffer(
        name=array.name,
        role=array.role,
        dtype=array.dtype,
        shape=shapes[array.name],
        initial="poisoned" if array.role == "output" else "given",
    )


def _scratch_buffer(scratch: Scratch, shapes: Shapes) -> Buffer:
    initial = "poisoned" if scratch.initial == "uninitialised" else scratch.initial
    return Buffer(name=scratch.name, role="scratch", dtype=scratch.dtype, shape=shapes[scratch.name], initial=initial)


class _Arguments:
    """Turns words of `args` into parameters."""

    def __init__(
        self, buffers: Mapping[str, Buffer], contract: Contract, dimensions: Mapping[str, int], abi: Abi
    ) -> None:
        self.buffers = buffers
        self.contract = contract
        self.dimensions = dimensions
        self.abi = abi

    def parameters(self, argument: str, where: str) -> tuple[Pointer | Scalar, ...]:
        cast = _CAST.fullmatch(argument.strip())
        if cast:
            value = _number(f"{where}: {argument}", cast.group(2), self.dimensions)
            return (_integer(value, int(cast.group(1)[3:]) // 8, f"{where}: {argument}"),)
        if argument in self.buffers:
            return self._array(self.buffers[argument])
        known = next(known for known in self.contract.arguments if known.name == argument)
        if isinstance(known, DimensionArgument):
            return (_integer(self.dimensions[argument], item_bytes(known.dtype), f"{where}: {argument}"),)
        if isinstance(known, ScalarArgument):
            return (_constant(known),)
        raise AssertionError(f"the array {argument} has no buffer")  # a fault of this module

    def _array(self, buffer: Buffer) -> tuple[Pointer | Scalar, ...]:
        pointer = Pointer(buffer=buffer.name)
        if self.abi == "pointer":
            return (pointer,)
        size = item_bytes(buffer.dtype)
        strides = [size * math.prod(buffer.shape[axis + 1 :]) for axis in range(len(buffer.shape))]
        before = (0, 0, math.prod(buffer.shape), size)
        return (*map(_word, before), pointer, *map(_word, (*buffer.shape, *strides)))


def _word(value: int) -> Scalar:
    return Scalar(bytes=8, bits=value)


def _integer(value: int, size: int, where: str) -> Scalar:
    limit = 2 ** (8 * size - 1)
    if not -limit <= value < limit:
        _bad(f"{where}: {value} does not fit int{8 * size}")
    return Scalar(bytes=4 if size == 4 else 8, bits=value % (2 * limit))


def _constant(scalar: ScalarArgument) -> Scalar:
    if scalar.dtype in ("float32", "float64"):
        code = "<f" if scalar.dtype == "float32" else "<d"
        bits = int.from_bytes(struct.pack(code, float(scalar.value)), "little")
        return Scalar(bytes=4 if scalar.dtype == "float32" else 8, bits=bits)
    return _integer(int(scalar.value), item_bytes(scalar.dtype), scalar.name)


def _launch(launch: Launch, arguments: _Arguments) -> ResolvedLaunch:
    def triple(field: str, expressions: Grid) -> tuple[int, int, int]:
        x, y, z = (_number(f"{launch.entry}: {field}", part, arguments.dimensions) for part in expressions)
        return x, y, z

    grid, block = triple("grid", launch.grid), triple("block", launch.block)
    cluster = triple("cluster", launch.cluster)
    _check_sizes(launch.entry, grid, block, cluster)
    shared = _number(f"{launch.entry}: shared_bytes", launch.shared_bytes, arguments.dimensions)
    if not 0 <= shared <= MAXIMUM_SHARED_BYTES:
        _bad(f"{launch.entry}: shared_bytes is {shared}; allowed is 0 to {MAXIMUM_SHARED_BYTES}")
    return ResolvedLaunch(
        entry=launch.entry,
        grid=grid,
        block=block,
        cluster=cluster,
        cooperative=launch.cooperative,
        shared_bytes=shared,
        parameters=tuple(parameter for word in launch.args for parameter in arguments.parameters(word, launch.entry)),
    )


def _check_sizes(
    entry: str, grid: tuple[int, int, int], block: tuple[int, int, int], cluster: tuple[int, int, int]
) -> None:
    for field, sizes, limits in (("grid", grid, MAXIMUM_GRID), ("block", block, MAXIMUM_BLOCK)):
        if any(not 1 <= size <= limit for size, limit in zip(sizes, limits, strict=True)):
            _bad(f"{entry}: {field} is {list(sizes)}; each must be at least 1 and at most {list(limits)}")
    if math.prod(block) > MAXIMUM_THREADS:
        _bad(f"{entry}: a block of {math.prod(block)} threads; at most {MAXIMUM_THREADS} are allowed")
    if min(cluster) < 1 or math.prod(cluster) > MAXIMUM_CLUSTER:
        _bad(f"{entry}: cluster is {list(cluster)}; 1 to {MAXIMUM_CLUSTER} blocks are allowed")
    if any(blocks % size for blocks, size in zip(grid, cluster, strict=True)):
        _bad(f"{entry}: grid {list(grid)} is no multiple of cluster {list(cluster)}")
