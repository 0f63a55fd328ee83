"""Calls of device functions become part of the entry; labels are resolved to unique keys.

Guards on calls and on instructions where threads wait for each other become branches around them.
"""

from kerneltrial.devices.cpu.refusals import unreadable, unsupported_feature, unsupported_instruction
from kerneltrial.devices.cpu.scopes import label_key
from kerneltrial.devices.cpu.statements import MAX_STATEMENTS
from kerneltrial.devices.cpu.syntax import (
    Function,
    Group,
    Instruction,
    Label,
    Memory,
    Module,
    Name,
    Not,
    Operand,
    Pair,
    Register,
    SlotSpace,
    SlotSymbol,
    Statement,
    Symbol,
    Vector,
)
from kerneltrial.devices.cpu.table import find

MAX_REGISTERS = 400_000
_LEAVING = ("ret", "ret.uni")


def flatten(module: Module, entry: Function) -> Function:
    """A copy of `entry` without calls. Raises `Refused` for recursion and for functions that are not there."""
    return _Flattener(module, entry).run()


class _Flattener:
    def __init__(self, module: Module, entry: Function) -> None:
        self.module = module
        self.entry = entry
        self.flat = Function(entry.name, True, list(entry.registers), list(entry.slots), list(entry.parameters))
        self.flat.variables = list(entry.variables)
        self.flat.max_threads = entry.max_threads
        self.copies = 0

    def run(self) -> Function:
        self._copy(self.entry, _Renaming("", 0, {i: i for i in range(len(self.entry.slots))}), (self.entry.name,), "")
        return self.flat

    def _append(self, statement: Statement) -> None:
        self.flat.code.append(statement)
        if len(self.flat.code) > MAX_STATEMENTS:
            raise unreadable(f"more than {MAX_STATEMENTS} statements after inlining")

    def _copy(self, function: Function, renaming: "_Renaming", callers: tuple[str, ...], leave: str) -> None:
        labels = {s.key for s in function.code if isinstance(s, Label)}
        for statement in function.code:
            if isinstance(statement, Label):
                self._append(Label(renaming.label(statement.key)))
                continue
            changed = renaming.instruction(statement, labels)
            head = changed.opcode.split(".", 1)[0]
            if head == "call":
                self._around(changed, lambda i: self._call(i, callers))
            elif leave and changed.opcode in _LEAVING:
                self._append(Instruction("bra", (Name(leave),), changed.guard, changed.negated, changed.line))
            elif changed.guard is not None and self._waits(changed):
                self._around(changed, self._append)
            else:
                self._append(changed)

    @staticmethod
    def _waits(instruction: Instruction) -> bool:
        match = find(instruction.opcode)
        return match is not None and match.form.sync

    def _around(self, instruction: Instruction, emit: "object") -> None:
        """Emit an instruction without its guard, with a branch around it in the guard's place."""
        assert callable(emit)
        if instruction.guard is None:
            emit(instruction)
            return
        self.copies += 1
        behind = f"around{self.copies}"
        self._append(Instruction("bra", (Name(behind),), instruction.guard, not instruction.negated, instruction.line))
        emit(Instruction(instruction.opcode, instruction.operands, None, False, instruction.line))
        self._append(Label(behind))

    def _call(self, call: Instruction, callers: tuple[str, ...]) -> None:
        if call.opcode not in ("call", "call.uni"):
            raise unsupported_instruction(call.opcode, call.line)
        operands = list(call.operands)
        results = operands.pop(0) if operands and isinstance(operands[0], Group) else Group(())
        if not operands or not isinstance(operands[0], Name) or len(operands) > 2:
            raise unsupported_instruction("an indirect call", call.line)
        name = operands[0].text
        arguments = operands[1] if len(operands) == 2 else Group(())
        if name == "__assertfail":
            self._append(Instruction("trap", (), None, False, call.line))
            return
        callee = self.module.functions.get(name)
        if name == "vprintf" and callee is None:
            self._print(call, results, arguments)
            return
        if callee is None or callee.entry:
            raise unsupported_feature(f"call of {name}")
        if name in callers:
            raise unsupported_feature(f"recursion of {name}")
        assert isinstance(results, Group)
        self._enter(call, callee, _slots(results, call), _slots(arguments, call), callers)

    def _print(self, call: Instruction, results: Operand, arguments: Operand) -> None:
        slots = [*_slots(results, call), *_slots(arguments, call)]
        if [self.flat.slots[slot].size for slot in slots] != [4, 8, 8]:
            raise unsupported_feature("call of vprintf with other parameters than it has")
        operands = tuple(SlotSymbol(slot, 0) for slot in slots)
        self._append(Instruction("vprintf", operands, None, False, call.line))

    def _enter(
        self, call: Instruction, callee: Function, results: list[int], arguments: list[int], callers: tuple[str, ...]
    ) -> None:
        flat = self.flat
        formal = [*callee.results, *callee.parameters]
        actual = [*results, *arguments]
        sizes_fit = len(formal) == len(actual) and len(results) == len(callee.results)
        if not sizes_fit or any(callee.slots[f].size > flat.slots[a].size for f, a in zip(formal, actual, strict=True)):
            raise unreadable(f"call of {callee.name} with other parameters than it has")
        slots = dict(zip(formal, actual, strict=True))
        for index, slot in enumerate(callee.slots):
            if index not in slots:
                flat.slots.append(SlotSpace(slot.size))
                slots[index] = len(flat.slots) - 1
        self.copies += 1
        if len(flat.registers) + len(callee.registers) > MAX_REGISTERS or len(flat.slots) > MAX_REGISTERS:
            raise unreadable(f"more than {MAX_REGISTERS} registers after inlining")
        base = len(flat.registers)
        flat.registers.extend(callee.registers)
        flat.variables.extend(v for v in callee.variables if v not in flat.variables)
        leave = f"leave{self.copies}"
        self._copy(callee, _Renaming(f"{self.copies}/", base, slots), (*callers, callee.name), leave)
        self._append(Label(leave))


