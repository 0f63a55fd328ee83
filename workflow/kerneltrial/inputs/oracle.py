"""The oracle: the trusted answer in float64, from a Python file that the trial's owner wrote.

The file defines ``oracle(inputs, dims)`` and may define ``terms(inputs, dims)``; both get inputs by name (values of
floats as they are, bfloat16 as float32) and dimensions by name, and return a mapping from output to array. `terms`
gives the sum of absolute terms behind each element: the scale of honest rounding where terms cancel. What it prints is
kept aside (`inputs/heard.py`).
"""

import importlib.machinery
import importlib.util
import math
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerneltrial.inputs.contracts import array_shapes
from kerneltrial.inputs.dtypes import is_float, widen
from kerneltrial.inputs.heard import HEARD
from kerneltrial.inputs.patience import TookTooLongError, limited
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.records.contract import Array, Contract
from kerneltrial.store.canonical import digest

LEAST_LIMIT_S = 600.0
Function = Callable[[dict[str, NDArray[Any]], dict[str, int]], Any]


@dataclass(frozen=True)
class Answer:
    """`outputs` by name: float64, or int64/uint64 where the output is of integers; `terms` is empty or float64."""

    outputs: dict[str, NDArray[Any]]
    terms: dict[str, NDArray[Any]]


class Oracle:
    """A loaded oracle file; `digest` is the SHA-256 of its bytes."""

    def __init__(self, path: Path, sha256: str, oracle: Function, terms: Function | None) -> None:
        self.path = path
        self.digest = sha256
        self._oracle = oracle
        self._terms = terms

    def answer(
        self, contract: Contract, values: Mapping[str, NDArray[Any]], dimensions: Mapping[str, int], case: str = ""
    ) -> Answer:
        """Return the checked answer for `values` (the contract's NumPy form) at `dimensions`.

        A problem names `case`, where one is given.

        Raises
        ------
        InputProblem
            Where the file raises, takes longer than `limit_s` for either function, or returns other names, shapes or
            dtypes than the contract's outputs in float64.
        """
        shapes = array_shapes(contract, dimensions)
        asked = _Question(self.path, {array.name: array for array in contract.outputs}, shapes)
        given = {array.name: array for array in contract.arrays if array.role != "output"}
        seconds = limit_s(shapes)

        def called(function: Function, name: str) -> Any:
            inputs = {name: _readable(values[name], array) for name, array in given.items()}
            try:
                with limited(seconds):
                    return _called(function, name, self.path, (inputs, dict(dimensions)))
            except TookTooLongError:
                raise InputProblem(_too_long(f"{self.path}: {name}()", case, dimensions, seconds)) from None

        with HEARD.aside():
            outputs = asked.outputs(called(self._oracle, "oracle"))
            return Answer(outputs, {} if self._terms is None else asked.terms(called(self._terms, "terms")))


def limit_s(shapes: Mapping[str, tuple[int, ...]]) -> float:
    """How long one call may take, in seconds: ten minutes, and a second more for every 2**20 elements of the arrays."""
    return LEAST_LIMIT_S + sum(math.prod(shape) for shape in shapes.values()) / 2**20


def _too_long(what: str, case: str, dimensions: Mapping[str, int], seconds: float) -> str:
    sizes = ", ".join(f"{name}={size}" for name, size in dimensions.items())
    where = f"in case {case} ({sizes})" if case else f"at {sizes}"
    what_to_do = "it loops there, or is too slow: make it faster, or the case (the contract's dimensions) smaller"
    return f"{what} gave no answer {where} within {seconds:.0f} s: {what_to_do}"


def load(path: Path) -> Oracle:
    """Execute a trusted oracle file and return what it defines.

    Its bytes are read once and compiled here, so that no compiled copy is written beside it and its digest is that of
    what runs. Raises `InputProblem` where it is absent, does not run, takes longer than `LEAST_LIMIT_S` or defines no
    function `oracle`.
    """
    try:
        content = path.read_bytes()
    except OSError as fault:
        raise InputProblem(f"{path}: cannot be read ({fault.strerror}); config key oracle") from None
    try:
        with HEARD.aside(), limited(LEAST_LIMIT_S):
            module = _module(path, content)
    except TookTooLongError:
        raise InputProblem(
            f"{path}: did not come to its end within {LEAST_LIMIT_S:.0f} s: it loops outside of its functions; it is "
            "to define oracle(inputs, dims) and to work nothing out before it is asked"
        ) from None
    functions = [getattr(module, name, None) for name in ("oracle", "terms")]
    if not callable(functions[0]) or not (functions[1] is None or callable(functions[1])):
        raise InputProblem(f"{path}: defines no function oracle(inputs, dims)")
    return Oracle(path, digest(content), functions[0], functions[1])


