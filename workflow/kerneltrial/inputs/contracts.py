"""The contract's file, and the rules that its parts must keep among themselves."""

import keyword
import math
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path

from msgspec.structs import replace

from kerneltrial.inputs.documents import read_document, to_record
from kerneltrial.inputs.documents import with_text_expressions as with_text_expressions
from kerneltrial.inputs.dtypes import is_float, item_bytes, narrow, widen
from kerneltrial.inputs.expressions import RESERVED, evaluate, names
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.inputs.specials import admits_zero
from kerneltrial.records.contract import Array, Contract, DimensionArgument, ScalarArgument, Tolerance
from kerneltrial.records.plan import DType

MAXIMUM_ARRAY_BYTES = 2**40  # no card holds more; keeps sizes honest before anything is allocated


def read_contract(path: Path) -> Contract:
    """Read and check a contract; raises `InputProblem` with file and field."""
    document = with_text_expressions(read_document(path))
    if isinstance(document, dict):
        document.setdefault("tolerances", {})  # then what is said of an empty one is said of none
    contract = to_record(document, Contract, str(path))
    try:
        check_contract(contract)
    except InputProblem as fault:
        raise InputProblem(f"{path}: {fault}") from None
    return contract


def array_shapes(contract: Contract, dimensions: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Return each array's shape in elements.

    Raises
    ------
    InputProblem
        Where an axis is below 1 or an array larger than 2**40 bytes.
    """
    found: dict[str, tuple[int, ...]] = {}
    for array in contract.arrays:
        shape = tuple(evaluate(axis, dimensions) for axis in array.shape)
        if min(shape) < 1 or math.prod(shape) * item_bytes(array.dtype) > MAXIMUM_ARRAY_BYTES:
            at = ", ".join(f"{name}={value}" for name, value in dimensions.items())
            raise InputProblem(f"arguments.{array.name}: shape {list(shape)} at {at} is not usable")
        found[array.name] = shape
    return found


def bounded(array: Array, dimensions: Mapping[str, int]) -> Array:
    """Return the array with `below` worked out to the bound `high` that it means at these dimensions."""
    if array.below is None:
        return array
    return replace(array, high=Decimal(evaluate(array.below, dimensions) - 1), below=None)


def check_dimensions(contract: Contract, dimensions: Mapping[str, int]) -> None:
    """Raise `InputProblem` unless `dimensions` are the contract's, each within its range."""
    if set(dimensions) != set(contract.dimensions):
        raise InputProblem(
            f"dimensions are {_listed(dimensions)}; the contract {contract.name} has {_listed(contract.dimensions)}"
        )
    for name, value in dimensions.items():
        span = contract.dimensions[name]
        if not (span.minimum <= value <= span.maximum and value % span.multiple_of == 0):
            step = f" in multiples of {span.multiple_of}" if span.multiple_of > 1 else ""
            raise InputProblem(
                f"dimensions.{name}: {value} contradicts the contract, "
                f"which allows {span.minimum} to {span.maximum}{step}"
            )


def check_relative(where: str, path: str) -> None:
    """Raise `InputProblem` unless a path is one beside the file that names it: others would differ between machines."""
    if not path or path.startswith("/") or "\\" in path or "\n" in path:
        raise InputProblem(f"{where}: {path!r} is not allowed; allowed: a path relative to the file that names it")


def check_contract(contract: Contract) -> None:
    """Raise `InputProblem` where parts of a contract contradict each other."""
    _check_names(contract)
    _check_ranges(contract)
    for folder in contract.include_folders:
        check_relative("include_folders", folder)
    for array in contract.arrays:
        _check_array(array, contract)
    for scalar in contract.arguments:
        if isinstance(scalar, ScalarArgument):
            _check_scalar(scalar)
    outputs = {array.name for array in contract.outputs}
    if not outputs:
        raise InputProblem("arguments: no array has the role output or inout")
    if set(contract.tolerances) != outputs:
        raise InputProblem(
            f"tolerances: name {_listed(contract.tolerances)}; the outputs are {_listed(outputs)}; each has an entry, "
            "such as `c: {relative: 1e-5, absolute: 1e-6}`, or `c: {}` where every element must be equal"
        )
    for name, tolerance in contract.tolerances.items():
        _check_tolerance(name, tolerance)
    _check_in_place(contract)
    _check_ends(contract)


def _listed(words: Iterable[str]) -> str:
    return ", ".join(sorted(words)) or "none"


def _check_names(contract: Contract) -> None:
    seen: set[str] = set()
    for argument in contract.arguments:
        if argument.name in seen:
            raise InputProblem(f"arguments: the name {argument.name!r} stands twice")
        seen.add(argument.name)
        is_dimension = argument.name in contract.dimensions
        if isinstance(argument, DimensionArgument) and not is_dimension:
            raise InputProblem(
                f"arguments.{argument.name}: is no dimension; dimensions are {_listed(contract.dimensions)}"
            )
        if is_dimension and not isinstance(argument, DimensionArgument):
            raise InputProblem(f"arguments.{argument.name}: a dimension has the same name; rename one")
    for name in (*contract.dimensions, *seen):
        if name in RESERVED or keyword.iskeyword(name):
            raise InputProblem(f"the name {name!r} is reserved; rename it")


def _check_ranges(contract: Contract) -> None:
    for name, span in contract.dimensions.items():
        if span.maximum // span.multiple_of * span.multiple_of < span.minimum:
            raise InputProblem(
                f"dimensions.{name}: no multiple of {span.multiple_of} lies from {span.minimum} to {span.maximum}"
            )


def _check_array(array: Array, contract: Contract) -> None:
    for axis in array.shape:
        _check_expression(f"arguments.{array.name}.shape", axis, contract)
    if array.below is not None:
        _check_expression(f"arguments.{array.name}.below", array.below, contract)
    _check_order(array)
    for bound in (array.low, array.high):
        if bound is not None and not bound.is_finite():
            raise InputProblem(f"arguments.{array.name}: {bound} is no bound; give a finite number or leave it out")
        if bound is not None:
            check = _check_float if is_float(array.dtype) else _check_integer
            check(f"arguments.{array.name}", bound, array.dtype)
    if array.low is not None and array.high is not None and array.low > array.high:
        raise InputProblem(f"arguments.{array.name}: low {array.low} is above high {array.high}")
    _check_specials(array)


def _check_specials(array: Array) -> None:
    where, kinds = f"arguments.{array.name}.specials", array.specials
    if not kinds:
        return
    if array.role == "output" or not is_float(array.dtype):
        raise InputProblem(f"{where}: only inputs of a float type have special values; leave the key out")
    if len(set(kinds)) != len(kinds):
        raise InputProblem(f"{where}: {', '.join(kinds)} names one twice")
    if "huge" in kinds and not (array.low is None and array.high is None):
        raise InputProblem(f"{where}: huge contradicts the bounds low and high; leave one of them out")
    if "-0" in kinds and not admits_zero(array):
        raise InputProblem(f"{where}: -0 contradicts the bounds, which leave zero out; leave one of them out")
    if "subnormal" in kinds and (
        (array.low is not None and array.low >= 0) or (array.high is not None and array.high <= 0)
    ):
        raise InputProblem(f"{where}: subnormal numbers of both signs contradict the bounds; leave one of them out")


def _check_expression(where: str, expression: str, contract: Contract) -> None:
    try:
        strange = names(expression) - set(contract.dimensions)
    except InputProblem as fault:
        raise InputProblem(f"{where}: {fault}") from None
    if strange:
        raise InputProblem(
            f"{where}: {expression!r} speaks of {_listed(strange)}; dimensions are {_listed(contract.dimensions)}"
        )


def _check_order(array: Array) -> None:
    """What `below` and `ascending` ask of the rest of an array."""
    where = f"arguments.{array.name}"
    if (array.below is not None or array.ascending) and is_float(array.dtype):
        raise InputProblem(f"{where}: below and ascending are for integers; {array.dtype} takes low and high")
    if array.below is not None and array.high is not None:
        raise InputProblem(f"{where}: below and high are both given; leave one out")
    if array.ascending and (len(array.shape) != 1 or array.low is None or (array.high is None and array.below is None)):
        raise InputProblem(f"{where}: ascending needs one axis, low, and high or below")


def _check_scalar(scalar: ScalarArgument) -> None:
    if not scalar.value.is_finite():
        raise InputProblem(f"arguments.{scalar.name}: {scalar.value} is not finite")
    if not is_float(scalar.dtype):
        _check_integer(f"arguments.{scalar.name}", scalar.value, scalar.dtype)
    else:
        _check_float(f"arguments.{scalar.name}", scalar.value, scalar.dtype)


def _check_integer(where: str, value: Decimal, dtype: DType) -> None:
    low, high = integer_range(dtype)
    if value != value.to_integral_value() or not low <= value <= high:
        raise InputProblem(f"{where}: {value} does not fit {dtype}; allowed are integers from {low} to {high}")


def _check_float(where: str, value: Decimal, dtype: DType) -> None:
    """A number that becomes infinite in its type, or zero where it is not, is another number."""
    import numpy as np  # here alone: a stage that only reads contracts starts without it

    held = float(widen(narrow(np.array([float(value)]), dtype), dtype)[0])
    if not math.isfinite(held) or (held == 0) != (value == 0):
        raise InputProblem(
            f"{where}: {value} does not fit {dtype}, which would hold {held}; give a number that it holds"
        )


def integer_range(dtype: DType) -> tuple[int, int]:
    """Return the least and the greatest value of an integer type."""
    bits = 8 * item_bytes(dtype)
    return (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _check_tolerance(name: str, tolerance: Tolerance) -> None:
    parts = {"absolute": tolerance.absolute, "relative": tolerance.relative, "scaled": tolerance.scaled}
    for field, value in parts.items():
        if not (value.is_finite() and value >= 0):
            raise InputProblem(f"tolerances.{name}.{field}: {value} is not allowed; allowed: a number of at least 0")
    if not (tolerance.baseline_factor.is_finite() and tolerance.baseline_factor >= 1):
        raise InputProblem(
            f"tolerances.{name}.baseline_factor: {tolerance.baseline_factor} is not allowed; "
            "allowed: a number of at least 1"
        )


def _check_in_place(contract: Contract) -> None:
    arrays = {array.name: array for array in contract.arrays}
    for output, source in contract.in_place.items():
        a, b = arrays.get(output), arrays.get(source)
        if a is None or b is None or a.role != "output" or b.role != "input":
            raise InputProblem(
                f"in_place: {output}: {source} is not allowed; allowed: an output, and one of the inputs"
            )
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            raise InputProblem(
                f"in_place: {output} is {a.dtype} {list(a.shape)}, {source} is {b.dtype} {list(b.shape)}; "
                "only arrays of one type and shape can be the same memory"
            )


def _check_ends(contract: Contract) -> None:
    """Evaluate every expression at both ends of the dimensions' ranges."""
    for dimensions in _ends(contract):
        array_shapes(contract, dimensions)
        for array in contract.arrays:
            _check_bounds_at(array, dimensions)
        for field, expression in (("operations", contract.operations), ("bytes", contract.bytes)):
            try:
                value = evaluate(expression, dimensions)
            except InputProblem as fault:
                raise InputProblem(f"{field}: {fault}") from None
            if value < 0:
                raise InputProblem(f"{field}: {expression!r} is {value}, below zero, at {dimensions}")


def _check_bounds_at(array: Array, dimensions: Mapping[str, int]) -> None:
    """Look at `below` at one end of the dimensions: it must leave a value, and one that the type holds."""
    if array.below is None:
        return
    least = array.low if array.low is not None else Decimal(integer_range(array.dtype)[0])
    most = bounded(array, dimensions).high
    if most is None or not least <= most <= integer_range(array.dtype)[1]:
        at = ", ".join(f"{name}={value}" for name, value in dimensions.items())
        raise InputProblem(
            f"arguments.{array.name}: below {array.below} leaves {least} to {most} of {array.dtype} at {at}"
        )


def _ends(contract: Contract) -> Iterator[dict[str, int]]:
    spans = contract.dimensions.items()
    yield {name: -(-span.minimum // span.multiple_of) * span.multiple_of for name, span in spans}
    yield {name: span.maximum // span.multiple_of * span.multiple_of for name, span in spans}
