"""What a kernel computes from sizes alone: registers of PTX as expressions in the contract's dimensions.

A register that one unguarded instruction writes, from parameters that the plan gives as integers, the sizes of the
launch and constants, has an expression; everything else (loop counters, what depends on the thread, loaded values,
floats) has none. Registers hold numbers of their width as two's complements: what may leave the signed range over the
contract's domain is wrapped in the expression too.
"""

import ast
import copy
import itertools
import math
from collections import ChainMap
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import replace
from typing import Final

from kerneltrial.inputs.spans import Cell, Span, span_of
from kerneltrial.judge.arithmetic import (
    COMPARED,
    LOWERED,
    SOURCES,
    WIDTHS,
    Arithmetic,
    Expression,
    binary,
    joined,
    negated,
    number,
    wrapped,
)
from kerneltrial.judge.ptx import Statement

_SIZE: Final = 160  # nodes of an expression: they are walked as trees, and a kernel can square one again and again
_NESTED: Final = 40  # levels of an expression, which is walked by recursion
_CHOICES: Final = 8  # among instructions that write the same registers
_TRIED: Final = 8192  # such choices, and looks for some, of one entry: thousands of registers can hang on the same few
_DEPTH: Final = 120  # instructions from a parameter to a register

Tokens = tuple[str, ...]


