"""The cases' file, the `.npy` files beside it, and the rules that cases must keep with their contract."""

import io
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import UnsetType
from numpy.typing import NDArray

from kerneltrial.inputs.contracts import array_shapes, bounded, check_dimensions, check_relative
from kerneltrial.inputs.documents import read_document, to_record
from kerneltrial.inputs.dtypes import item_bytes, numpy_dtype, widen
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.records.case import Case, Cases, Stored
from kerneltrial.records.contract import Array, Contract
from kerneltrial.store.canonical import digest


def read_cases(path: Path) -> Cases:
    """Read cases; raises `InputProblem` with file and field. `check_cases` compares them with the contract."""
    cases = to_record(read_document(path), Cases, str(path))
    seen: set[str] = set()
    for case in cases.cases:
        if case.name in seen:
            raise InputProblem(f"{path}: two cases have the name {case.name!r}; rename one")
        seen.add(case.name)
    if not any(case.kind == "performance" for case in cases.cases):
        raise InputProblem(f"{path}: no case is of the kind performance; add one, so that there is something to gain")
    return cases


def check_cases(cases: Cases, contract: Contract, path: Path) -> None:
    """Compare cases with their contract, and look at every `.npy` file beside the cases' file `path`.

    Raises
    ------
    InputProblem
        With file, case and field.
    """
    for case in cases.cases:
        try:
            check_case(case, contract, path.parent)
        except InputProblem as fault:
            raise InputProblem(f"{path}: case {case.name}: {fault}") from None


def stored_files(cases: Cases) -> tuple[str, ...]:
    """Return the `.npy` files that cases name, relative to the cases' file, each once."""
    sources = (source for case in cases.cases for source in case.inputs.values())
    return tuple(dict.fromkeys(source.path for source in sources if isinstance(source, Stored)))


def load_stored(stored: Stored, array: Array, shape: tuple[int, ...], folder: Path) -> NDArray[Any]:
    """Return the values of an `.npy` file in their NumPy form (uint16 patterns for bfloat16).

    Raises
    ------
    InputProblem
        Where the file is absent, its digest, dtype or shape is another, or a value lies outside of the contract.
    """
    check_relative(f"inputs.{array.name}", stored.path)
    path = folder / stored.path
    if path.exists() and not path.is_file():
        raise InputProblem(f"inputs.{array.name}: {path} is no plain file")
    try:
        content = path.read_bytes()
    except OSError as fault:
        raise InputProblem(f"inputs.{array.name}: {path} cannot be read ({fault.strerror})") from None
    found = digest(content)
    if found != stored.sha256:
        raise InputProblem(f"inputs.{array.name}: {path} has the digest {found}, the case says {stored.sha256}")
    try:
        values = np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, EOFError, OSError) as fault:
        raise InputProblem(f"inputs.{array.name}: {path} is no .npy file of numbers ({fault})") from None
    if not isinstance(values, np.ndarray) or values.shape != shape or values.dtype != numpy_dtype(array.dtype):
        held = f"{values.dtype} {list(values.shape)}" if isinstance(values, np.ndarray) else "no single array"
        raise InputProblem(
            f"inputs.{array.name}: {path} holds {held}, the contract wants {numpy_dtype(array.dtype)} {list(shape)}"
        )
    _check_bounds(values, array, path)
    return np.ascontiguousarray(values)


def _check_bounds(values: NDArray[Any], array: Array, path: Path) -> None:
    wide = widen(values, array.dtype)
    for bound, outside in ((array.low, np.less), (array.high, np.greater)):
        if bound is not None and bool(np.any(outside(wide, float(bound)))):
            raise InputProblem(f"inputs.{array.name}: {path} holds values beyond the contract's bound {bound}")
    if array.ascending and (bool(np.any(np.diff(wide) < 0)) or wide[0] != array.low or wide[-1] != array.high):
        raise InputProblem(f"inputs.{array.name}: {path} must not fall, from {array.low} to {array.high}")


def check_case(case: Case, contract: Contract, folder: Path) -> None:
    """Compare one case with the contract; `folder` holds its `.npy` files. Raises `InputProblem` with the field."""
    check_dimensions(contract, case.dimensions)
    shapes = array_shapes(contract, case.dimensions)
    given = {array.name: bounded(array, case.dimensions) for array in contract.arrays if array.role != "output"}
    for name, source in case.inputs.items():
        if name not in given:
            raise InputProblem(f"inputs.{name}: is no input of the contract; inputs are {', '.join(given)}")
        if isinstance(source, Stored):
            load_stored(source, given[name], shapes[name], folder)
    _check_residency(case, contract)


def _check_residency(case: Case, contract: Contract) -> None:
    if isinstance(case.residency, UnsetType):
        return
    arrays = [array.name for array in contract.arrays]
    strange = sorted(set(case.residency) - set(arrays))
    if strange:
        raise InputProblem(f"residency.{strange[0]}: is no array of the contract; arrays are {', '.join(arrays)}")
    if case.kind != "performance":
        raise InputProblem("residency: only a performance case is timed; leave the key out")
    if not case.warm:
        raise InputProblem("residency: names no array that is warm; calls on an emptied L2 are timed without the key")


def check_room_in_l2(cases: Cases, contract: Contract, l2_bytes: int) -> None:
    """Raise `InputProblem` where a case states more as warm than a cache of so many bytes holds; 0: not known."""
    for case in cases.cases:
        shapes = array_shapes(contract, case.dimensions)
        sizes = {array.name: prod(shapes[array.name]) * item_bytes(array.dtype) for array in contract.arrays}
        warm = sum(sizes[name] for name in case.warm)
        if 0 < l2_bytes < warm:
            raise InputProblem(
                f"case {case.name}: residency: {', '.join(case.warm)} take {warm} bytes, and this card's L2 holds "
                f"{l2_bytes}; state less of it as warm"
            )
