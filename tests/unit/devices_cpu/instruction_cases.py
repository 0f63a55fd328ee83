"""Every entry of the table that computes values from values, by types, with operands drawn for it."""

import random
from dataclasses import dataclass

from ptx_models import FORMATS, WIDTH

from kerneltrial.devices.cpu import table
from kerneltrial.devices.cpu.forms import Form

ROWS = 220
_SPECIAL_FLOATS = {
    "f32": [0, 1, 0x7FFFFF, 0x800000, 0x3F800000, 0x3F7FFFFF, 0x3F000000, 0x7F7FFFFF, 0x7F800000, 0x7F800001,
    0x7FC12345,
            0x7FFFFFFF, 0x4F000000, 0x4EFFFFFF, 0x5F000000, 0x3FC00000, 0x40200000, 0x33800000, 0x00000002],
    "f64": [0, 1, 0xFFFFFFFFFFFFF, 1 << 52, 0x3FF << 52, 0x3FE << 52, (0x7FF << 52) - 1, 0x7FF << 52, (0x7FF << 52) + 1,
            0x7FF8000000001234, 0x41DFFFFFFFC00000, 0x41E0000000000000, 0x43E0000000000000, 0x3FF8000000000000,
            0x36A0000000000000, 0x3690000000000000, 0x47EFFFFFE0000000, 0x47EFFFFFF0000000, 0x380FFFFFE0000000],
    "f16": [0, 1, 2, 0x3FF, 0x400, 0x3C00, 0x3BFF, 0x3C01, 0x7BFF, 0x7C00, 0x7C01, 0x7E00, 0x1400, 0x0400],
    "bf16": [0, 1, 2, 0x7F, 0x80, 0x3F80, 0x3F7F, 0x3F81, 0x7F7F, 0x7F80, 0x7F81, 0x7FC1, 0x2000, 0x1F80, 0x0080],
}  # fmt: skip


def value(draw: random.Random, t: str) -> int:
    """A bit pattern of type `t`: often a special one."""
    if t == "pred":
        return draw.getrandbits(1)
    width = WIDTH[t]
    choice = draw.random()
    if t.endswith("x2"):
        return value(draw, t[:-2]) | value(draw, t[:-2]) << 16
    if t in FORMATS:
        sign = draw.getrandbits(1) << (width - 1)
        if choice < 0.4:
            return draw.choice(_SPECIAL_FLOATS[t]) | sign
        if choice < 0.7:
            f = FORMATS[t]
            exponent = f.highest + draw.randint(-12, 40 if width > 16 else 6)
            return exponent << f.fraction | draw.getrandbits(f.fraction) | sign
        return draw.getrandbits(width)
    if choice < 0.25:
        return draw.choice([0, 1, 2, width - 1, width, width + 1, 31, 32, 33, 63, 64, 255]) & ((1 << width) - 1)
    if choice < 0.5:
        edge = 1 << draw.randrange(width)
        return (edge + draw.randint(-1, 1)) & ((1 << width) - 1)
    if choice < 0.6:
        return -draw.randint(1, 100) & ((1 << width) - 1)
    return draw.getrandbits(width)


@dataclass(frozen=True)
class Case:
    """Opcodes of one form with the same types, so that one kernel runs them all."""

    name: str
    opcodes: tuple[str, ...]
    form: Form

    @property
    def results(self) -> list[str]:
        match = table.find(self.opcodes[0])
        assert match is not None
        first = self.form.specs[0]
        return [match.type_of(first), *(["pred"] if "|" in first else [])]

    @property
    def sources(self) -> list[str]:
        match = table.find(self.opcodes[0])
        assert match is not None
        return [match.type_of(s) for s in self.form.specs[1:] if s != "#"]

    def operands(self) -> tuple[list[list[int]], list[int]]:
        """Columns of operands, and the immediates that end the list."""
        draw = random.Random(self.name)
        columns = [[value(draw, t) for _ in range(ROWS)] for t in self.sources]
        return columns, [draw.randrange(256) for s in self.form.specs if s == "#"]

    def parts(self) -> list[list[str]]:
        """The opcodes, so many as one kernel takes."""
        return [list(self.opcodes[start : start + 24]) for start in range(0, len(self.opcodes), 24)]


def cases(approximate: bool = False) -> list[Case]:
    """All cases; approximate instructions only where they are asked for, and then only they."""
    groups: dict[tuple[str, ...], tuple[list[str], Form]] = {}
    for form in table.FORMS:
        if form.raw or (form.group == "special") != approximate:
            continue
        for opcode in form.opcodes():
            match = table.find(opcode)
            assert match is not None
            assert match.form is form, f"{opcode} is in the table twice"
            types = tuple(match.type_of(s) if s != "#" else s for s in form.specs)
            key = (form.head, *types, *form.specs)
            groups.setdefault(key, ([], form))[0].append(opcode)
    return [Case(" ".join(key), tuple(opcodes), form) for key, (opcodes, form) in groups.items()]
