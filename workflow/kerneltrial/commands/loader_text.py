"""Python text for an exported kernel: its contract and launch plans as plain functions. Pure.

Expressions are held against the whitelist of `inputs.expressions` and become Python of the same meaning: comparisons
and logic give 0 or 1 there, and so they do here.
"""

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

from kerneltrial.inputs.dtypes import item_bytes
from kerneltrial.inputs.expressions import names
from kerneltrial.records.build import Abi
from kerneltrial.records.contract import Array, Contract, DimensionArgument, ScalarArgument
from kerneltrial.records.plan import Grid, Launch, LaunchPlan

_CAST = re.compile(r"(int32|int64)\((.*)\)", re.DOTALL)
_HEAD = '''"""How {name} is launched: made by `kerneltrial export`; edit the trial, not this file."""

from collections.abc import Mapping

from .runtime import Array, Code, Launch, Promise, Scratch


def ceil_div(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor)

'''


@dataclass(frozen=True)
class Part:
    """One of the two kernels: `name` is winner or baseline; `arch` what its machine code is for, empty for none."""

    name: str
    plan: LaunchPlan
    abi: Abi
    arch: str


def plans_text(contract: Contract, parts: Sequence[Part]) -> str:
    """Return the text of plans.py."""
    blocks = [_HEAD.format(name=contract.name), _arrays(contract)]
    for part in parts:
        blocks += [_launches(contract, part), _scratch(contract, part)]
    ranges = {name: (span.minimum, span.maximum, span.multiple_of) for name, span in contract.dimensions.items()}
    blocks.append(
        f"PROMISE = Promise(\n    arrays=arrays,\n    ranges={ranges!r},\n"
        f"    alignment_bytes={contract.alignment_bytes},\n)\n"
    )
    codes = "".join(
        f"    Code({part.name!r}, {part.arch!r}, {part.name}_launches, {part.name}_scratch, {_entries(part.plan)!r}),\n"
        for part in parts
    )
    blocks.append(f"CODES = (\n{codes})\n")
    return "\n".join(blocks)


def package_text(contract: Contract, story: str) -> str:
    """Return the text of __init__.py: one function, named after the contract; `story` says where it comes from."""
    arrays = [array.name for array in contract.arrays]
    dimensions = list(contract.dimensions)
    given = ", ".join(f'"{name}": {name}' for name in arrays)
    sizes = ", ".join(f'"{name}": {name}' for name in dimensions)
    named = ", ".join((*arrays, *dimensions))
    return (
        f'"""{quoted(contract.description)}\n\n{quoted(story)}\n"""\n\n'
        "from pathlib import Path\n\nfrom .plans import CODES, PROMISE\nfrom .runtime import Kernel\n\n"
        "KERNEL = Kernel(Path(__file__).parent, PROMISE, CODES)\n\n\n"
        f"def {contract.name}(stream, *, {named}):\n"
        '    """Put one call on `stream`; return "winner" or "baseline", whichever fits dimensions and device.\n\n'
        "    Arrays are addresses, cuda.core buffers, or have __cuda_array_interface__. ValueError is raised where\n"
        '    neither kernel fits, or an array is not as the contract says.\n    """\n'
        f"    return KERNEL(stream, {{{given}}}, {{{sizes}}})\n"
    )


def python_of(expression: str) -> str:
    """Return an expression as Python text over a mapping `d` of dimensions, in parentheses where it needs them.

    Raises `ExpressionProblem` for what the whitelist does not hold: plans come from proposers, and this text will run.
    """
    names(expression)
    turned = _Turned().visit(ast.parse(expression.strip(), mode="eval").body)
    text = ast.unparse(turned)
    return text if isinstance(turned, ast.Constant | ast.Subscript | ast.Call) else f"({text})"


