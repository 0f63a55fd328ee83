"""Products and sums that the assembler may fuse, fused as it does.

PTX leaves `mul` followed by `add` or `sub` open where none says how it rounds (`mul.f32`, not `mul.rn.f32`): the
assembler may make one fused multiply-add of them, which rounds once. ptxas does so where the product is read once,
in the same basic block, and of two products it takes the first; the corpus agrees with an H200 that way and no other.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

from kerneltrial.devices.cpu.blocks import Block, Step, step_of
from kerneltrial.devices.cpu.forms import Form, Match
from kerneltrial.devices.cpu.ir import Body
from kerneltrial.devices.cpu.lower_float import LLVM
from kerneltrial.devices.cpu.syntax import Instruction, Operand, Register

_SUFFIXES = ("f32", "ftz.f32", "f64")
_PRODUCTS = {f"mul.{suffix}": suffix for suffix in _SUFFIXES}
_SUMS = {f"{word}.{suffix}": (word, suffix) for word in ("add", "sub") for suffix in _SUFFIXES}


def contract(blocks: list[Block]) -> None:
    """Fuse within each block; the product's own step goes."""
    written = Counter(register for block in blocks for step in block.steps for register in step.writes)
    read = Counter(register for block in blocks for step in block.steps for register in step.reads)
    for block in blocks:
        _contract(block, {r for r in read if read[r] == 1 and written[r] == 1})


def _contract(block: Block, once: set[int]) -> None:
    products: dict[int, int] = {}
    gone: set[int] = set()
    for place, step in enumerate(block.steps):
        instruction = step.instruction
        if instruction.guard is None and instruction.opcode in _SUMS:
            found = _product_of(block, products, step)
            if found is not None:
                at, second = found
                block.steps[place] = _fused(block.steps[at].instruction, instruction, second)
                gone.add(at)
        for register in step.writes:
            products = {p: at for p, at in products.items() if register not in block.steps[at].reads}
        if instruction.guard is None and instruction.opcode in _PRODUCTS:
            products |= {register: place for register in step.writes if register in once}
    block.steps = [step for place, step in enumerate(block.steps) if place not in gone]


def _product_of(block: Block, products: dict[int, int], step: Step) -> tuple[int, bool] | None:
    """Where the product that a sum takes is made, and whether it is the sum's second operand."""
    _, suffix = _SUMS[step.instruction.opcode]
    for second, operand in enumerate(step.instruction.operands[1:]):
        if isinstance(operand, Register) and operand.index in products:
            at = products[operand.index]
            if _PRODUCTS[block.steps[at].instruction.opcode] == suffix:
                return at, bool(second)
    return None


def _fused(product: Instruction, total: Instruction, second: bool) -> Step:
    word, suffix = _SUMS[total.opcode]
    other: Operand = total.operands[1 if second else 2]
    operands = (total.operands[0], *product.operands[1:], other)
    fused = replace(total, opcode=f"fma.rn.{suffix}", operands=operands)
    step = step_of(fused)
    if word == "sub":
        step.match = _with_sign(step.match, 0 if second else 2)
    return step


def _with_sign(match: Match, place: int) -> Match:
    """The fused form with one of its three operands negated."""
    plain = match.form

    def lower(b: Body, fields: dict[str, str], *values: str) -> Any:
        ready = list(values)
        ready[place] = b.op(f"fneg {LLVM[fields['t']]} {ready[place]}")
        return plain.lower(b, fields, *ready)

    return Match(Form(plain.pattern, plain.operands, lower, plain.group, nan=plain.nan), match.fields)
