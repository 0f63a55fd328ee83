"""Python text for an exported kernel: its contract and launch plans as plain functions. Pure.

Expressions are held against the whitelist of `inputs.expressions` and become Python of the same meaning: comparisons
and logic give 0 or 1 there, and so they do here.
"""

import ast
import keyword
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import indent

from kerneltrial.inputs.dtypes import item_bytes
from kerneltrial.inputs.expressions import names
from kerneltrial.records.build import Abi
from kerneltrial.records.contract import Array, Contract, DimensionArgument, ScalarArgument
from kerneltrial.records.plan import Grid, Launch, LaunchPlan
from kerneltrial.store.printed import printed

_CAST = re.compile(r"(int32|int64)\((.*)\)", re.DOTALL)
_HEAD = '''"""How {name} is launched: made by `kerneltrial export`; edit the trial, not this file."""

from collections.abc import Mapping

from .runtime import Array, Code, Launch, Promise, Scratch


def ceil_div(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor)
'''
_KINDS = {"float": "f", "int": "i", "uint": "u"}


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
    ranges = "".join(
        f'        "{name}": ({span.minimum}, {span.maximum}, {span.multiple_of}),\n'
        for name, span in contract.dimensions.items()
    )
    placed = "".join(f'        "{output}": "{source}",\n' for output, source in contract.in_place.items())
    codes = "".join(
        f'    Code(\n        "{part.name}",\n        "{part.arch}",\n        {part.name}_launches,\n'
        f"        {part.name}_scratch,\n        ({_words(_entries(part.plan))}),\n    ),\n"
        for part in parts
    )
    blocks.append(
        f"PROMISE = Promise(\n    arrays=arrays,\n    ranges={_braced(ranges)},\n"
        f"    alignment_bytes={contract.alignment_bytes},\n    in_place={_braced(placed)},\n)\n"
        f"CODES = (\n{codes})\n"
    )
    return "\n\n".join(blocks)


def _braced(lines: str) -> str:
    return f"{{\n{lines}    }}" if lines else "{}"


def on_lines(words: Sequence[str]) -> str:
    """Words of a list between parentheses: beside each other where they are short, else each on a line."""
    beside = ", ".join(words)
    return beside if len(beside) <= 60 else "".join(f"\n    {word}," for word in words) + "\n"


def _words(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names) + ("," if len(names) == 1 else "")


def package_text(contract: Contract, story: str, files: Mapping[str, str]) -> str:
    """Return the text of __init__.py: one function, named after the contract.

    `story` says where it comes from; `files` maps the package's other files to their SHA-256, to which it holds them.
    """
    arrays, dimensions = [array.name for array in contract.arrays], list(contract.dimensions)
    taken = (*arrays, *dimensions)
    kernel, stream = free("KERNEL", taken), free("stream", taken)
    given = ", ".join(f'"{name}": {name}' for name in arrays)
    sizes = ", ".join(f'"{name}": {name}' for name in dimensions)
    return (
        f'"""{quoted(contract.description)}\n\n{quoted(story)}\n{tried_with(contract)}"""\n\n'
        "from pathlib import Path\n\nfrom .plans import CODES, PROMISE\nfrom .runtime import Kernel\n\n"
        f"{files_text(files)}\n{kernel} = Kernel(Path(__file__).parent, PROMISE, CODES, FILES)\n\n\n"
        f"def {function_name(contract, kernel)}({on_lines([stream, '*', *taken])}):\n"
        f'    """Put one call on `{stream}`; return "winner" or "baseline", whichever fits dimensions and device.\n\n'
        "    Arrays are addresses, cuda.core buffers, or have __cuda_array_interface__. ValueError is raised where\n"
        '    neither kernel fits, or an array is not as the contract says.\n    """\n'
        f"    return {kernel}(\n        {stream},\n        {{{given}}},\n        {{{sizes}}},\n    )\n"
    )


def files_text(files: Mapping[str, str]) -> str:
    """Return the lines that state the SHA-256 of a package's other files."""
    lines = "".join(f'    "{name}": "{sha256}",\n' for name, sha256 in sorted(files.items()))
    return f"FILES = {{  # their SHA-256: the kernel refuses others\n{lines}}}"


def free(word: str, taken: Iterable[str]) -> str:
    """A name of a package's own that no argument and no dimension has."""
    return free(f"{word}_", taken) if word in taken else word