class Sizes:
    """The expressions of one entry's registers, for one launch of it; worked out when they are asked for.

    `given`: expressions by the name of a parameter that holds an integer, and of registers such as `%ntid.x`.
    """

    def __init__(self, body: Sequence[Statement], given: Mapping[str, Expression], domain: Cell) -> None:
        self._given, self._domain = given, domain
        self._written: MutableMapping[str, list[Statement]] = {}
        for statement in body:
            for register in statement.written:
                self._written.setdefault(register, []).append(statement)
        self._known: dict[str, Expression | None] = {}
        self._depth = 0
        self._tried = 0

    def chosen(self, register: str) -> Iterator[tuple["Sizes", tuple[Statement, ...]]]:
        """What there is for a register that hangs on others which several instructions write: for each choice among
        those instructions, expressions as if no others were there. Nothing where there are many choices, or were."""
        if self._tried >= _TRIED:
            return
        self._tried += 1
        several = self._several(register)
        ways = [self._written[name] for name in several]
        if not several or math.prod(map(len, ways)) > _CHOICES:
            return
        for choice in itertools.product(*ways):
            self._tried += 1
            other = copy.copy(self)
            alone = ([replace(one, guard="")] for one in choice)
            other._written = ChainMap(dict(zip(several, alone, strict=True)), self._written)
            other._known = {}
            yield other, choice

    def _several(self, register: str) -> list[str]:
        """The registers that several instructions write, or one under a guard, among all that one is made of; one alone
        where so many write it that there is no choosing."""
        found: list[str] = []
        seen, new = {register}, [register]
        while new and len(seen) < _DEPTH:
            name = new.pop()
            statements = self._written.get(name, [])
            if len(statements) > _CHOICES:
                return [name]
            found += [name] if len(statements) > 1 or any(each.guard for each in statements) else []
            sources = (source for each in statements for part in each.operands[1:] for source in part)
            for source in itertools.islice(sources, _DEPTH):  # no instruction that an assembler takes has as many
                if source not in seen:
                    seen.add(source)
                    new.append(source)
        return found

    def of(self, register: str) -> Expression | None:
        """The expression of a register, or None; a predicate's is 0 or 1."""
        if register not in self._known:
            self._known[register] = None  # while it is being worked out: a loop through itself has none
            statements = self._written.get(register, [])
            if len(statements) == 1 and not statements[0].guard and self._depth < _DEPTH:
                self._depth += 1
                self._known[register] = self._small(self._result(statements[0]))
                self._depth -= 1
        return self._known[register]

    def writer(self, register: str) -> Statement | None:
        """The one instruction that writes a register, whatever the rest of the code does."""
        statements = self._written.get(register, [])
        return statements[0] if len(statements) == 1 and not statements[0].guard else None

    def span(self, node: Expression) -> Span:
        """The values that an expression can have over the domain."""
        return span_of(node, self._domain)

    def _small(self, node: Expression | None) -> Expression | None:
        """The expression where it is small enough; a number where it can be one alone."""
        if node is None or sum(1 for _ in ast.walk(node)) > _SIZE or _deeper(node, _NESTED):
            return None
        span = span_of(node, self._domain)
        return number(span.low) if span.low == span.high else node

    def _result(self, statement: Statement) -> Expression | None:
        name, *modifiers = statement.opcode.split(".")
        if name == "ld" and modifiers[:1] == ["param"]:
            return self._parameter(statement.parts[1:])
        if name == "setp":
            return self._compared(modifiers, statement.parts)
        if modifiers[-1:] == ["pred"]:
            return self._logic(name, statement.parts)
        width = WIDTHS.get(modifiers[-1]) if modifiers else None
        lowered = LOWERED.get(name)
        if width is None or lowered is None or len(statement.parts) != 1 + SOURCES.get(name, 2) or "sat" in modifiers:
            return None
        signed = modifiers[-1][0] != "u" or name == "mov" or (name == "cvt" and _narrows(modifiers))
        widths = (width, width, 2 * width if "wide" in modifiers else width)
        operands = [self._operand(part, w, signed) for part, w in zip(statement.parts[1:], widths, strict=False)]
        return lowered(Arithmetic(self._domain, modifiers, width, signed), operands)

    def _parameter(self, operands: Sequence[Tokens]) -> Expression | None:
        words = [token for token in operands[0] if token not in "[]"] if len(operands) == 1 else []
        return self._given.get(words[0]) if len(words) == 1 else None

    def _operand(self, part: Tokens, width: int, signed: bool) -> Expression | None:
        """One source as a number of `width` bits, signed or not."""
        if not part:
            return None
        if part[-1][0].isdigit():
            value = _constant(part)
            node = None if value is None else number(wrapped(value, width))
        elif len(part) == 1:
            node = self._given[part[0]] if part[0] in self._given else self.of(part[0])
        else:
            node = None
        if node is None or signed or span_of(node, self._domain).low >= 0:
            return node
        return None if width > 32 else binary(ast.Mod(), node, number(1 << width))

    def _predicate(self, part: Tokens) -> Expression | None:
        if part and part[-1][0].isdigit():
            value = _constant(part)
            return None if value is None else number(int(value != 0))
        if len(part) == 2 and part[0] == "!":
            inner = self.of(part[1])
            return None if inner is None else negated(inner)
        return self.of(part[0]) if len(part) == 1 else None

    def _compared(self, modifiers: Sequence[str], parts: Sequence[Tokens]) -> Expression | None:
        kind = modifiers[-1]
        if kind not in WIDTHS or modifiers[0] not in COMPARED or len(parts[0]) != 1:
            return None
        if (len(modifiers), len(parts)) not in ((2, 3), (3, 4)):
            return None  # no such instruction: what is asked for here was never read by an assembler
        signed = kind[0] != "u" and modifiers[0] not in ("lo", "ls", "hi", "hs")
        left, right = (self._operand(part, WIDTHS[kind], True) for part in parts[1:3])
        if left is None or right is None:
            return None
        found = self._comparison(COMPARED[modifiers[0]], left, right, WIDTHS[kind], signed)
        if found is None:
            return None
        if len(parts) == 3:
            return found
        other = self._predicate(parts[3])
        return None if other is None else joined(modifiers[1], found, other)

    def _comparison(
        self, op: type[ast.cmpop], left: Expression, right: Expression, width: int, signed: bool
    ) -> Expression | None:
        """Unsigned, a negative number is larger than all others: two comparisons say so more plainly than a wrap."""
        plain = ast.Compare(left, [op()], [right])
        low, other_low = (span_of(side, self._domain).low for side in (left, right))
        if signed or op in (ast.Eq, ast.NotEq) or (low >= 0 and other_low >= 0):
            return plain
        if other_low >= 0:
            below = op in (ast.Lt, ast.LtE)
            sign = ast.Compare(left, [ast.GtE() if below else ast.Lt()], [number(0)])
            return ast.BoolOp(ast.And() if below else ast.Or(), [sign, plain])
        if width > 32:
            return None
        wrap = [binary(ast.Mod(), side, number(1 << width)) for side in (left, right)]
        return ast.Compare(wrap[0], [op()], [wrap[1]])

    def _logic(self, name: str, parts: Sequence[Tokens]) -> Expression | None:
        sources = [self._predicate(part) for part in parts[1:]]
        if any(source is None for source in sources) or len(sources) != (1 if name in ("mov", "not") else 2):
            return None
        known = [source for source in sources if source is not None]
        if name == "mov":
            return known[0]
        if name == "not":
            return negated(known[0])
        return joined(name, *known) if len(known) == 2 else None


def _deeper(node: Expression, levels: int) -> bool:
    here: list[ast.AST] = [node]
    for _ in range(2 * levels):  # an operator's node has its operands' depth
        here = [part for each in here for part in ast.iter_child_nodes(each)]
    return bool(here)


def _narrows(modifiers: Sequence[str]) -> bool:
    """Whether a conversion keeps the low bits, whatever sign they had."""
    return len(modifiers) == 2 and WIDTHS.get(modifiers[0], 64) <= WIDTHS.get(modifiers[1], 0)


def _constant(part: Tokens) -> int | None:
    text = part[-1].rstrip("U")
    if text[:1] == "0" and text[1:].isdigit():
        return None  # octal
    try:
        value = int(text, 16 if text[:2] in ("0x", "0X") else 10)
    except ValueError:
        return None
    return {1: value, 2: -value}.get(len(part)) if part[0] == "-" or len(part) == 1 else None
