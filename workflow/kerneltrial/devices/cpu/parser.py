"""PTX tokens to a `Module`: directives and functions. Statements of a function are read in `statements`."""

from kerneltrial.devices.cpu.lexer import Token, tokens
from kerneltrial.devices.cpu.refusals import unreadable, unsupported_feature
from kerneltrial.devices.cpu.scopes import Scopes
from kerneltrial.devices.cpu.statements import StatementReader
from kerneltrial.devices.cpu.syntax import WIDTHS, Function, Module, SlotSpace
from kerneltrial.devices.cpu.tokens import Cursor
from kerneltrial.devices.cpu.variables import LINKAGE, VariableReader, integer

MAX_PARAMETER_BYTES = 32764
_TUNING = frozenset({".minnctapersm", ".maxnctapersm", ".noreturn", ".abi_preserve", ".abi_preserve_control"})


def parse(text: str) -> Module:
    """Read PTX text; raises `Refused` where it is malformed, too large, or uses what is not known here."""
    return _ModuleReader(tokens(text)).read()


class _ModuleReader:
    def __init__(self, found: list[Token]) -> None:
        self.cursor = Cursor(found)
        self.module = Module()
        self.scopes = Scopes()
        self.variables = VariableReader(self.cursor)

    def read(self) -> Module:
        cursor = self.cursor
        while cursor.peek().kind != "end":
            if not self._directive():
                self._definition()
        return self.module

    def _directive(self) -> bool:
        """Skip what says nothing about execution."""
        cursor = self.cursor
        text = cursor.peek().text
        if text in (".version", ".address_size"):
            cursor.next()
            value = cursor.next().text
            if text == ".address_size" and value != "64":
                raise unsupported_feature(f".address_size {value}")
        elif text == ".target":
            cursor.next()
            cursor.next()
            while cursor.accept(","):
                cursor.next()
        elif text == ".file":
            cursor.next()
            cursor.next()
            cursor.next()
            while cursor.accept(","):
                cursor.next()
        elif text == ".section":
            cursor.next()
            cursor.next()
            cursor.skip_braces()
        elif text == ";":
            cursor.next()
        else:
            return False
        return True

    def _definition(self) -> None:
        cursor = self.cursor
        start = cursor.position
        while cursor.peek().text in LINKAGE:
            cursor.next()
        kind = cursor.peek().text
        if kind in (".entry", ".func"):
            cursor.next()
            self._function(kind == ".entry")
            return
        cursor.position = start
        variable = self.variables.read()
        self.module.variables.append(variable)
        self.scopes.declare(variable.name, variable)

    def _function(self, entry: bool) -> None:
        cursor = self.cursor
        function = Function(name="", entry=entry)
        self.scopes.push()
        if cursor.peek().text == "(":
            function.results = self._parameters(function)
        name = cursor.next()
        if name.kind != "word":
            raise unreadable(f"a function's name is missing in line {name.line} of the PTX text")
        function.name = name.text
        if cursor.peek().text == "(":
            function.parameters = self._parameters(function)
        self._lay_out(function)
        self._attributes(function)
        if cursor.accept(";"):
            self.scopes.pop()
            return
        StatementReader(cursor, self.scopes, function, self.variables).read_body()
        self.scopes.pop()
        if function.name in self.module.functions:
            raise unreadable(f"function {function.name} is defined twice")
        self.module.functions[function.name] = function

    def _lay_out(self, function: Function) -> None:
        """Offsets of an entry's parameters: each aligned as it asks, in order."""
        offset = 0
        for index in function.parameters:
            slot = function.slots[index]
            align = self.alignments[index]
            offset = -(-offset // align) * align
            slot.offset = offset if function.entry else -1
            offset += slot.size
        if offset > MAX_PARAMETER_BYTES:
            raise unreadable(f"{offset} bytes of parameters")

    def _parameters(self, function: Function) -> list[int]:
        cursor = self.cursor
        if not function.slots:
            self.alignments: dict[int, int] = {}
        found: list[int] = []
        cursor.expect("(")
        while not cursor.accept(")"):
            if found:
                cursor.expect(",")
            found.append(self._parameter(function))
        return found

    def _parameter(self, function: Function) -> int:
        """One parameter; `.ptr` and its attributes say nothing that is checked here."""
        cursor = self.cursor
        cursor.expect(".param")
        align, type_ = 0, ""
        while cursor.peek().kind == "directive":
            word = cursor.next().text
            if word == ".align":
                align = align or integer(cursor.next())
            elif word[1:] in WIDTHS:
                type_ = word[1:]
            elif word not in (".ptr", ".global", ".shared", ".const", ".local"):
                raise unsupported_feature(f"parameter attribute {word}")
        name = cursor.next()
        if not type_ or name.kind != "word":
            raise unreadable(f"a parameter without type or name in line {name.line} of the PTX text")
        size = WIDTHS[type_] // 8
        align = align or size
        if cursor.accept("["):
            size *= integer(cursor.next())
            cursor.expect("]")
        if not 0 < size <= MAX_PARAMETER_BYTES or align not in (1, 2, 4, 8, 16, 32, 64, 128):
            raise unreadable(f"parameter of {size} bytes, aligned to {align}")
        function.slots.append(SlotSpace(size))
        index = len(function.slots) - 1
        self.alignments[index] = align
        self.scopes.declare(name.text, index)
        return index

    def _attributes(self, function: Function) -> None:
        cursor = self.cursor
        while cursor.peek().kind == "directive":
            word = cursor.next().text
            if word in (".maxntid", ".reqntid"):
                product = integer(cursor.next())
                while cursor.accept(","):
                    product *= integer(cursor.next())
                function.max_threads = min(function.max_threads, product)
            elif word == ".maxnreg" or word in _TUNING:
                if cursor.peek().kind == "number":
                    cursor.next()
            elif word == ".pragma":
                cursor.next()
                cursor.expect(";")
            else:
                raise unsupported_feature(f"function attribute {word}")