def _module(path: Path, content: bytes) -> ModuleType:
    # One name per content: two oracles never share a module, and a module of that name exists for pickles and classes.
    name = f"kerneltrial_oracle_{digest(content)[:16]}"
    spec = importlib.machinery.ModuleSpec(name, None, origin=str(path))
    module = importlib.util.module_from_spec(spec)
    module.__file__ = str(path)
    sys.modules[name] = module
    try:
        exec(_compiled(path, content), module.__dict__)
    except (Exception, SystemExit) as fault:
        del sys.modules[name]
        raise InputProblem(f"{path}: does not run: {_told(fault, path)}") from None
    return module


def _compiled(path: Path, content: bytes) -> CodeType:
    return compile(content, str(path), "exec", dont_inherit=True)


def _told(fault: BaseException, path: Path) -> str:
    """The fault, and the last line of the oracle's own file on the way to it."""
    lines = [frame.lineno for frame in traceback.extract_tb(fault.__traceback__) if frame.filename == str(path)]
    where = f" (line {lines[-1]})" if lines else ""
    return f"{type(fault).__name__}: {str(fault)[:300]}{where}"


def _called(function: Function, name: str, path: Path, arguments: tuple[Any, Any]) -> Any:
    try:
        # Overflow to infinity is an answer like another; a warning from the oracle is no finding.
        with np.errstate(all="ignore"):
            return function(*arguments)
    except (Exception, SystemExit) as fault:
        raise InputProblem(f"{path}: {name}() raised {_told(fault, path)}") from None


def _readable(values: NDArray[Any], array: Array) -> NDArray[Any]:
    """A private copy that cannot be written, bfloat16 as float32."""
    copy = widen(values, array.dtype).astype(np.float32) if array.dtype == "bfloat16" else values.copy()
    copy.flags.writeable = False
    return copy


@dataclass(frozen=True)
class _Question:
    """What the contract wants of an oracle at some dimensions."""

    path: Path
    arrays: Mapping[str, Array]
    shapes: Mapping[str, tuple[int, ...]]

    def outputs(self, returned: Any) -> dict[str, NDArray[Any]]:
        if not isinstance(returned, Mapping) or set(returned) != set(self.arrays):
            got = ", ".join(map(str, returned)) if isinstance(returned, Mapping) else type(returned).__name__
            raise InputProblem(
                f"{self.path}: oracle() must return a mapping with the outputs {', '.join(self.arrays)}; it gave {got}"
            )
        return {name: self._array("oracle", name, returned[name]) for name in self.arrays}

    def terms(self, returned: Any) -> dict[str, NDArray[Any]]:
        if not isinstance(returned, Mapping) or not set(returned) <= set(self.arrays):
            raise InputProblem(f"{self.path}: terms() must return a mapping from outputs {', '.join(self.arrays)}")
        found = {str(name): self._array("terms", name, value) for name, value in returned.items()}
        for name, value in found.items():
            if value.dtype != np.float64 or bool(np.any(value < 0)):
                raise InputProblem(f"{self.path}: terms() of {name!r} must be float64 and not below zero")
        return found

    def _array(self, function: str, name: str, value: Any) -> NDArray[Any]:
        if not isinstance(value, np.ndarray) or value.shape != self.shapes[name]:
            got = f"shape {list(value.shape)}" if isinstance(value, np.ndarray) else type(value).__name__
            raise InputProblem(
                f"{self.path}: {function}() of {name!r} has {got}; the contract wants {list(self.shapes[name])}"
            )
        dtype = self.arrays[name].dtype
        if function == "terms" or is_float(dtype):
            if value.dtype != np.float64:
                raise InputProblem(f"{self.path}: {function}() of {name!r} is {value.dtype}; it must be float64")
            return value
        if value.dtype.kind not in "iub":  # a mask of true and false is one of 1 and 0
            raise InputProblem(f"{self.path}: {function}() of {name!r} is {value.dtype}; {dtype} needs integers")
        return value.astype(np.uint64 if dtype.startswith("u") else np.int64)
