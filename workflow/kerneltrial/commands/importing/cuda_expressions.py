"""C expressions for the elements of an imported problem's tensors: views and elementwise work, written in place."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kerneltrial.commands.importing.graph import Graph, Op, Operand
from kerneltrial.commands.importing.points import POINTS

C = {"float32": "float", "int32": "int", "int64": "long long", "bool": "unsigned char"}
ADDS_UP = ("reduce", "matmul", "conv", "pool", "scan")
_LONGEST, _DEEPEST = 256, 64  # operations that are written into one expression, and into each other


class Expressions:
    """The text of one kernel at a time; expressions are C over arrays and index variables."""

    def __init__(self, graph: Graph, outputs: dict[str, str]) -> None:
        self.ops = {op.name: op for op in graph.ops}
        self.shapes, self.kinds = graph.shapes, graph.kinds
        self.contract = {theirs: mine for mine, theirs in outputs.items()}
        self.given = [g.name for g in graph.given]
        self.stored = self._stored(graph)
        self.lines: list[str] = []
        self.depth, self.count = 1, 0
        self.used: dict[str, None] = {}
        self.known: list[dict[str, str]] = [{}]

    def _stored(self, graph: Graph) -> set[str]:
        """Results that get memory of their own: outputs, what adds up, and what would be computed again and again."""
        uses: dict[str, int] = {}
        heavy: set[str] = set()
        for op in graph.ops:
            again = op.form in ("matmul", "conv", "pool") or op.attributes.get("fn") == "var"
            for one in (o for o in op.operands if isinstance(o, str)):
                uses[one] = uses.get(one, 0) + 1
                if again:
                    heavy.add(self._under(one))
        found = set(graph.outputs) | {op.name for op in graph.ops if op.form in ADDS_UP}
        found |= {op.name for op in graph.ops if op.form == "point" and (uses.get(op.name, 0) > 1 or op.name in heavy)}
        return found | self._cut(graph, found)

    @staticmethod
    def _cut(graph: Graph, stored: set[str]) -> set[str]:
        """Results that would grow too long or too deep an expression: views that are read twice double each time."""
        found: set[str] = set()
        length, depth = dict[str, int](), dict[str, int]()
        for op in graph.ops:
            inside = [one for one in op.operands if isinstance(one, str) and one in length]
            length[op.name] = 1 + sum(length[one] for one in inside)
            depth[op.name] = 1 + max((depth[one] for one in inside), default=0)
            if op.name in stored:
                length[op.name] = depth[op.name] = 0
            elif length[op.name] > _LONGEST or depth[op.name] > _DEEPEST:
                found.add(op.name)
                length[op.name] = depth[op.name] = 0
        return found

    def _under(self, name: str) -> str:
        while name in self.ops and self.ops[name].form in ("reshape", "permute", "expand", "slice", "flip"):
            name = str(self.ops[name].operands[0])
        return name

    def array(self, name: str) -> str:
        return self.contract.get(name, f"s_{name}" if name in self.ops else name)

    def _kind_of(self, array: str) -> str:
        back = {mine: theirs for theirs, mine in self.contract.items()}
        name = back.get(array, array.removeprefix("s_") if array.startswith("s_") else array)
        return self.kinds[name]

    # writing

    def say(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.say(head + " {")
        self.depth += 1
        self.known.append({})
        yield
        self.known.pop()
        self.depth -= 1
        self.say("}")

    def let(self, expression: str) -> str:
        """A name for an index expression, written once in its block."""
        if expression.isalnum() or expression.isdigit():
            return expression
        for scope in self.known:
            if expression in scope:
                return scope[expression]
        self.count += 1
        name = f"i{self.count}"
        self.say(f"const int {name} = {expression};")
        self.known[-1][expression] = name
        return name

    def places(self, flat: str, shape: Sequence[int]) -> list[str]:
        """Indices of an element by its number in row-major order."""
        found, after = [], 1
        for axis in range(len(shape) - 1, -1, -1):
            size = shape[axis]
            part = flat if after == 1 else f"{flat} / {after}"
            after *= size
            found.append(
                "0"
                if size == 1
                else self.let(
                    part
                    if axis == 0 or after == math.prod(shape)
                    else f"{part} % {size}"
                    if part == flat
                    else f"({part}) % {size}"
                )
            )
        return found[::-1]

    @staticmethod
    def flat(places: Sequence[str], shape: Sequence[int]) -> str:
        terms, after = [], 1
        for place, size in zip(reversed(places), reversed(shape), strict=True):
            if size != 1 and place != "0":
                terms.append(place if after == 1 else f"{place} * {after}")
            after *= size
        return " + ".join(reversed(terms)) or "0"

    # reading

    def at(self, value: Operand, places: Sequence[str], kind: str = "float32") -> str:
        """A C expression for the element of `value` at these indices; numbers as `kind` writes them."""
        if not isinstance(value, str):
            return _number(value, kind)
        if value in self.given or value in self.stored:
            array = self.array(value)
            self.used[array] = None
            return f"{array}[{self.let(self.flat(places, self.shapes[value]))}]"
        return self._inside(self.ops[value], list(places))

    def _aligned(self, value: Operand, places: Sequence[str], kind: str) -> str:
        """An operand that is stretched to the result's shape."""
        if not isinstance(value, str):
            return _number(value, kind)
        shape = self.shapes[value]
        own = list(places)[len(places) - len(shape) :] if shape else []
        return self.at(value, ["0" if size == 1 else p for p, size in zip(own, shape, strict=True)])

    def _inside(self, op: Op, places: list[str]) -> str:
        a = op.attributes
        match op.form:
            case "constant" if op.size == 1:
                return _number(a["values"][0], op.kind)
            case "constant":
                values = ", ".join(_number(v, op.kind) for v in a["values"])
                self.count += 1
                self.say(f"const {C[op.kind]} c{self.count}[] = {{{values}}};")
                return f"c{self.count}[{self.flat(places, op.shape)}]"
            case "iota":
                return f"(({C[op.kind]})({a['start']} + {a['step']} * {places[0]}))"
            case "point":
                return self._point(op, places)
            case "cat":
                return self._cat(op, places)
            case "pad":
                return self._pad(op, places)
            case "take" | "index":
                return self.at(op.operands[0], self._taken(op, places))
            case _:
                return self.at(op.operands[0], self._moved(op, places))

    def _point(self, op: Op, places: list[str]) -> str:
        fn = op.attributes["fn"]
        kinds = [self.kinds[o] for o in op.operands if isinstance(o, str)]
        real = "float32" in (op.kind, *kinds) or any(isinstance(o, float) for o in op.operands)
        words = [self._aligned(o, places, "float32" if real else "int64") for o in op.operands]
        known = POINTS[fn]
        if fn == "to":
            return f"({words[0]} != 0)" if op.kind == "bool" else f"(({C[op.kind]}){words[0]})"
        if real and fn not in ("where", "logical_and", "logical_or", "logical_not"):
            words = [w if self._is_real(o) else f"((float){w})" for w, o in zip(words, op.operands, strict=True)]
        return (known.cuda if real or not known.whole else known.whole).format(*words)

    def _is_real(self, value: Operand) -> bool:
        return not isinstance(value, str) or self.kinds[value] == "float32"

    def _moved(self, op: Op, places: list[str]) -> list[str]:
        """Where an element of a view lies in what it is a view of."""
        source, a = self.shapes[str(op.operands[0])], op.attributes
        match op.form:
            case "reshape":
                if [s for s in source if s != 1] == [s for s in op.shape if s != 1]:
                    rest = iter([p for p, s in zip(places, op.shape, strict=True) if s != 1])
                    return ["0" if size == 1 else next(rest) for size in source]
                return self.places(self.let(self.flat(places, op.shape)), source)
            case "permute":
                moved = [""] * len(source)
                for place, dim in zip(places, a["dims"], strict=True):
                    moved[dim] = place
                return moved
            case "expand":
                own = places[len(places) - len(source) :] if source else []
                return ["0" if size == 1 else p for p, size in zip(own, source, strict=True)]
            case "slice":
                step = places[a["dim"]] if a["step"] == 1 else f"{places[a['dim']]} * {a['step']}"
                places[a["dim"]] = self.let(f"{step} + {a['start']}" if a["start"] else step)
                return places
            case "flip":
                return [
                    self.let(f"{s - 1} - {p}") if d in a["dims"] else p
                    for d, (p, s) in enumerate(zip(places, source, strict=True))
                ]
            case _:
                raise AssertionError(f"{op.form} is no view")

    def _taken(self, op: Op, places: list[str]) -> list[str]:
        source, *tensors = op.operands
        shape = self.shapes[str(source)]
        if op.form == "take":
            at, own = op.attributes["dim"], places
            after = places[at + 1 :]
            before = places[:at]
        else:
            at, width = op.attributes["at"], len(self.shapes[str(tensors[0])])
            before, own, after = places[:at], places[at : at + width], places[at + width :]
        found = []
        for axis, tensor in enumerate(tensors):
            index = self.let(f"(int){self.at(tensor, own)}")
            found.append(self.let(f"{index} < 0 ? {index} + {shape[at + axis]} : {index}"))
        return [*before, *found, *after]

    def _early(self, value: Operand) -> bool:
        """Whether an element's expression reads an index in a line of its own, before any condition around it."""
        if value in self.given or value in self.stored or not isinstance(value, str):
            return False
        op = self.ops[value]
        return op.form in ("take", "index") or any(self._early(one) for one in op.operands)

    def _within(self, value: Operand, place: str, size: int) -> str:
        """A place that may lie outside `value`, where a condition keeps what is read there from being taken."""
        return self.let(f"min(max({place}, 0), {size - 1})") if self._early(value) else place

    def _cat(self, op: Op, places: list[str]) -> str:
        dim, start, parts = op.attributes["dim"], 0, []
        for one in op.operands:
            moved, size = list(places), self.shapes[str(one)][dim]
            moved[dim] = self._within(one, self.let(f"{places[dim]} - {start}") if start else places[dim], size)
            start += size
            parts.append((start, self.at(one, moved)))
        text = parts[-1][1]
        for end, part in reversed(parts[:-1]):
            text = f"({places[dim]} < {end} ? {part} : {text})"
        return text

    def _pad(self, op: Op, places: list[str]) -> str:
        source, low = self.shapes[str(op.operands[0])], op.attributes["low"]
        moved = [self.let(f"{p} - {at}") if at else p for p, at in zip(places, low, strict=True)]
        inside = [
            f"{m} >= 0 && {m} < {size}" for m, size, all_ in zip(moved, source, op.shape, strict=True) if size != all_
        ]
        value = _number(op.attributes["value"], op.kind)
        kept = [self._within(op.operands[0], m, size) for m, size in zip(moved, source, strict=True)]
        return f"({' && '.join(inside) or '1'} ? {self.at(op.operands[0], kept)} : {value})"


def _number(value: float | int | bool, kind: str) -> str:
    if kind != "float32":
        return str(int(value))
    number = float(value)
    if number != number:
        return "NAN"
    if math.isinf(number):
        return "INFINITY" if number > 0 else "-INFINITY"
    return f"{number!r}f"
