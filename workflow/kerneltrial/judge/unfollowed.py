"""Conditions that hang on sizes alone in a way that `sizes` has no expression for: floats, counted bits, 64-bit wraps.

A loop's counter hangs on sizes too, and every case runs the loops that it can, so what goes through a loop is left out;
so are flags that are set on several ways, since the conditions of those ways are looked at themselves.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kerneltrial.judge.ptx import Statement
from kerneltrial.judge.sizes import Sizes

_PURE: Final = frozenset(
    """abs add addc and bfe bfi bfind brev clz cnot copysign cos cvt div dp2a dp4a ex2 fma fns lg2 lop3 mad mad24 madc
    max min mov mul mul24 neg not or popc prmt rcp rem rsqrt sad selp set setp shf shl shr sin slct sqrt sub subc szext
    tanh testp xor""".split()  # noqa: SIM905
)
_HARMLESS: Final = frozenset({"__assertfail", "vprintf"})


def unfollowed(body: Sequence[Statement], made: frozenset[str], sizes: Sizes) -> Iterator[Statement]:
    """Statements that compare, or hand to a function, what comes from sizes alone (`made`), and have no expression."""
    called = ""
    for statement in reversed(body):  # parameters stand before the call that they are for
        name = statement.opcode.split(".")[0]
        if name == "call":
            called = next((token for token in statement.tokens[1:] if token[0].isalpha() or token[0] in "_$"), "")
        elif statement.opcode.startswith("st.param"):
            if called not in _HARMLESS and not made.isdisjoint(*statement.operands[1:2]):
                yield statement
        elif name == "setp" and any(r in made and not _followed(sizes, r) for r in statement.operands[0]):
            yield statement


def _followed(sizes: Sizes, register: str) -> bool:
    if sizes.of(register) is not None:
        return True
    found = [other.of(register) for other, _ in sizes.chosen(register)]
    return bool(found) and None not in found


def made_of_sizes(body: Sequence[Statement], given: Mapping[str, object]) -> frozenset[str]:
    """Registers that are made from sizes and constants alone, without a loop: taken in an order in which each comes
    behind all that it is made of, so that what waits for itself is never taken."""
    missing: defaultdict[str, int] = defaultdict(int)
    users: defaultdict[str, list[str]] = defaultdict(list)
    written = {register for statement in body for register in statement.written}
    for statement in body:
        sources = set().union(*statement.operands[1:]) | ({statement.guard} if statement.guard else set())
        waits = [name for name in sources if name not in given]
        opcode = statement.opcode
        pure = opcode.split(".")[0] in _PURE or (opcode.startswith("ld.param") and not waits)
        for register in statement.written:
            missing[register] += len(waits) + (0 if pure and written.issuperset(waits) else 1)
            for name in waits:
                users[name].append(register)
    new = [register for register in written if not missing[register]]
    found = set(new)
    while new:
        for user in users[new.pop()]:
            missing[user] -= 1
            if not missing[user]:
                found.add(user)
                new.append(user)
    return frozenset(found)
