"""The body of a function: declarations, labels, instructions, nested scopes."""

from kerneltrial.devices.cpu.refusals import unreadable, unsupported_feature
from kerneltrial.devices.cpu.scopes import Bank, OperandReader, Scopes, label_key
from kerneltrial.devices.cpu.syntax import WIDTHS, Function, Instruction, Label, Operand, Register, SlotSpace
from kerneltrial.devices.cpu.tokens import Cursor
from kerneltrial.devices.cpu.variables import SPACES, VariableReader, integer

MAX_STATEMENTS = 400_000


class StatementReader:
    """Reads the body of one function into `function.code`."""

    def __init__(self, cursor: Cursor, scopes: Scopes, function: Function, variables: VariableReader) -> None:
        self.cursor = cursor
        self.scopes = scopes
        self.function = function
        self.variables = variables
        self.operands = OperandReader(cursor, scopes, function)
        self.line = 0

    def read_body(self) -> None:
        """Read from the opening brace to the closing one of the same depth."""
        cursor = self.cursor
        cursor.expect("{")
        depth = 1
        self.scopes.push()
        while depth:
            if cursor.accept("{"):
                depth += 1
                self.scopes.push()
            elif cursor.accept("}"):
                depth -= 1
                self.scopes.pop()
            else:
                self._statement()
            if len(self.function.code) > MAX_STATEMENTS:
                raise unreadable(f"more than {MAX_STATEMENTS} statements")

    def _statement(self) -> None:
        cursor = self.cursor
        token = cursor.peek()
        if token.kind == "directive":
            self._directive(token.text)
        elif token.kind == "word" and cursor.peek(1).text == ":":
            cursor.next()
            cursor.next()
            self.function.code.append(Label(label_key(token.text, self.scopes.path)))
        elif token.text == ";":
            cursor.next()
        else:
            self._instruction()

    def _directive(self, word: str) -> None:
        cursor = self.cursor
        if word == ".loc":
            cursor.next()
            cursor.next()
            self.line = min(integer(cursor.next()), 10_000_000)
            cursor.next()
            self._inlined_at()
        elif word == ".reg":
            cursor.next()
            self._registers()
        elif word == ".param":
            cursor.next()
            self._call_slot()
        elif word == ".pragma":
            while cursor.next().text != ";":
                pass
        elif word in SPACES or word == ".extern":
            variable = self.variables.read()
            self.function.variables.append(variable)
            self.scopes.declare(variable.name, variable)
        else:
            raise unsupported_feature(f"directive {word}")

    def _inlined_at(self) -> None:
        """The tail of a .loc that names the place a function was inlined at: not used."""
        cursor = self.cursor
        while cursor.accept(","):
            word = cursor.next().text.split(".")[0]
            if word == "function_name":
                cursor.next()
                if cursor.accept("+"):
                    cursor.next()
            elif word == "inlined_at":
                cursor.next()
                cursor.next()
                cursor.next()
            else:
                raise unreadable(f".loc with {word}")

    def _registers(self) -> None:
        cursor = self.cursor
        type_ = cursor.next().text[1:]
        if type_ not in WIDTHS or type_ == "b128":
            raise unsupported_feature(f".reg of type {type_}")
        while True:
            name = cursor.next().text
            if cursor.accept("<"):
                self.scopes.declare_bank(Bank(name, integer(cursor.next()), type_))
                cursor.expect(">")
            else:
                self.function.registers.append(type_)
                self.scopes.declare(name, Register(len(self.function.registers) - 1))
            if cursor.accept(";"):
                return
            cursor.expect(",")

    def _call_slot(self) -> None:
        """A parameter slot of a call."""
        cursor = self.cursor
        if cursor.accept(".align"):
            cursor.next()
        type_ = cursor.next().text[1:]
        name = cursor.next().text
        if type_ not in WIDTHS:
            raise unreadable(f".param of type {type_}")
        size = WIDTHS[type_] // 8
        if cursor.accept("["):
            size *= integer(cursor.next())
            cursor.expect("]")
        cursor.expect(";")
        if not 0 < size <= 32764:
            raise unreadable(f"a parameter of {size} bytes")
        self.function.slots.append(SlotSpace(size))
        self.scopes.declare(name, len(self.function.slots) - 1)

    def _instruction(self) -> None:
        cursor = self.cursor
        guard, negated = None, False
        if cursor.accept("@"):
            negated = cursor.accept("!")
            meaning = self.scopes.find(cursor.next().text, self.function)
            if not isinstance(meaning, Register):
                raise unreadable("a guard that is no register")
            guard = meaning
        opcode = cursor.next()
        if opcode.kind != "word":
            raise unreadable(f"expected an instruction, found {opcode.text!r} in line {opcode.line} of the PTX text")
        operands: list[Operand] = []
        while not cursor.accept(";"):
            if operands:
                cursor.expect(",")
            operands.append(self.operands.read())
        self.function.code.append(Instruction(opcode.text, tuple(operands), guard, negated, self.line))
