"""What names mean in a function, innermost scope first; and the operands of instructions, read with that."""

import re

from kerneltrial.devices.cpu.lexer import Token
from kerneltrial.devices.cpu.refusals import unreadable
from kerneltrial.devices.cpu.syntax import (
    Function,
    Group,
    Immediate,
    Memory,
    Name,
    Not,
    Operand,
    Pair,
    Register,
    Sink,
    SlotSymbol,
    Special,
    Symbol,
    Variable,
    Vector,
)
from kerneltrial.devices.cpu.tokens import Cursor
from kerneltrial.devices.cpu.variables import integer

MAX_DEPTH = 64
_NUMBERED = re.compile(r"(.*?)(\d+)", re.DOTALL)
_SPECIALS = re.compile(
    r"%(?:n?tid|n?ctaid|n?clusterid|n?cluster_ctaid)\.[xyz]|%(?:laneid|n?warpid|n?smid|gridid|clock|clock64|clock_hi"
    r"|globaltimer(?:_lo|_hi)?|lanemask_(?:eq|le|lt|ge|gt)|dynamic_smem_size|total_smem_size|envreg\d+|pm\d+)|WARP_SZ"
)

Meaning = Register | Variable | int


class Bank:
    """A range of registers `%r<100>`, made one by one as they are used."""

    def __init__(self, prefix: str, count: int, type_: str) -> None:
        self.prefix, self.count, self.type = prefix, count, type_


class Scopes:
    """What names mean, innermost scope first. Module variables lie in the outermost."""

    def __init__(self) -> None:
        self._names: list[dict[str, Meaning]] = [{}]
        self._banks: list[dict[str, Bank]] = [{}]
        self.path: tuple[int, ...] = ()
        self._count = 0

    def push(self) -> None:
        self._count += 1
        if len(self.path) > MAX_DEPTH:
            raise unreadable("scopes are nested too deeply")
        self.path = (*self.path, self._count)
        self._names.append({})
        self._banks.append({})

    def pop(self) -> None:
        self.path = self.path[:-1]
        self._names.pop()
        self._banks.pop()

    def declare(self, name: str, meaning: Meaning) -> None:
        self._names[-1][name] = meaning

    def declare_bank(self, bank: Bank) -> None:
        self._banks[-1][bank.prefix] = bank

    def find(self, name: str, function: Function) -> Meaning | None:
        """The meaning of a name; a register of a bank is made when it is met first."""
        numbered = _NUMBERED.fullmatch(name)
        for names, banks in zip(reversed(self._names), reversed(self._banks), strict=True):
            if name in names:
                return names[name]
            if numbered:
                bank = banks.get(numbered[1])
                if (
                    bank
                    and len(numbered[2]) < 10
                    and int(numbered[2]) < bank.count
                    and str(int(numbered[2])) == numbered[2]
                ):
                    function.registers.append(bank.type)
                    names[name] = Register(len(function.registers) - 1)
                    return names[name]
        return None


class OperandReader:
    """Reads the operands of one function's instructions."""

    def __init__(self, cursor: Cursor, scopes: Scopes, function: Function) -> None:
        self.cursor = cursor
        self.scopes = scopes
        self.function = function

    def read(self, depth: int = 0) -> Operand:
        """One operand."""
        cursor = self.cursor
        token = cursor.peek()
        if depth > 4:
            raise unreadable("operands are nested too deeply")
        if token.text in ("{", "("):
            cursor.next()
            close = "}" if token.text == "{" else ")"
            items: list[Operand] = []
            while not cursor.accept(close):
                if items:
                    cursor.expect(",")
                items.append(self.read(depth + 1))
            return Vector(tuple(items)) if close == "}" else Group(tuple(items))
        if token.text == "[":
            return self._memory()
        if cursor.accept("!"):
            meaning = self.scopes.find(cursor.next().text, self.function)
            if not isinstance(meaning, Register):
                raise unreadable("`!` before what is no register")
            return Not(meaning)
        first = self._plain()
        if cursor.accept("|"):
            return Pair(first, self._plain())
        return first

    def _plain(self) -> Operand:
        """A register, constant, name, or the address of a variable plus a constant."""
        cursor = self.cursor
        if cursor.accept("-"):
            return _negative(_literal(cursor.next()))
        token = cursor.next()
        if token.kind == "number":
            return _literal(token)
        if token.kind != "word":
            raise unreadable(f"unexpected {token.text!r} in line {token.line} of the PTX text")
        return self._named(token.text)

    def _named(self, text: str) -> Operand:
        if text == "_":
            return Sink()
        meaning = self.scopes.find(text, self.function)
        if isinstance(meaning, Register):
            return meaning
        if isinstance(meaning, Variable):
            return Symbol(meaning, self._offset())
        if isinstance(meaning, int):
            return SlotSymbol(meaning, self._offset())
        if _SPECIALS.fullmatch(text):
            return Special(text)
        return Name(text, self.scopes.path)

    def _offset(self) -> int:
        cursor = self.cursor
        if cursor.accept("+"):
            sign = -1 if cursor.accept("-") else 1
            return sign * integer(cursor.next())
        if cursor.accept("-"):
            return -integer(cursor.next())
        return 0

    def _memory(self) -> Memory:
        cursor = self.cursor
        cursor.expect("[")
        place = self._plain()
        offset = self._offset()
        cursor.expect("]")
        if abs(offset) >= 1 << 40 or not isinstance(place, Register | Symbol | SlotSymbol | Immediate | Name):
            raise unreadable("an address that cannot be read")
        return Memory(place, offset)


def label_key(name: str, scopes: tuple[int, ...]) -> str:
    """A name of a label that is unique in the module: labels belong to the scope that they stand in."""
    return f"{scopes[-1]}:{name}"


def _literal(token: Token) -> Immediate:
    text = token.text
    if token.kind != "number":
        raise unreadable(f"expected a number, found {text!r} in line {token.line} of the PTX text")
    if text[:2] in ("0f", "0F"):
        return Immediate("f32", int(text[2:], 16))
    if text[:2] in ("0d", "0D"):
        return Immediate("f64", int(text[2:], 16))
    if "." in text:
        return Immediate("decimal", float(text))
    value = integer(token)
    if value >= 1 << 64:
        raise unreadable(f"constant {text} is wider than 64 bits")
    return Immediate("int", value)


def _negative(value: Immediate) -> Immediate:
    if value.kind in ("f32", "f64"):
        raise unreadable("a sign before a hexadecimal float")
    return Immediate(value.kind, -value.value)