class _Turned(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Subscript(ast.Name("d"), ast.Constant(node.id))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        node.args = [self.visit(argument) for argument in node.args]  # the function's own name stays
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        return _called("int", self.generic_visit(node))

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        return _called("int", _called("bool", self.generic_visit(node)))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        turned = self.generic_visit(node)
        return _called("int", turned) if isinstance(node.op, ast.Not) else turned


def _called(function: str, argument: ast.AST) -> ast.AST:
    assert isinstance(argument, ast.expr)
    return ast.Call(ast.Name(function), [argument], [])


def _arrays(contract: Contract) -> str:
    lines = "".join(f'        "{a.name}": Array({item_bytes(a.dtype)}, {_shape(a)}),\n' for a in contract.arrays)
    return f"\ndef arrays(d: Mapping[str, int]) -> dict[str, Array]:\n    return {{\n{lines}    }}\n"


def _shape(array: Array) -> str:
    return "(" + "".join(f"{python_of(axis)}, " for axis in array.shape) + ")"


def _scratch(contract: Contract, part: Part) -> str:
    lines = "".join(
        f'        "{s.name}": Scratch({item_bytes(s.dtype)} * {python_of(s.elements)}, "{s.initial}"),\n'
        for s in part.plan.scratch
    )
    return f"\ndef {part.name}_scratch(d: Mapping[str, int]) -> dict[str, Scratch]:\n    return {{\n{lines}    }}\n"


def _launches(contract: Contract, part: Part) -> str:
    text = f"\ndef {part.name}_launches(d: Mapping[str, int]) -> tuple[Launch, ...] | None:\n"
    for variant in part.plan.variants:
        lines = "".join(f"            {_launch(contract, part, launch)},\n" for launch in variant.launches)
        text += f"    if {python_of(variant.when)}:\n        return (\n{lines}        )\n"
    return text + "    return None\n"


def _launch(contract: Contract, part: Part, launch: Launch) -> str:
    words = [word for argument in launch.args for word in _argument(contract, part, argument)]
    extra = ""
    if launch.cluster != ("1", "1", "1"):
        extra += f", cluster={_triple(launch.cluster)}"
    if launch.shared_bytes != "0":
        extra += f", shared_bytes={python_of(launch.shared_bytes)}"
    if launch.cooperative:
        extra += ", cooperative=True"
    args = "".join(f"{word}, " for word in words)
    return f'Launch("{launch.entry}", {_triple(launch.grid)}, {_triple(launch.block)}, ({args}){extra})'


def _triple(sizes: Grid) -> str:
    return "(" + ", ".join(python_of(size) for size in sizes) + ")"


def _argument(contract: Contract, part: Part, argument: str) -> list[str]:
    """The words that one word of a plan's `args` becomes."""
    cast = _CAST.fullmatch(argument.strip())
    if cast:
        return [f'("{cast.group(1)}", {python_of(cast.group(2))})']
    known = {a.name: a for a in contract.arguments}.get(argument)
    if isinstance(known, DimensionArgument):
        return [f'("{known.dtype}", d["{known.name}"])']
    if isinstance(known, ScalarArgument):
        value = float(known.value) if known.dtype.startswith("float") else int(known.value)
        return [f'("{known.dtype}", {value!r})']
    if part.abi == "pointer":
        return [f'"{argument}"']
    return _flattened(contract, part, argument)


def _flattened(contract: Contract, part: Part, name: str) -> list[str]:
    """An array as numba takes it: 0, 0, elements, bytes an element, address, extents, strides in bytes."""
    array = next((a for a in contract.arrays if a.name == name), None)
    scratch = next((s for s in part.plan.scratch if s.name == name), None)
    if array is not None:
        shape, item = [python_of(axis) for axis in array.shape], item_bytes(array.dtype)
    elif scratch is not None:
        shape, item = [python_of(scratch.elements)], item_bytes(scratch.dtype)
    else:
        raise AssertionError(f"{name} is no array and no scratch of a plan that was checked")
    strides = [" * ".join((str(item), *shape[axis + 1 :])) for axis in range(len(shape))]
    before = ("0", "0", " * ".join(shape), str(item))
    return [
        *(f'("int64", {value})' for value in before),
        f'"{name}"',
        *(f'("int64", {value})' for value in (*shape, *strides)),
    ]


def _entries(plan: LaunchPlan) -> tuple[str, ...]:
    return tuple(dict.fromkeys(launch.entry for variant in plan.variants for launch in variant.launches))


def quoted(text: str) -> str:
    """Text that can stand in a docstring."""
    return text.strip().replace("\\", "\\\\").replace('"""', "'''")
