"""A best case that came as a file by itself, compared with the contract in it before anything of it is run.

The file may come from anyone. Expected values that cannot fail a kernel, or that belong to no output, are refused.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from kerneltrial.inputs.cases import check_case
from kerneltrial.inputs.contracts import array_shapes, check_contract, integer_range
from kerneltrial.inputs.dtypes import is_float, item_bytes
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.records.best_case import BestCase, ExpectedOutput
from kerneltrial.records.case import Stored
from kerneltrial.records.contract import Array, Contract
from kerneltrial.records.plan import DType

_INTEGER = re.compile(r"-?[0-9]{1,20}")
_NUMBER = re.compile(r"-?(?:[0-9]{1,20}(?:\.[0-9]{1,20})?(?:e[-+]?[0-9]{1,4})?|inf|nan)")

_READS = re.compile(r"-+(?:I|include|pre-include|isystem|options-file|optf|pch|use-pch|create-pch|time|L)|@|[^-]")


def check_best_case(told: BestCase, folder: Path, inputs: Path) -> None:
    """Raise `InputProblem`, with the field, for what in a file cannot be run or could not fail.

    `folder` is the file's own, which its include folders are relative to; `inputs` holds `.npy` files that it names.
    """
    _within("contract", lambda: check_contract(told.contract))
    _check_folders(told.contract, folder)
    for name, source in told.case.inputs.items():
        if isinstance(source, Stored) and ".." in PurePosixPath(source.path).parts:
            raise InputProblem(f"case.inputs.{name}: {source.path!r} is not allowed; allowed: a file beside this one")
    for option in told.contract.options:
        if _READS.match(option):
            raise InputProblem(f"contract.options: {option[:80]!r} is not allowed: it makes the compiler read files")
    _within("case", lambda: check_case(told.case, told.contract, inputs))
    read = [array.name for array in told.contract.arrays if array.role != "output"]
    _check_names("inputs", told.inputs, read, "input")
    outputs = {array.name: array for array in told.contract.outputs}
    _check_names("expected", told.expected, list(outputs), "output")
    shapes = array_shapes(told.contract, told.case.dimensions)
    for name, expected in told.expected.items():
        _check_expected(f"expected.{name}", expected, outputs[name], shapes[name])


def total_bytes(told: BestCase) -> int:
    """The size of all arrays of a call."""
    shapes = array_shapes(told.contract, told.case.dimensions)
    return sum(math.prod(shapes[array.name]) * item_bytes(array.dtype) for array in told.contract.arrays)


def _within(field: str, check: Callable[[], None]) -> None:
    try:
        check()
    except InputProblem as fault:
        raise InputProblem(f"{field}: {fault}") from None


def _check_names(field: str, told: Mapping[str, object], wanted: Sequence[str], kind: str) -> None:
    for name in told:
        if name not in wanted:
            raise InputProblem(f"{field}: {name!r} is no {kind} of the contract; allowed: {', '.join(wanted)}")
    for name in wanted:
        if name not in told:
            raise InputProblem(f"{field}: says nothing of the {kind} {name!r}")


def _check_folders(contract: Contract, folder: Path) -> None:
    """Include folders of a contract that a file brings lie below the file, links and all.

    What a compiler reads, its messages may quote: whoever made the file could read other files of this machine.
    """
    for name in contract.include_folders:
        where, path = "contract.include_folders", folder / name
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts or not PurePosixPath(name).parts:
            raise InputProblem(f"{where}: {name!r} is not allowed; allowed: a folder below that of the file")
        if not path.is_dir():
            raise InputProblem(f"{where}: there is no folder {name} beside the file; put the contract's headers there")
        for inner in (path, *path.rglob("*")):
            if not inner.resolve().is_relative_to(folder.resolve()):
                raise InputProblem(
                    f"{where}: {inner.relative_to(folder)} is a link that leads out of the file's folder"
                )


def _check_expected(field: str, told: ExpectedOutput, array: Array, shape: tuple[int, ...]) -> None:
    if told.dtype != array.dtype:
        raise InputProblem(f"{field}.dtype: is {told.dtype}, the contract says {array.dtype}")
    if told.shape != shape:
        raise InputProblem(f"{field}.shape: is {list(told.shape)}, the contract gives {list(shape)}")
    if not told.places:
        raise InputProblem(f"{field}.places: is empty, so nothing would be looked at")
    for other in ("want", "allowed"):
        if len(getattr(told, other)) != len(told.places):
            raise InputProblem(f"{field}.{other}: has {len(getattr(told, other))} values for {len(told.places)} places")
    size, before = math.prod(shape), -1
    for place in told.places:
        if not before < place < size:
            why = f"lies beyond the {size} elements" if place >= size else "does not come after the one before it"
            raise InputProblem(f"{field}.places: {place} {why}")
        before = place
    for want, allowed in zip(told.want, told.allowed, strict=True):
        _check_value(field, want, allowed, array.dtype)


def _check_value(field: str, want: str, allowed: str, dtype: DType) -> None:
    """One wanted value and its error; an error without a bound is only for what must be nan or inf itself."""
    if not (_NUMBER if is_float(dtype) else _INTEGER).fullmatch(want):
        raise InputProblem(f"{field}.want: {want[:80]!r} is no value of {dtype}")
    if not is_float(dtype):
        least, most = integer_range(dtype)
        if not least <= int(want) <= most:
            raise InputProblem(f"{field}.want: {want} is no value of {dtype}")
    if not _NUMBER.fullmatch(allowed):
        raise InputProblem(f"{field}.allowed: {allowed[:80]!r} is not allowed; allowed: a number of at least 0")
    bound = float(allowed)
    if bound < 0 or (not math.isfinite(bound) and (not is_float(dtype) or math.isfinite(float(want)))):
        raise InputProblem(f"{field}.allowed: {allowed} is not allowed; allowed: a finite number of at least 0")
