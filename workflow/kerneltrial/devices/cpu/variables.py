"""Declarations of variables in the state spaces global, const, shared and local, with their initial values."""

from kerneltrial.devices.cpu.lexer import Token
from kerneltrial.devices.cpu.refusals import unreadable, unsupported_feature
from kerneltrial.devices.cpu.syntax import WIDTHS, Variable
from kerneltrial.devices.cpu.tokens import Cursor

LINKAGE = frozenset({".visible", ".weak", ".common", ".extern"})
SPACES = frozenset({".global", ".const", ".shared", ".local"})
MAX_VARIABLE_BYTES = 64 << 20


def integer(token: Token) -> int:
    """The value of a non-negative integer literal."""
    text = token.text.rstrip("U")
    try:
        return int(text, 16) if text[:2] in ("0x", "0X") else int(text, 10) if text.isdigit() else int("")
    except ValueError:
        raise unreadable(f"expected an integer, found {token.text!r} in line {token.line} of the PTX text") from None


class VariableReader:
    """Reads declarations up to and with their semicolon; numbers the variables that it meets."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._count = 0

    def read(self) -> Variable:
        cursor = self._cursor
        space, type_, extern, align, lanes = "", "", False, 0, 1
        while cursor.peek().kind == "directive":
            word = cursor.next().text
            if word in LINKAGE:
                extern = extern or word == ".extern"
            elif word in SPACES:
                space = word[1:]
            elif word == ".align":
                align = integer(cursor.next())
            elif word in (".v2", ".v4"):
                lanes = int(word[2])
            elif word[1:] in WIDTHS:
                type_ = word[1:]
            else:
                raise unsupported_feature(f"directive {word}")
        name = cursor.next()
        if not space or not type_ or name.kind != "word":
            raise unreadable(f"a declaration without space, type or name in line {name.line} of the PTX text")
        width = WIDTHS[type_] // 8
        count = lanes * self._elements()
        size = count * width
        align = align or width * lanes
        if size > MAX_VARIABLE_BYTES or align not in (1, 2, 4, 8, 16, 32, 64, 128, 256):
            raise unsupported_feature(f"variable {name.text} of {size} bytes, aligned to {align}")
        initial = self._initial(width, size) if cursor.accept("=") else b""
        cursor.expect(";")
        self._count += 1
        return Variable(self._count, space, name.text, size, align, initial, extern)

    def _elements(self) -> int:
        """The product of the array's dimensions; 0 where one is left open."""
        cursor = self._cursor
        count = 1
        while cursor.accept("["):
            count *= 0 if cursor.peek().text == "]" else integer(cursor.next())
            cursor.expect("]")
            if count > MAX_VARIABLE_BYTES:
                raise unreadable("an array of too many elements")
        return count

    def _initial(self, width: int, size: int) -> bytes:
        """Initial bytes; nested braces are read as if they were flat."""
        cursor = self._cursor
        values = bytearray()
        depth = 0
        while True:
            if cursor.accept("{"):
                depth += 1
            elif cursor.accept("}"):
                depth -= 1
            elif not cursor.accept(","):
                values += self._value(width)
            if depth == 0 and cursor.peek().text != ",":
                break
            if len(values) > size:
                break
        if len(values) > size or depth:
            raise unreadable("more initial values than the variable holds")
        return bytes(values)

    def _value(self, width: int) -> bytes:
        negative = self._cursor.accept("-")
        token = self._cursor.next()
        text = token.text
        if token.kind != "number":
            raise unsupported_feature(f"initial value {text}")
        if text[:2] in ("0f", "0F", "0d", "0D") and len(text) == 2 + 2 * width:
            return bytes.fromhex(text[2:])[::-1]
        value = integer(token)
        return ((-value if negative else value) & ((1 << 8 * width) - 1)).to_bytes(width, "little")
