"""Operations whose integers follow rules of their own: bits, quotients without a fraction, remainders."""

from kerneltrial.commands.importing.building import Args, Building
from kerneltrial.commands.importing.messages import Node


def inverted(b: Building, node: Node, args: Args) -> None:
    """`bitwise_not`: of a truth value its opposite, of an integer its bits."""
    source = args["self"]
    b.point(node, "logical_not" if b.kinds[source] == "bool" else "bitwise_not", (source,))


def divided(b: Building, node: Node, args: Args) -> None:
    """`div`: true, or rounded to an integer; of integers that is exact, whatever their size."""
    mode = args.get("rounding_mode")
    operands = (args.get("self", args.get("a")), args.get("other", args.get("b")))
    if mode is None:
        b.point(node, "div", operands)
    elif all(_whole(b, one) for one in operands):
        b.point(node, f"integer_{mode}_divide", operands)
    else:
        b.point(node, "div", operands, f"{node.name}_q")
        b.point(node, {"floor": "floor", "trunc": "trunc"}[mode], (f"{node.name}_q",))


def _whole(b: Building, value: object) -> bool:
    return b.kinds[value] != "float32" if isinstance(value, str) else isinstance(value, int)
