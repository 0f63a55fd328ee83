"""Contract and launch plan of an imported problem."""

import math
from decimal import Decimal

from kerneltrial.commands.importing.cuda_text import SHORT, THREADS, Baseline
from kerneltrial.commands.importing.graph import Graph, Op, Shape
from kerneltrial.commands.importing.sharp import Bounds, decimals, whole_bounds
from kerneltrial.inputs.contracts import check_contract
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.records.contract import Array, Contract, Tolerance
from kerneltrial.records.plan import DType, Launch, LaunchPlan, Scratch, Variant

_BYTES = {"float32": 4, "int32": 4, "int64": 8, "bool": 1}
_MOST_LAUNCHES = 16
_MOST_AXES = 6


def output_names(graph: Graph) -> dict[str, str]:
    """The contract's names of the outputs, and the graph's."""
    if len(graph.outputs) == 1:
        return {"out": graph.outputs[0]}
    return {f"out{i}": name for i, name in enumerate(graph.outputs)}


def contract_of(name: str, story: str, graph: Graph, bounds: Bounds, scaled: int) -> Contract:
    """The contract at the problem's own shape.

    Raises
    ------
    InputProblem
        Where a contract cannot say it: too many arrays or axes.
    """
    whole = whole_bounds(graph.given)
    arrays = []
    for one in graph.given:
        span = bounds[one.name] if one.dtype == "float32" else bounds.get(one.name, whole[one.name])
        low, high = decimals(span) if one.dtype == "float32" else (Decimal(int(end or 0)) for end in span)
        dtype: DType = "uint8" if one.dtype == "bool" else one.dtype
        arrays.append(Array(name=one.name, role="input", dtype=dtype, shape=_axes(one.shape), low=low, high=high))
    outputs = output_names(graph)
    for mine, theirs in outputs.items():
        kind = graph.kinds[theirs]
        dtype = "uint8" if kind == "bool" else kind
        arrays.append(Array(name=mine, role="output", dtype=dtype, shape=_axes(graph.shapes[theirs])))
    if len(arrays) > 32:
        raise InputProblem(f"it has {len(arrays)} inputs, weights and outputs; a contract holds 32 at most")
    contract = Contract(
        name=name,
        description=story,
        arguments=tuple(arrays),
        dimensions={},
        tolerances={mine: _tolerance(graph, theirs, scaled) for mine, theirs in outputs.items()},
        operations=str(sum(_operations(op, graph) for op in graph.ops)),
        bytes=str(sum(_BYTES[graph.kinds[n]] * math.prod(graph.shapes[n]) for n in _arrays(graph))),
    )
    check_contract(contract)
    return contract


def least_scaled(graph: Graph) -> float:
    """How far a plain float32 sum may be off, in epsilons times its terms: half the root of its length.

    Roundings go either way (Higham, "Accuracy and Stability of Numerical Algorithms", section 4.2). Blocks share long
    sums.
    """
    longest = 1.0
    for op in graph.ops:
        first = graph.shapes[str(op.operands[0])] if op.operands and isinstance(op.operands[0], str) else ()
        match op.form:
            case "scan":
                longest = max(longest, first[op.attributes["dim"]])
            case "matmul":
                longest = max(longest, first[-1])
            case "conv":
                longest = max(longest, math.prod(graph.shapes[str(op.operands[1])][1:]))
            case "reduce" if op.attributes["fn"] in ("sum", "prod", "var"):
                terms = math.prod(first[d] for d in op.attributes["dims"])
                longest = max(longest, terms if terms <= SHORT else terms / THREADS + math.log2(THREADS))
    return math.sqrt(longest) / 2


def plan_of(baseline: Baseline) -> LaunchPlan:
    """The baseline's plan; raises `InputProblem` where it takes more launches than a plan holds."""
    if len(baseline.launches) > _MOST_LAUNCHES:
        many = len(baseline.launches)
        raise InputProblem(f"a plain baseline takes {many} launches, a plan holds {_MOST_LAUNCHES}: write one by hand")
    launches = tuple(
        Launch(entry=one.entry, grid=(str(one.blocks), "1", "1"), block=(str(one.threads), "1", "1"), args=one.args)
        for one in baseline.launches
    )
    scratch = tuple(
        Scratch(name=one.name, dtype=one.dtype, elements=str(one.elements), initial="uninitialised")
        for one in baseline.scratch
    )
    return LaunchPlan(variants=(Variant(launches=launches),), scratch=scratch)


def _arrays(graph: Graph) -> list[str]:
    return [*(one.name for one in graph.given), *graph.outputs]


def _axes(shape: Shape) -> tuple[str, ...]:
    if len(shape) > _MOST_AXES:
        raise InputProblem(f"a tensor has {len(shape)} axes; a contract holds {_MOST_AXES} at most")
    return tuple(str(size) for size in shape) or ("1",)


def _tolerance(graph: Graph, name: str, scaled: int) -> Tolerance:
    if graph.kinds[name] != "float32":
        return Tolerance()
    return Tolerance(scaled=Decimal(scaled), absolute=Decimal("1e-37"))


def _operations(op: Op, graph: Graph) -> int:
    """Arithmetic operations of one step, about: products and sums count two a term."""
    first = graph.shapes[str(op.operands[0])] if op.operands and isinstance(op.operands[0], str) else ()
    match op.form:
        case "matmul":
            return 2 * op.size * first[-1]
        case "conv":
            weights = graph.shapes[str(op.operands[1])]
            moved: int = math.prod(first) if op.attributes["transposed"] else op.size
            return 2 * moved * math.prod(weights[1:])
        case "pool":
            return op.size * int(math.prod(op.attributes["kernel"]))
        case "reduce":
            return math.prod(first)
        case "scan" | "point":
            return op.size
        case _:
            return 0
