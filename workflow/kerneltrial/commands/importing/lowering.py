"""From aten operations to the few of `graph`; what is not known is refused by name."""

from kerneltrial.commands.importing.building import Building
from kerneltrial.commands.importing.graph import Graph
from kerneltrial.commands.importing.lowered_ops import LOWERED
from kerneltrial.commands.importing.messages import Traced
from kerneltrial.inputs.problem import InputProblem

_MOST_HELD = 1 << 29  # 8 GiB of values and of their errors


def lowered(traced: Traced) -> Graph:
    """The graph of a traced problem.

    Raises
    ------
    InputProblem
        An operation, or a form of one, that is not known.
    """
    building = Building(traced, LOWERED)
    for node in traced.nodes:
        building.add(node)
    outputs = tuple(building.meant(name) for name in traced.outputs)
    given = {one.name for one in traced.given}
    if any(name in given for name in outputs):
        raise InputProblem("an output is an input as it is: nothing is computed")
    if len(set(outputs)) != len(outputs):
        raise InputProblem("two outputs are one and the same tensor")
    graph = Graph(traced.given, tuple(building.needed(outputs)), outputs)
    if graph.most_held() > _MOST_HELD:
        many = f"{graph.most_held()} numbers at one time; at most {_MOST_HELD} are taken"
        raise InputProblem(f"its oracle would hold {many}: make its shapes smaller")
    return graph
