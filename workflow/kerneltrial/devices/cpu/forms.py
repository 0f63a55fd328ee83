"""What an entry of the instruction table is: a pattern of opcode and modifiers, operands, and how it is lowered.

A pattern is literal text with fields in braces, `{name:alternative|alternative|}`. An opcode must match one pattern
whole; what matches none is unsupported. Operands are words: `=` marks a destination, then a type (or the name of a
field that holds one). `name|pred?` may carry a second predicate destination, a trailing `?` marks what may be absent,
`#` an immediate integer, `[]` an address, `{}` a vector or a single register.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

Lower = Callable[..., Any]


@dataclass(frozen=True)
class Form:
    """One entry.

    A form that is not `raw` is a function of operand values: `lower(maker, fields, *values)` gives the results.
    A raw one does all by itself: `lower(generator, instruction, fields)`. `group` is the class it is counted in.
    `nan` says that a NaN result is the one canonical NaN; `sync` that threads wait for each other there, where each
    hands over up to `words` words. `carry` says whether it reads ("r") or writes ("w") the carry flag, `host` that
    it calls a function of `rounding`.
    """

    pattern: str
    operands: str
    lower: Lower
    group: str
    raw: bool = False
    nan: bool = False
    copies: bool = False
    sync: bool = False
    words: int = 1
    carry: str = ""
    host: bool = False

    @property
    def head(self) -> str:
        start = re.sub(r"^\{\w+:([^{}|]*)\}", r"\1", self.pattern)
        return re.split(r"[.{]", start, maxsplit=1)[0]

    @cached_property
    def expression(self) -> re.Pattern[str]:
        text = ""
        for literal, name, choices in re.findall(r"([^{}]+)|\{(\w+):([^{}]*)\}", self.pattern):
            if literal:
                text += re.escape(literal)
            else:
                text += f"(?P<{name}>{'|'.join(re.escape(choice) for choice in choices.split('|'))})"
        return re.compile(text)

    @cached_property
    def specs(self) -> tuple[str, ...]:
        return tuple(self.operands.split())

    def opcodes(self) -> list[str]:
        """Every opcode of the pattern, for tests and for the table in the documentation."""
        found = [""]
        for literal, _, choices in re.findall(r"([^{}]+)|\{(\w+):([^{}]*)\}", self.pattern):
            found = [f + choice for f in found for choice in ([literal] if literal else choices.split("|"))]
        return found


@dataclass(frozen=True)
class Match:
    """A form with the fields of one opcode."""

    form: Form
    fields: dict[str, str]

    def type_of(self, spec: str) -> str:
        """The PTX type that an operand's word names."""
        word = spec.lstrip("=").split("|")[0].rstrip("?")
        return self.fields.get(word, word).lstrip(".")
