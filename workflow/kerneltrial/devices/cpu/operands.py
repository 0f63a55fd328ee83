"""Operands of instructions as LLVM values: registers, constants, special registers, addresses of variables."""

from itertools import chain
from typing import TYPE_CHECKING

from kerneltrial.devices.cpu import layout as at
from kerneltrial.devices.cpu.flow import Flow
from kerneltrial.devices.cpu.immediates import immediate_bits, signed
from kerneltrial.devices.cpu.ir import INVARIANT, Body
from kerneltrial.devices.cpu.lower_float import LLVM, canonical_nan
from kerneltrial.devices.cpu.program import Layout
from kerneltrial.devices.cpu.refusals import unsupported_instruction
from kerneltrial.devices.cpu.spilling import kept_in_context
from kerneltrial.devices.cpu.superword import LANES, Lanes
from kerneltrial.devices.cpu.syntax import (
    WIDTHS,
    Function,
    Immediate,
    Instruction,
    Memory,
    Not,
    Operand,
    Pair,
    Register,
    Sink,
    Special,
    Symbol,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_BLOCK_SPECIALS = {
    **{f"%{name}.{axis}": f"{name}.{axis}" for name in ("ctaid", "nctaid", "ntid") for axis in "xyz"},
    "%dynamic_smem_size": "dynamic_bytes",
    "%total_smem_size": "shared_bytes",
}
_CONTEXT_SPECIALS = {"%tid.x": at.TID_X, "%tid.y": at.TID_Y, "%tid.z": at.TID_Z, "%laneid": at.LANE}
FIXED = frozenset({at.TID_X, at.TID_Y, at.TID_Z, at.LINEAR, at.LANE})
"""Fields of a context that never change."""


class Operands:
    """Reads and writes operands. Registers hold integers of their width; floats are reinterpreted at each use."""

    def __init__(self, body: Body, function: Function, flow: Flow, layout: Layout) -> None:
        self.body = body
        self.function = function
        self.flow = flow
        self.layout = layout
        self.kept = kept_in_context(flow)
        self._slots: dict[int, str] = {}
        self._values: dict[int, str] = {}
        self.at_hand: dict[
            int, str
        ] = {}  # of those kept in the context, values that were made since the thread resumed
        self.lanes: dict[int, tuple[str, int]] = {}
        self.vectors: dict[Lanes, str] = {}
        self.together: dict[Lanes, str] = {}
        self._loaded: set[str] = set()
        self.heads: list[str] = []

    # -- registers

    def declare_registers(self) -> None:
        """An alloca for each register that outlives a basic block, or its place in the context; and an alloca for each
        slot of a call. What may be read before it is written holds what the launch says (`launch.UNSET`)."""
        body = self.body
        together = set(chain.from_iterable(self.flow.superwords.together))
        for index, type_ in enumerate(self.function.registers):
            if index in self.flow.local or index in together:
                continue
            if self.kept >> index & 1:
                body.do(f"%r{index} = getelementptr i8, ptr %ctx, i64 {self.layout.spills[index]}")
                continue
            width = WIDTHS[type_]
            body.declare(f"%r{index}", f"i{width}", alignment=0)
            body.do(f"store i{width} {self.unset(index)}, ptr %r{index}")
        for index, slot in enumerate(self.function.slots):
            if slot.offset < 0 and index not in self.layout.slots:
                body.declare(f"%s{index}", f"[{slot.size} x i8]")
                self._slots[index] = f"%s{index}"

    def unset(self, register: int) -> str:
        """What a register holds before it is written: 0 where nothing reads it so."""
        if not self.flow.blocks[0].live_in >> register & 1:
            return "0"
        width = WIDTHS[self.function.registers[register]]
        if width == 1:
            return self.body.op(f"trunc i8 {self.invariant('unset', 'i8')} to i1")
        if width == 128:
            half = self.body.op(f"zext i64 {self.invariant('unset', 'i64')} to i128")
            return self.body.op(f"or i128 {half}, {self.body.op(f'shl i128 {half}, 64')}")
        return self.invariant("unset", f"i{width}")

    def raw(self, register: int) -> str:
        """A register's bits as they are."""
        if register in self.lanes:
            vector, lane = self.lanes[register]
            return self.body.op(f"extractelement <{LANES} x i32> {vector}, i64 {lane}")
        if register in self.flow.local:
            return self._values.get(register) or self.unset(register)
        if register in self.at_hand:
            return self.at_hand[register]
        return self.body.op(f"load i{WIDTHS[self.function.registers[register]]}, ptr %r{register}")

    def invariant(self, name: str, type_: str) -> str:
        """A field of the block's state that does not change while a thread runs, loaded once at its head."""
        return self._head(f"%blk.{name}.{type_}", "%blk", at.BLOCK[name], type_)

    def own(self, offset: int) -> str:
        """A field of the thread's context that never changes, loaded once at its head."""
        return self._head(f"%ctx.{offset}", "%ctx", offset, "i32")

    def _head(self, name: str, where: str, offset: int, type_: str) -> str:
        if name not in self._loaded:
            self._loaded.add(name)
            self.heads.append(f"  {name}.at = getelementptr i8, ptr {where}, i64 {offset}")
            self.heads.append(f"  {name} = load {type_}, ptr {name}.at, {INVARIANT}")
        return name

    def register_pointer(self, register: int) -> str:
        return f"%r{register}"

    def slot_pointer(self, slot: int, offset: int, size: int, instruction: Instruction) -> str:
        """Where `size` bytes of a slot lie; they must be within it and aligned."""
        space = self.function.slots[slot]
        if offset < 0 or offset + size > space.size or offset % min(size, 16):
            raise unsupported_instruction(f"{instruction.opcode} outside its parameter", instruction.line)
        body = self.body
        if space.offset >= 0:
            return body.op(f"getelementptr i8, ptr {self.invariant('params', 'ptr')}, i64 {space.offset + offset}")
        if slot in self.layout.slots:
            return body.op(f"getelementptr i8, ptr %ctx, i64 {self.layout.slots[slot] + offset}")
        return body.op(f"getelementptr i8, ptr {self._slots[slot]}, i64 {offset}")

    # -- reading

    def constant(self, operand: Operand) -> int:
        assert isinstance(operand, Immediate)
        return int(operand.value)

    def value(self, operand: Operand, type_: str, instruction: Instruction) -> str:
        """An operand as a value of PTX type `type_`; a register must have its width."""
        width = WIDTHS[type_]
        if isinstance(operand, Register) and type_ == "f32" and operand.index in self.flow.pure:
            raw = self.raw(operand.index)
        else:
            self.same_width(operand, width, instruction)
            raw = self.bits(operand, width, type_)
        if type_ in LLVM:
            return self.body.op(f"bitcast i{width} {raw} to {LLVM[type_]}")
        return raw

    def same_width(self, operand: Operand, width: int, instruction: Instruction) -> None:
        if isinstance(operand, Not):
            operand = operand.register
        if isinstance(operand, Register):
            actual = WIDTHS[self.function.registers[operand.index]]
        elif isinstance(operand, Special):
            actual = 64 if operand.name in ("%clock64", "%globaltimer") else 32
        else:
            return
        converts = instruction.opcode.startswith("cvt") and actual > width
        if actual != width and not converts and not (isinstance(operand, Special) and width == 64):
            what = f"{instruction.opcode} with a register of {actual} bits"
            raise unsupported_instruction(what, instruction.line)

    def predicate(self, operand: Operand, instruction: Instruction) -> str:
        """A predicate as i1."""
        self.same_width(operand, 1, instruction)
        return self.bits(operand, 1)

    def bits(self, operand: Operand, width: int, type_: str = "") -> str:
        """An operand as an integer of `width` bits: wider registers are cut, narrower ones extended by their type."""
        body = self.body
        match operand:
            case Register(index):
                actual = WIDTHS[self.function.registers[index]]
                raw = self.raw(index)
                if index in self.flow.pure:
                    raw = canonical_nan(body, raw)
                return self._resized(raw, actual, width, type_)
            case Not(register):
                return body.op(f"xor i1 {self.bits(register, 1)}, true")
            case Immediate():
                return str(signed(immediate_bits(operand, width, type_), width))
            case Special(name):
                return self._resized(self._special(name), 32, width, type_)
            case Symbol():
                return self._resized(self.symbol_address(operand), 64, width, type_)
        raise unsupported_instruction("an operand of this kind")

    def _resized(self, raw: str, actual: int, width: int, type_: str) -> str:
        if actual == width:
            return raw
        word = "trunc" if actual > width else "sext" if type_[:1] == "s" else "zext"
        return self.body.op(f"{word} i{actual} {raw} to i{width}")

    def _special(self, name: str) -> str:
        body = self.body
        if name in _CONTEXT_SPECIALS:
            return self.own(_CONTEXT_SPECIALS[name])
        if name in _BLOCK_SPECIALS:
            return self.invariant(_BLOCK_SPECIALS[name], "i32")
        if name == "WARP_SZ":
            return "32"
        if name == "%warpid":
            return body.op(f"lshr i32 {self.own(at.LINEAR)}, 5")
        if name == "%nwarpid":
            threads = self.invariant("threads", "i32")
            return body.op(f"lshr i32 {body.op(f'add i32 {threads}, 31')}, 5")
        if name in ("%envreg1", "%envreg2"):  # the halves of where blocks of a cooperative launch meet, or 0
            whole = self.invariant("workspace", "i64")
            half = body.op(f"lshr i64 {whole}, 32") if name == "%envreg1" else whole
            return body.op(f"trunc i64 {half} to i32")
        if name.startswith("%lanemask_"):
            return self._lane_mask(name[-2:])
        raise unsupported_instruction(f"special register {name}")

    def _lane_mask(self, which: str) -> str:
        body = self.body
        own = body.op(f"shl i32 1, {self.own(at.LANE)}")
        below = body.op(f"sub i32 {own}, 1")
        upto = body.op(f"or i32 {own}, {below}")
        if which in ("eq", "lt", "le"):
            return {"eq": own, "lt": below, "le": upto}[which]
        return body.op(f"xor i32 {below if which == 'ge' else upto}, -1")

    def symbol_address(self, symbol: Symbol) -> str:
        """A variable's address within its space; those of global and constant memory are generic ones too."""
        variable, offset = symbol.variable, symbol.offset
        if variable.space == "shared":
            return str(self.layout.shared[variable.key] + offset)
        if variable.space == "local":
            return str(self.layout.local[variable.key] + offset)
        base = self.invariant("globals", "i64")
        return self.body.op(f"add i64 {base}, {self.layout.images[variable.key] + offset}")

    def address(self, memory: Memory, instruction: Instruction) -> str:
        """The address in a memory operand as i64, offset added."""
        place = memory.place
        if isinstance(place, Register):
            if WIDTHS[self.function.registers[place.index]] < 32:
                raise unsupported_instruction(f"{instruction.opcode} with a narrow address", instruction.line)
            if WIDTHS[self.function.registers[place.index]] == 32:
                # compilers let 32-bit addresses run below zero and come back by the offset; no window is 2 GiB large
                near = self.body.op(f"sext i32 {self.bits(place, 32)} to i64")
                return self.body.op(f"add i64 {near}, {memory.offset}")
            start = self.bits(place, 64)
        elif isinstance(place, Symbol | Immediate):
            start = self.bits(place, 64)
        else:
            raise unsupported_instruction(f"{instruction.opcode} with this address", instruction.line)
        return self.body.op(f"add i64 {start}, {memory.offset}") if memory.offset else start

    # -- writing

    def assign(self, operand: Operand, type_: str, value: str, exact: Instruction | None = None) -> None:
        """Write a value of PTX type `type_` to a register; a wider one gets it extended."""
        if isinstance(operand, Sink):
            return
        assert isinstance(operand, Register)
        width = WIDTHS[type_]
        actual = WIDTHS[self.function.registers[operand.index]]
        if actual < width or (exact is not None and actual != width):
            opcode, line = (exact.opcode, exact.line) if exact else ("a result", 0)
            raise unsupported_instruction(f"{opcode} with a register of {actual} bits", line)
        if type_ in LLVM:
            value = self.body.op(f"bitcast {LLVM[type_]} {value} to i{width}")
        value = self._resized(value, width, actual, type_)
        self.set_raw(operand.index, value)

    def set_raw(self, register: int, value: str) -> None:
        """Give a register these bits."""
        if register in self.flow.local:
            self._values[register] = value
        else:
            self.body.do(f"store i{WIDTHS[self.function.registers[register]]} {value}, ptr %r{register}")
        if self.kept >> register & 1:
            self.at_hand[register] = value

    def assign_results(
        self, operand: Operand, type_: str, result: "str | Sequence[str]", instruction: Instruction
    ) -> None:
        """Write the results of a form; a conversion may go to a wider register."""
        exact = None if instruction.opcode.startswith("cvt") else instruction
        values = [result] if isinstance(result, str) else list(result)
        targets = [operand.first, operand.second] if isinstance(operand, Pair) else [operand]
        for target, value in zip(targets, values, strict=False):
            self.assign(target, type_, value, exact)
