"""LLVM IR as text, built line by line. Names are made here; no text of a candidate ever becomes part of the IR."""

from collections.abc import Iterator
from contextlib import contextmanager

LIKELY = "!prof !1"
UNLIKELY = "!prof !2"
INVARIANT = "!invariant.load !0"

METADATA = """
!0 = !{}
!1 = !{!"branch_weights", i32 100000, i32 1}
!2 = !{!"branch_weights", i32 1, i32 100000}
"""


class Slot:
    """A mutable variable of a function (an alloca that LLVM turns into SSA form)."""

    def __init__(self, body: "Body", type_: str, pointer: str) -> None:
        self._body = body
        self.type = type_
        self.pointer = pointer

    def get(self) -> str:
        return self._body.op(f"load {self.type}, ptr {self.pointer}")

    def set(self, value: str | int) -> None:
        self._body.do(f"store {self.type} {value}, ptr {self.pointer}")


class Body:
    """One function: `declarations` are the externals and intrinsics that it needs."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.declarations: set[str] = set()
        self._allocas: list[str] = []
        self._names = 0

    def _fresh(self) -> int:
        self._names += 1
        return self._names

    def op(self, text: str) -> str:
        """Append an instruction with a result; return the result's name."""
        name = f"%v{self._fresh()}"
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """Append an instruction without a result."""
        self.lines.append(f"  {text}")

    def label(self) -> str:
        return f"L{self._fresh()}"

    def place(self, label: str) -> None:
        self.lines.append(f"{label}:")

    def jump(self, label: str) -> None:
        self.do(f"br label %{label}")

    def branch(self, condition: str, yes: str, no: str, weights: str = "") -> None:
        self.do(f"br i1 {condition}, label %{yes}, label %{no}" + (f", {weights}" if weights else ""))

    def variable(self, type_: str, initial: str | int | None = None) -> Slot:
        pointer = f"%a{self._fresh()}"
        self.declare(pointer, type_)
        slot = Slot(self, type_, pointer)
        if initial is not None:
            slot.set(initial)
        return slot

    def declare(self, pointer: str, type_: str, alignment: int = 16) -> None:
        """An alloca of that name; alignment 0 is that of its type."""
        self._allocas.append(f"  {pointer} = alloca {type_}" + (f", align {alignment}" if alignment else ""))

    def call(self, result: str, name: str, *arguments: tuple[str, str | int], convention: str = "") -> str:
        """Call an external function or intrinsic; `arguments` are (type, value). Void gives an empty name."""
        types = ", ".join(type_ for type_, _ in arguments)
        how = f"{convention} {result}".strip()
        self.declarations.add(f"declare {how} @{name}({types})")
        text = f"call {how} @{name}({', '.join(f'{type_} {value}' for type_, value in arguments)})"
        if result == "void":
            self.do(text)
            return ""
        return self.op(text)

    def field(self, base: str, offset: int | str, type_: str, suffix: str = "") -> str:
        """Load a field `offset` bytes behind `base`."""
        pointer = self.op(f"getelementptr i8, ptr {base}, i64 {offset}")
        return self.op(f"load {type_}, ptr {pointer}" + (f", {suffix}" if suffix else ""))

    def set_field(self, base: str, offset: int | str, type_: str, value: str | int) -> None:
        pointer = self.op(f"getelementptr i8, ptr {base}, i64 {offset}")
        self.do(f"store {type_} {value}, ptr {pointer}")

    @contextmanager
    def when(self, condition: str, weights: str = "") -> Iterator[None]:
        """Emit what the block emits, under `condition`."""
        inside, behind = self.label(), self.label()
        self.branch(condition, inside, behind, weights)
        self.place(inside)
        yield
        self.jump(behind)
        self.place(behind)

    @contextmanager
    def loop(self, start: str | int, stop: str | int, type_: str = "i32") -> Iterator[str]:
        """A counted loop over start <= i < stop (signed); gives the name of i."""
        index = self.variable(type_, start)
        test, inside, behind = self.label(), self.label(), self.label()
        self.jump(test)
        self.place(test)
        i = index.get()
        self.branch(self.op(f"icmp slt {type_} {i}, {stop}"), inside, behind)
        self.place(inside)
        yield i
        index.set(self.op(f"add {type_} {i}, 1"))
        self.jump(test)
        self.place(behind)

    def function(self, header: str) -> str:
        """The whole text: `header` is all before the brace."""
        return "\n".join([f"{header} {{", "entry:", *self._allocas, *self.lines, "}", ""])


def module(functions: list[str], bodies: list[Body]) -> str:
    """A module's text: functions, and the declarations of what they call."""
    declarations: set[str] = set()
    for body in bodies:
        declarations |= body.declarations
    return "\n".join([*sorted(declarations), *functions, METADATA])
