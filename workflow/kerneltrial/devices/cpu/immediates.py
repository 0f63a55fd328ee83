"""Constants of instructions as bit patterns."""

import struct

from kerneltrial.devices.cpu.refusals import unsupported_instruction
from kerneltrial.devices.cpu.syntax import Immediate


def immediate_bits(operand: Immediate, width: int, type_: str) -> int:
    """The bit pattern of a constant in `width` bits."""
    if operand.kind == "decimal" or (operand.kind == "f64" and type_ == "f32"):
        value = float(operand.value)
        if operand.kind == "f64":
            value = struct.unpack("<d", struct.pack("<Q", int(operand.value)))[0]
        try:
            packed = struct.pack("<f" if width == 32 else "<d", value)
        except OverflowError:
            raise unsupported_instruction(f"constant {value}") from None
        return int.from_bytes(packed, "little")
    if operand.kind in ("f32", "f64") and width != int(operand.kind[1:]):
        raise unsupported_instruction(f"a constant of type {operand.kind} as {type_ or width}")
    return int(operand.value) & ((1 << width) - 1)


def signed(value: int, width: int) -> int:
    """A pattern of `width` bits as LLVM writes it."""
    if width == 1:
        return value & 1
    return value - (1 << width) if value >> (width - 1) else value
