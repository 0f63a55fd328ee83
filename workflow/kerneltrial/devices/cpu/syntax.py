"""What PTX text becomes once read: a module of variables and functions, names resolved."""

from dataclasses import dataclass, field

WIDTHS = {
    "pred": 1, "u8": 8, "s8": 8, "b8": 8, "u16": 16, "s16": 16, "b16": 16, "f16": 16, "bf16": 16,
    "u32": 32, "s32": 32, "b32": 32, "f32": 32, "f16x2": 32, "bf16x2": 32, "tf32": 32,
    "u64": 64, "s64": 64, "b64": 64, "f64": 64, "b128": 128,
}  # fmt: skip
"""Bits of each fundamental type."""


@dataclass(frozen=True)
class Register:
    """A virtual register of the function: an index into `Function.registers`."""

    index: int


@dataclass(frozen=True)
class Special:
    """A special register such as %tid.x."""

    name: str


@dataclass(frozen=True)
class Immediate:
    """A constant: `kind` is int, f32, f64 (given as bits) or decimal (a Python float)."""

    kind: str
    value: int | float


@dataclass(frozen=True)
class Symbol:
    """The address of a variable, plus an offset in bytes."""

    variable: "Variable"
    offset: int = 0


@dataclass(frozen=True)
class SlotSymbol:
    """A parameter slot of the function (its own parameters, or a call's), plus an offset in bytes."""

    slot: int
    offset: int = 0


@dataclass(frozen=True)
class Name:
    """A name that is neither register nor variable: a label, or a function."""

    text: str
    scopes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Memory:
    """An address operand in brackets."""

    place: "Register | Symbol | SlotSymbol | Immediate | Name"
    offset: int = 0


@dataclass(frozen=True)
class Vector:
    """Operands in braces."""

    items: "tuple[Operand, ...]"


@dataclass(frozen=True)
class Group:
    """Operands in parentheses."""

    items: "tuple[Operand, ...]"


@dataclass(frozen=True)
class Pair:
    """Two destinations, as in `%r1|%p2`."""

    first: "Operand"
    second: "Operand"


@dataclass(frozen=True)
class Not:
    """A negated predicate."""

    register: Register


@dataclass(frozen=True)
class Sink:
    """The destination `_`."""


Operand = (
    Register | Special | Immediate | Symbol | SlotSymbol | Name | Memory | Vector | Group | Pair | Not | Sink
)  # fmt: skip


@dataclass(frozen=True)
class Variable:
    """A variable in a state space; `size` in bytes, 0 for an extern array of open size."""

    key: int
    space: str
    name: str
    size: int
    align: int
    initial: bytes
    extern: bool


@dataclass(frozen=True)
class Instruction:
    """One instruction; `line` is the source line of the last .loc before it, 0 where there is none."""

    opcode: str
    operands: tuple[Operand, ...]
    guard: Register | None
    negated: bool
    line: int


@dataclass(frozen=True)
class Label:
    """A place in the code; `key` is unique in the function."""

    key: str


Statement = Instruction | Label


@dataclass
class SlotSpace:
    """A parameter slot: `size` bytes; `offset` within the entry's parameters, -1 for the slots of calls."""

    size: int
    offset: int = -1


@dataclass
class Function:
    """An entry or a device function. `registers` are types by index; `parameters` and `results` are slot numbers."""

    name: str
    entry: bool
    registers: list[str] = field(default_factory=list)
    slots: list[SlotSpace] = field(default_factory=list)
    parameters: list[int] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
    code: list[Statement] = field(default_factory=list)
    max_threads: int = 1024

    @property
    def parameter_bytes(self) -> int:
        return max((self.slots[p].offset + self.slots[p].size for p in self.parameters), default=0)


@dataclass
class Module:
    """All that a PTX text defines."""

    variables: list[Variable] = field(default_factory=list)
    functions: dict[str, Function] = field(default_factory=dict)