def _slots(group: Operand, call: Instruction) -> list[int]:
    found = []
    assert isinstance(group, Group)
    for item in group.items:
        if not isinstance(item, SlotSymbol) or item.offset:
            raise unsupported_instruction("a call with operands that are no parameter slots", call.line)
        found.append(item.slot)
    return found


class _Renaming:
    """Registers are moved by `base`, slots mapped, labels prefixed."""

    def __init__(self, prefix: str, base: int, slots: dict[int, int]) -> None:
        self.prefix, self.base, self.slots = prefix, base, slots

    def label(self, key: str) -> str:
        return self.prefix + key

    def instruction(self, instruction: Instruction, labels: set[str]) -> Instruction:
        guard = instruction.guard
        return Instruction(
            instruction.opcode,
            tuple(self._operand(o, labels) for o in instruction.operands),
            Register(guard.index + self.base) if guard else None,
            instruction.negated,
            instruction.line,
        )

    def _operand(self, operand: Operand, labels: set[str]) -> Operand:
        match operand:
            case Register(index):
                return Register(index + self.base) if self.base else operand
            case SlotSymbol(slot, offset):
                return SlotSymbol(self.slots[slot], offset)
            case Not(register):
                return Not(Register(register.index + self.base))
            case Memory(place, offset):
                moved = self._operand(place, labels)
                assert isinstance(moved, Register | Symbol | SlotSymbol | Name) or moved is place
                return Memory(moved, offset)
            case Vector(items):
                return Vector(tuple(self._operand(i, labels) for i in items))
            case Group(items):
                return Group(tuple(self._operand(i, labels) for i in items))
            case Pair(first, second):
                return Pair(self._operand(first, labels), self._operand(second, labels))
            case Name(text, scopes):
                for depth in range(len(scopes), 0, -1):
                    key = label_key(text, scopes[:depth])
                    if key in labels:
                        return Name(self.label(key))
        return operand
