"""The sizes that a launch gives its kernel, as expressions in the dimensions."""

import ast
import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kerneltrial.inputs.dtypes import item_bytes
from kerneltrial.inputs.expressions import tree
from kerneltrial.inputs.shape_search import Wants
from kerneltrial.inputs.spans import Cell, Span, span_of, truth
from kerneltrial.judge.arithmetic import number
from kerneltrial.records.build import Abi
from kerneltrial.records.contract import Contract, DimensionArgument, ScalarArgument
from kerneltrial.records.plan import Launch, LaunchPlan

VALUES: Final = 64  # of a size that the plan gives, which are tried one by one


class Launched:
    """One launch of a variant, and the sizes that the plan gives its kernel: expressions by names of their own.

    To a kernel such a size is one number, whatever the plan makes it of; dimensions keep their names. `places` are the
    registers that say where a thread is, each with the size that it stays below.
    """

    def __init__(self, variant: int, launch: Launch, given: Mapping[str, ast.expr]) -> None:
        self.variant, self.entry = variant, launch.entry
        self.expressions = {f"%{name}": node for name, node in given.items() if not isinstance(node, ast.Name)}
        self.named: dict[str, ast.expr] = {
            name: node if isinstance(node, ast.Name) else ast.Name(f"%{name}") for name, node in given.items()
        }
        self.places = {f"%{which}.{axis}": given[f"%n{which}.{axis}"] for which in ("ctaid", "tid") for axis in "xyz"}
        self._spoken: dict[int, tuple[ast.expr, list[str]]] = {}
        self._cells: dict[int, tuple[Cell, dict[str, Span]]] = {}

    def cell(self, shapes: Cell) -> dict[str, Span]:
        """What the names are in some shapes."""
        if id(shapes) not in self._cells:
            own = {name: span_of(node, shapes) for name, node in self.expressions.items()}
            places = {name: _below(span_of(size, shapes).high) for name, size in self.places.items()}
            self._cells[id(shapes)] = shapes, {**shapes, **own, **places}
        return self._cells[id(shapes)][1]

    def changes(self, name: str, whole: Cell) -> bool:
        """Whether a size that the kernel is given is not one number in all shapes."""
        span = span_of(self.named[name], self.cell(whole))
        return span.low < span.high

    def placed(self, wants: Wants) -> tuple[str, ...]:
        """The places that some conditions speak of."""
        return tuple(dict.fromkeys(name for node, _ in wants for name in self._placed(node)))

    def _placed(self, node: ast.expr) -> list[str]:
        """The same of one condition; many ways have it in common."""
        if id(node) not in self._spoken:
            names = [part.id for part in ast.walk(node) if isinstance(part, ast.Name) and part.id in self.places]
            self._spoken[id(node)] = node, names
        return self._spoken[id(node)][1]

    def within(self, names: Sequence[str]) -> Wants:
        """That a thread's places are below their sizes, in dimensions."""
        return [(ast.Compare(ast.Name(name), [ast.Lt()], [self.places[name]]), True) for name in names]

    def spelled(self, node: ast.expr) -> ast.expr:
        """The same in dimensions alone."""
        return _Spelled(self.expressions).visit(copy.deepcopy(node))  # type: ignore[no-any-return]

    def contradicts(self, wants: Wants, whole: Cell) -> bool:
        """Whether no value of some one size meets all that is asked of it alone."""
        cell = self.cell(whole)
        asked: dict[str, list[tuple[ast.expr, bool]]] = {}
        for node, holds in wants:
            names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and part.id in cell}
            if len(names) == 1:
                asked.setdefault(names.pop(), []).append((node, holds))
        return any(self._none(name, parts, cell[name]) for name, parts in asked.items() if len(parts) > 1)

    @staticmethod
    def _none(name: str, wants: Wants, span: Span) -> bool:
        if not span.step or (span.high - span.low) // span.step > VALUES:
            return False
        values = ({name: Span(value, value, 0)} for value in range(span.low, span.high + 1, span.step))
        return not any(all(truth(node, cell) is holds for node, holds in wants) for cell in values)


def _below(size: int) -> Span:
    return Span(0, max(size - 1, 0), int(size > 1))


class _Spelled(ast.NodeTransformer):
    def __init__(self, expressions: Mapping[str, ast.expr]) -> None:
        self._expressions = expressions

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._expressions.get(node.id, node)


def arguments(contract: Contract, plan: LaunchPlan, launch: Launch, abi: Abi) -> Iterator[ast.expr | None]:
    """An expression for each parameter of a launch; None for addresses and floats."""
    arrays = {array.name: (array.dtype, array.shape) for array in contract.arrays}
    arrays |= {scratch.name: (scratch.dtype, (scratch.elements,)) for scratch in plan.scratch}
    known = {argument.name: argument for argument in contract.arguments}
    for word in launch.args:
        kind, bracket, rest = word.strip().partition("(")
        argument = known.get(word)
        if bracket and kind in ("int32", "int64"):
            yield tree(rest.removesuffix(")"))
        elif word in arrays:
            dtype, shape = arrays[word]
            yield from _array(item_bytes(dtype), [tree(text) for text in shape], abi)
        elif isinstance(argument, DimensionArgument):
            yield ast.Name(word)
        elif isinstance(argument, ScalarArgument) and argument.dtype.startswith("int"):
            yield number(int(argument.value))
        else:
            yield None


def _array(size: int, shape: Sequence[ast.expr], abi: Abi) -> Iterator[ast.expr | None]:
    if abi == "pointer":
        yield None
        return
    yield from (number(0), number(0), _product(shape), number(size), None, *shape)
    yield from (_product([number(size), *shape[axis + 1 :]]) for axis in range(len(shape)))


def _product(parts: Sequence[ast.expr]) -> ast.expr:
    whole = parts[0]
    for part in parts[1:]:
        whole = ast.BinOp(whole, ast.Mult(), part)
    return whole


OTHER_SIZES: Final = frozenset(
    {"%total_smem_size", "%aggr_smem_size", "%cluster_nctarank", "%is_explicit_cluster"}
    | {f"%{name}.{axis}" for name in ("nclusterid", "cluster_nctaid") for axis in "xyz"}
    | {f"%envreg{number}" for number in range(32)}
)
"""Further registers that say something of the launch, for which there is no expression."""


def sizes_of_launch(launch: Launch) -> dict[str, ast.expr]:
    """Expressions by special register: blocks of the grid, threads of a block, and dynamic shared memory."""
    found: dict[str, ast.expr] = {"%dynamic_smem_size": tree(launch.shared_bytes)}
    for name, sizes in (("%nctaid", launch.grid), ("%ntid", launch.block)):
        found |= {f"{name}.{axis}": tree(size) for axis, size in zip("xyz", sizes, strict=True)}
    return found
