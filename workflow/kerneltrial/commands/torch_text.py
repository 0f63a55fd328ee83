"""Python text of an exported kernel as a PyTorch custom operation. Pure."""

import re
from collections.abc import Mapping
from pathlib import Path

from kerneltrial.commands import loader_torch
from kerneltrial.commands.loader_text import files_text, free, function_name, on_lines, quoted, shape_text, tried_with
from kerneltrial.inputs.expressions import ExpressionProblem, evaluate, names
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.records.contract import Array, Contract

_HEAD = '''"""{description}

{story}
{values}"""

from pathlib import Path

import torch

from .plans import CODES, PROMISE
from .tensors import TensorKernel

{files}
{kernel} = TensorKernel(Path(__file__).parent, PROMISE, CODES, FILES)
'''


def tensors_text() -> str:
    """Return the text of tensors.py."""
    text = Path(loader_torch.__file__).read_text()
    return text.replace("from kerneltrial.commands.loader_runtime import", "from .runtime import")


def torch_package_text(contract: Contract, story: str, files: Mapping[str, str]) -> str:
    """Return the text of __init__.py: the operation `kerneltrial::NAME`, registered for CUDA, with a form for tracing.

    Dimensions are read off the inputs' shapes; one that no shape tells is an argument of its own. `files` as in
    `loader_text.package_text`.

    Raises
    ------
    InputProblem
        Where there is no input, whose device an operation of PyTorch is chosen by.
    """
    return _Operation(contract).text(story, files)


class _Operation:
    """The text's parts; names of its own give way to those of arguments and dimensions."""

    def __init__(self, contract: Contract) -> None:
        self.contract = contract
        self.inputs = [array for array in contract.arrays if array.role != "output"]
        self.made = [array for array in contract.arrays if array.role == "output"]
        if not self.inputs:
            raise InputProblem(
                f"export torch: {contract.name} has no input, whose device PyTorch chooses an operation by; "
                "take `kerneltrial export loader`"
            )
        self.told = dimensions_told(contract)
        self.asked = [name for name in contract.dimensions if name not in self.told]
        self.taken = (*(array.name for array in contract.arrays), *contract.dimensions)
        self.kernel, self.torch, self.d = (free(word, self.taken) for word in ("KERNEL", "torch", "d"))
        self.ready = {a.name: free(f"{a.name}_ready", self.taken) for a in self.inputs if a.role == "inout"}
        self.name = function_name(contract, self.kernel, self.torch)

    def text(self, story: str, files: Mapping[str, str]) -> str:
        head = _HEAD.format(
            description=quoted(self.contract.description),
            story=quoted(story),
            values=tried_with(self.contract),
            files=files_text(files),
            kernel=self.kernel,
        )
        if self.torch != "torch":
            head = head.replace("\nimport torch\n", f"\nimport torch as {self.torch}\n")
        return "\n\n".join((head, self._sizes(), self._call(), self._fake()))

    def _parameters(self) -> str:
        return on_lines([*(f"{a.name}: {self.torch}.Tensor" for a in self.inputs), *(f"{n}: int" for n in self.asked)])

    def _result(self) -> str:
        each = [f"{self.torch}.Tensor"] * len(self.made)
        return "None" if not each else each[0] if len(each) == 1 else f"tuple[{', '.join(each)}]"

    def _sizes(self) -> str:
        """The dimensions from the inputs, each of which must have as many axes as the contract says."""
        axes = "".join(f'    {self.kernel}.axes("{a.name}", {a.name}, {len(a.shape)})\n' for a in self.inputs)
        lines = "".join(f"    {name} = {text}\n" for name, text in self.told.items())
        mapping = ", ".join(f'"{name}": {name}' for name in self.contract.dimensions)
        return f"def _sizes({self._parameters()}) -> dict[str, int]:\n{axes}{lines}    return {{{mapping}}}\n"

    def _measured(self) -> str:
        return f"    {self.d} = _sizes({', '.join([*(a.name for a in self.inputs), *self.asked])})\n"

    def _call(self) -> str:
        changed = ", ".join(f'"{name}"' for name in self.ready)
        handed = ", ".join(f'"{a.name}": {self.ready.get(a.name, a.name)}' for a in self.contract.arrays)
        return (
            f'@{self.torch}.library.custom_op("kerneltrial::{self.name}", '
            f'mutates_args={{{changed}}}, device_types="cuda")\n'.replace("{}", "()")
            + f"def {self.name}({self._parameters()}) -> {self._result()}:\n"
            + '    """Put one call on the current stream: by the winner, or by the baseline where it does not fit.\n\n'
            + "    ValueError is raised where neither fits, or a tensor is not as the contract says.\n"
            + '    """\n'
            + self._measured()
            + "".join(map(self._checked, self.inputs))
            + "".join(f"    {array.name} = {self._empty(array)}\n" for array in self.made)
            + f"    {self.kernel}.put({{{handed}}}, {self.d})\n"
            + "".join(f"    if {held} is not {n}:\n        {n}.copy_({held})\n" for n, held in self.ready.items())
            + f"    return {', '.join(array.name for array in self.made) or 'None'}\n"
        )

    def _fake(self) -> str:
        made = ", ".join(map(self._empty, self.made)) or "None"
        sizes = self._measured() if f"{self.d}[" in made else self._measured().replace(f"{self.d} = ", "", 1)
        head = f"@{self.name}.register_fake\ndef _({self._parameters()}) -> {self._result()}:\n"
        return f"{head}{sizes}    return {made}\n"

    def _shape(self, array: Array) -> str:
        return re.sub(r"\bd\[", f"{self.d}[", shape_text(array))

    def _checked(self, array: Array) -> str:
        dtype = f"{self.torch}.{array.dtype}"
        held = self.ready.get(array.name, array.name)
        return f'    {held} = {self.kernel}.ready("{array.name}", {array.name}, {dtype}, {self._shape(array)})\n'

    def _empty(self, array: Array) -> str:
        return f"{self.inputs[0].name}.new_empty({self._shape(array)}, dtype={self.torch}.{array.dtype})"


def dimensions_told(contract: Contract) -> dict[str, str]:
    """By dimension, Python text that reads it off an input's shape: an axis that is it, or grows with it alone."""
    found: dict[str, str] = {}
    axes = [
        (array.name, place, axis)
        for array in contract.arrays
        if array.role != "output"
        for place, axis in enumerate(array.shape)
    ]
    for name in contract.dimensions:
        plain = next((f"{array}.shape[{place}]" for array, place, axis in axes if axis.strip() == name), "")
        text = plain or next(filter(None, (_solved(f"{a}.shape[{p}]", axis, name) for a, p, axis in axes)), "")
        if text:
            found[name] = text
    return found


def _solved(place: str, axis: str, name: str) -> str:
    """`axis` solved for `name` where it is slope * name + offset; empty where it is not."""
    if names(axis) != {name}:
        return ""
    try:
        one, two, far = (evaluate(axis, {name: at}) for at in (1, 2, 7))
    except ExpressionProblem:
        return ""
    slope, offset = two - one, 2 * one - two
    if slope <= 0 or far != 7 * slope + offset:
        return ""
    moved = f"({place} - {offset})" if offset > 0 else f"({place} + {-offset})" if offset else place
    return moved if slope == 1 else f"{moved} // {slope}"
