"""Whether two binaries are one kernel under two names: a copy of the baseline is no second opinion on the oracle.

Whatever the source calls its kernels, arguments and variables, and however it is laid out, the compiler makes the same
code of it; names of symbols alone differ. Code that says the same in another way is not noticed: people read sources.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

from kerneltrial.build.cubin import codes
from kerneltrial.devices.device import Binary
from kerneltrial.judge.ptx import Statement, functions, is_name, statements

_VALUE: Final = re.compile(r"=([^;]*);")  # what a variable of a module begins with; instructions have no `=`


def same_code(one: Binary, other: Binary) -> bool:
    """Whether all functions of `one` are among those of `other`, but for the names of symbols.

    PTX is compared where both have some, machine code where one was given without.
    """
    if one.ptx and other.ptx:
        if one.ptx == other.ptx:
            return True
        try:
            mine, others = _bodies(one.ptx), _bodies(other.ptx)
        except ValueError:  # text that cannot be read has no parts to compare
            return False
        return bool(mine) and mine <= others and _values(one.ptx) <= _values(other.ptx)
    if not (one.cubin and other.cubin):
        return False
    found = codes(one.cubin)
    return bool(found) and found <= codes(other.cubin)


def _bodies(ptx: str) -> set[tuple[tuple[str, ...], ...]]:
    return {
        _renamed(header, body)
        for header, body in functions(statements(ptx))
        if header is not None and header.opcode != ".section"
    }


def _renamed(header: Statement, body: Sequence[Statement]) -> tuple[tuple[str, ...], ...]:
    """The body's tokens, with symbols numbered in the order in which they are first named, parameters first.

    Of the header, bounds on a launch say nothing of what is worked out, and types show where parameters are read.
    """
    numbers: dict[str, str] = {}

    def number(token: str) -> str:
        return numbers.setdefault(token, f"symbol {len(numbers)}")

    for token in filter(is_name, header.tokens[1:]):
        number(token)
    named = {token for statement in body for token in statement.tokens[1:]}
    return tuple(_tokens(statement, number, named) for statement in body)


def _tokens(statement: Statement, number: Callable[[str], str], named: set[str]) -> tuple[str, ...]:
    """Labels, guard and tokens; registers, opcodes, directives and numbers are as they are.

    Labels that nothing jumps to belong to line tables. A read by way of the read-only cache is a read (`__restrict__`).
    """
    labels = [number(label) for label in statement.labels if label in named]
    rest = [number(t) if is_name(t) and not t.startswith("%") else t for t in statement.tokens[1:]]
    return (*labels, "!" * statement.negated + statement.guard, statement.opcode.replace(".nc", ""), *rest)


def _values(ptx: str) -> set[str]:
    return {" ".join(value.split()) for value in _VALUE.findall(ptx)}
