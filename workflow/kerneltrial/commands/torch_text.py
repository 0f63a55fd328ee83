"""Python text of an exported kernel as a PyTorch custom operation. Pure."""

from pathlib import Path

from kerneltrial.commands import loader_torch
from kerneltrial.commands.loader_text import python_of, quoted
from kerneltrial.inputs.expressions import ExpressionProblem, evaluate, names
from kerneltrial.records.contract import Array, Contract

_HEAD = '''"""{description}

{story}
"""

from pathlib import Path

import torch

from .plans import CODES, PROMISE
from .tensors import TensorKernel

KERNEL = TensorKernel(Path(__file__).parent, PROMISE, CODES)
'''


def tensors_text() -> str:
    """Return the text of tensors.py."""
    text = Path(loader_torch.__file__).read_text()
    return text.replace("from kerneltrial.commands.loader_runtime import", "from .runtime import")


def torch_package_text(contract: Contract, story: str) -> str:
    """Return the text of __init__.py: the operation `kerneltrial::NAME`, registered for CUDA, with a form for tracing.

    Dimensions are read off the inputs' shapes; one that no shape tells is an argument of its own.
    """
    inputs = [array for array in contract.arrays if array.role != "output"]
    told = dimensions_told(contract)
    asked = [name for name in contract.dimensions if name not in told]
    parameters = ", ".join([*(f"{a.name}: torch.Tensor" for a in inputs), *(f"{name}: int" for name in asked)])
    changed = tuple(array.name for array in inputs if array.role == "inout")
    made = [array for array in contract.arrays if array.role == "output"]
    kind = {0: "None", 1: "torch.Tensor"}.get(len(made), f"tuple[{', '.join(['torch.Tensor'] * len(made))}]")
    sizes = "".join(f"    {name} = {text}\n" for name, text in told.items())
    mapping = ", ".join(f'"{name}": {name}' for name in contract.dimensions)
    result = ", ".join(array.name for array in made) or "None"
    return (
        _HEAD.format(description=quoted(contract.description), story=quoted(story))
        + "\n\ndef _sizes("
        + parameters
        + ") -> dict[str, int]:\n"
        + sizes
        + f"    return {{{mapping}}}\n\n\n"
        + f'@torch.library.custom_op("kerneltrial::{contract.name}", mutates_args={changed!r}, device_types="cuda")\n'
        + f"def {contract.name}({parameters}) -> {kind}:\n"
        + '    """Put one call on the current stream: by the winner, or by the baseline where it does not fit.\n\n'
        + "    ValueError is raised where neither fits, or a tensor is not as the contract says.\n"
        + '    """\n'
        + f"    d = _sizes({', '.join([*(a.name for a in inputs), *asked])})\n"
        + "".join(_checked(array) for array in inputs)
        + "".join(f"    {array.name} = {_empty(array, inputs[0].name)}\n" for array in made)
        + f"    KERNEL.put({{{', '.join(_handed(array) for array in contract.arrays)}}}, d)\n"
        + "".join(f"    if {n}_ready is not {n}:\n        {n}.copy_({n}_ready)\n" for n in changed)
        + f"    return {result}\n\n\n"
        + f"@{contract.name}.register_fake\n"
        + f"def _({parameters}) -> {kind}:\n"
        + f"    d = _sizes({', '.join([*(a.name for a in inputs), *asked])})\n"
        + f"    return {', '.join(_empty(array, inputs[0].name) for array in made) or 'None'}\n"
    )


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


def _shape(array: Array) -> str:
    return "(" + "".join(f"{python_of(axis)}, " for axis in array.shape) + ")"


def _checked(array: Array) -> str:
    held = f"{array.name}_ready" if array.role == "inout" else array.name
    return f'    {held} = KERNEL.ready("{array.name}", {array.name}, torch.{array.dtype}, {_shape(array)})\n'


def _handed(array: Array) -> str:
    return f'"{array.name}": {array.name}_ready' if array.role == "inout" else f'"{array.name}": {array.name}'


def _empty(array: Array, beside: str) -> str:
    return f"{beside}.new_empty({_shape(array)}, dtype=torch.{array.dtype})"
