"""printf of a kernel: `kt_print` keeps a record of each of the first calls, and the host puts it in words.

A record holds the block's number, the thread, the address of the format, and the bytes of the arguments as they lie in
the thread's local memory. Nothing that the kernel wrote is formatted by anything but this module: a directive takes its
bytes from the record, a string those of the call's memory that may be read, and what comes out is short and printable.
"""

import re
import struct

import numpy as np

from kerneltrial.devices.cpu import layout as at
from kerneltrial.devices.cpu.arena import Arena
from kerneltrial.devices.cpu.ir import UNLIKELY, Body
from kerneltrial.devices.cpu.refusals import printable

KEPT = 32
"""Calls of printf that one launch keeps."""
_ARGUMENTS = 128
_RECORD = 32 + _ARGUMENTS
_HEAD = 8
_LONGEST_TEXT, _WIDEST = 120, 40
_SHORT = {"hh": 1, "h": 2}
_DIRECTIVE = re.compile(r"%([-+ #0]*)(\d*)(?:\.(\d*))?(hh|h|ll|l|z|t|j)?([diouxXcsfFeEgGaAp%])")


def kt_print() -> tuple[str, Body]:
    """`kt_print(block, context, format, arguments)`: keep a record, or count one that has no place."""
    b = Body()
    prints = b.field("%blk", at.BLOCK["prints"], "ptr")
    done = b.label()
    with b.when(b.op(f"icmp eq ptr {prints}, null"), UNLIKELY):
        b.do("ret void")
        b.place(done)
    count = b.op(f"load i64, ptr {prints}")
    b.do(f"store i64 {b.op(f'add i64 {count}, 1')}, ptr {prints}")
    with b.when(b.op(f"icmp ult i64 {count}, {KEPT}")):
        start = b.op(f"add i64 {b.op(f'mul i64 {count}, {_RECORD}')}, {_HEAD}")
        record = b.op(f"getelementptr i8, ptr {prints}, i64 {start}")
        local = b.field("%blk", at.BLOCK["local_bytes"], "i64")
        offset = b.op(f"sub i64 %arguments, {at.LOCAL_BASE}")
        left = b.call("i64", "llvm.usub.sat.i64", ("i64", local), ("i64", offset))
        length = b.call("i64", "llvm.umin.i64", ("i64", left), ("i64", _ARGUMENTS))
        linear = b.op(f"zext i32 {b.field('%ctx', at.LINEAR, 'i32')} to i64")
        number = b.field("%blk", at.BLOCK["block_number"], "i64")
        for place, value in enumerate((number, linear, "%format", length)):
            b.set_field(record, 8 * place, "i64", value)
        memory = b.op(f"getelementptr i8, ptr %ctx, i64 {b.field('%blk', at.BLOCK['local_offset'], 'i64')}")
        source = b.op(f"getelementptr i8, ptr {memory}, i64 {offset}")
        target = b.op(f"getelementptr i8, ptr {record}, i64 32")
        b.call("void", "llvm.memcpy.p0.p0.i64", ("ptr", target), ("ptr", source), ("i64", length), ("i1", "false"))
    b.do("ret void")
    return b.function("define void @kt_print(ptr %blk, ptr %ctx, i64 %format, i64 %arguments)"), b


class Prints:
    """Memory for the records of one launch."""

    def __init__(self) -> None:
        self._bytes = np.zeros(_HEAD + KEPT * _RECORD, np.uint8)

    def fields(self) -> dict[str, int]:
        """Fields of the block's state."""
        return {"prints": self._bytes.ctypes.data}

    @property
    def calls(self) -> int:
        """How many calls there were, kept or not."""
        return int(self._bytes[:_HEAD].view(np.int64)[0])

    def texts(self, arena: Arena) -> list[str]:
        """A line a call that was kept: who printed, and what."""
        found = []
        for k in range(min(self.calls, KEPT)):
            record = self._bytes[_HEAD + k * _RECORD :][:_RECORD].tobytes()
            number, linear, address, length = struct.unpack_from("<4q", record)
            text = _formatted(_string(arena, address), record[32 : 32 + length], arena)
            found.append(f"thread {linear} of block {number - 1}: {printable(text[:_LONGEST_TEXT])}")
        return found


def _string(arena: Arena, address: int) -> str:
    """The text at an address of the call's memory, up to its end or to where nothing may be read."""
    start = address - at.GLOBAL_BASE
    if not 0 <= start < arena.memory.size:
        return "(no text)"
    whole = arena.memory[start : start + _LONGEST_TEXT]
    ends = (whole == 0) | ((arena.flags[start : start + _LONGEST_TEXT] & at.READABLE) == 0)
    return whole[: int(ends.argmax()) if ends.any() else len(whole)].tobytes().decode("latin-1")


def _formatted(text: str, content: bytes, arena: Arena) -> str:
    """The format with its arguments; a directive whose bytes are not there is left as it is."""
    place = 0

    def one(found: re.Match[str]) -> str:
        nonlocal place
        flags, width, precision, length, kind = found.groups()
        if kind == "%":
            return "%"
        wide = kind in "fFeEgGaAps" or length in ("ll", "l", "z", "t", "j")
        size = 8 if wide else 4
        place = at.align_up(place, size)
        piece = content[place : place + size]
        place += size
        if len(piece) < size:
            return found[0]
        how = f"%{flags}{min(int(width or 0), _WIDEST) or ''}"
        how += "" if precision is None else f".{min(int(precision or 0), _WIDEST)}"
        if kind == "c":
            how = f"%{min(int(width or 0), _WIDEST) or ''}"
        return _value(how, kind, piece[: _SHORT.get(length, size)], arena)

    return _DIRECTIVE.sub(one, text)


def _value(how: str, kind: str, piece: bytes, arena: Arena) -> str:
    word = int.from_bytes(piece, "little", signed=kind in "di")
    if kind == "s":
        return (how + "s") % _string(arena, word)
    if kind == "c":
        return (how + "c") % (word & 0xFF)
    if kind == "p":
        return hex(word)
    if kind in "diouxX":
        return (how + kind.replace("u", "d")) % word
    number = struct.unpack("<d", piece)[0]
    return float(number).hex() if kind in "aA" else (how + kind) % number