def function_name(contract: Contract, *others: str) -> str:
    """The contract's name as that of a function beside what else the package's module holds."""
    own = ("Path", "CODES", "PROMISE", "FILES", "Kernel", "TensorKernel", "_", "_sizes", "torch", *others)
    return free(contract.name, (*own, *keyword.kwlist))


def tried_with(contract: Contract) -> str:
    """Lines on the values of inputs that the kernels were tried with, where the contract bounds them; nobody checks."""
    told = [f"- {array.name} {words}\n" for array in contract.arrays if (words := _bounds(array))]
    head = "Its inputs were tried within these bounds, which no call looks at:"
    return f"\n{head}\n\n{''.join(told)}" if told else ""


def _bounds(array: Array) -> str:
    low = f"from {array.low}" if array.low is not None else ""
    high = f"up to {array.high}" if array.high is not None else ""
    below = f"below {array.below}" if array.below is not None else ""
    words = (low, high, below, "ascending" if array.ascending else "")
    return "" if array.role == "output" else ", ".join(filter(None, words))


def python_of(expression: str) -> str:
    """Return an expression as Python text over a mapping `d` of dimensions, in parentheses where it needs them.

    Raises `ExpressionProblem` for what the whitelist does not hold: plans come from proposers, and this text will run.
    """
    names(expression)
    turned = _Turned().visit(ast.parse(expression.strip(), mode="eval").body)
    text = ast.unparse(turned).replace("'", '"')  # the only strings are names of dimensions
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
    lines = "".join(
        f'        "{a.name}": Array({item_bytes(a.dtype)}, {shape_text(a)}, "{_kind(a)}", {a.role != "input"}),\n'
        for a in contract.arrays
    )
    return f"def arrays(d: Mapping[str, int]) -> dict[str, Array]:\n    return {_braced(lines)}\n"


def _kind(array: Array) -> str:
    """Type and bytes of an element, as __cuda_array_interface__ says them; bf16 for bfloat16."""
    word = array.dtype.rstrip("0123456789")
    return "bf16" if word == "bfloat" else f"{_KINDS[word]}{item_bytes(array.dtype)}"


def shape_text(array: Array) -> str:
    """Return an array's shape as a tuple in Python text over `d`."""
    return _tuple([python_of(axis) for axis in array.shape])


def _tuple(words: Sequence[str]) -> str:
    return f"({', '.join(words)}{',' if len(words) == 1 else ''})"


def _scratch(contract: Contract, part: Part) -> str:
    lines = "".join(
        f'        "{s.name}": Scratch({item_bytes(s.dtype)} * {python_of(s.elements)}, "{s.initial}"),\n'
        for s in part.plan.scratch
    )
    return f"def {part.name}_scratch(d: Mapping[str, int]) -> dict[str, Scratch]:\n    return {_braced(lines)}\n"


def _launches(contract: Contract, part: Part) -> str:
    text = f"def {part.name}_launches(d: Mapping[str, int]) -> tuple[Launch, ...] | None:\n"
    for variant in part.plan.variants:
        lines = "".join(_launch(contract, part, launch) for launch in variant.launches)
        taken = f"return (\n{indent(lines, '    ')})\n"
        if variant.when.strip() == "1":
            return text + indent(taken, "    ")
        text += f"    if {python_of(variant.when)}:\n{indent(taken, '        ')}"
    return text + "    return None\n"


def _launch(contract: Contract, part: Part, launch: Launch) -> str:
    words = [word for argument in launch.args for word in _argument(contract, part, argument)]
    args = "(\n" + "".join(f"    {word},\n" for word in words) + ")" if words else "()"
    parts = [f'"{launch.entry}"', _triple(launch.grid), _triple(launch.block), args]
    if launch.cluster != ("1", "1", "1"):
        parts.append(f"cluster={_triple(launch.cluster)}")
    if launch.shared_bytes != "0":
        parts.append(f"shared_bytes={python_of(launch.shared_bytes)}")
    if launch.cooperative:
        parts.append("cooperative=True")
    return f"Launch(\n{indent(''.join(f'{one},{chr(10)}' for one in parts), '    ')}),\n"


def _triple(sizes: Grid) -> str:
    return _tuple([python_of(size) for size in sizes])


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
    """Text that can stand in a docstring: nothing in it ends the string, or steers a terminal."""
    lines = (printed(line.expandtabs()).rstrip() for line in text.strip().splitlines())
    return "\n".join(lines).replace("\\", "\\\\").replace('"""', "'''")
