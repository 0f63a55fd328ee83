"""Conditions that hang on sizes alone in a way that `sizes` has no expression for: floats, counted bits, tables.

A loop's counter hangs on sizes too, and every case runs the loops that it can, so what goes through a loop is left out;
so are flags that are set on several ways, since the conditions of those ways are looked at themselves.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from kerneltrial.judge.ptx import Statement, is_name
from kerneltrial.judge.sizes import Sizes

_PURE: Final = frozenset(
    """abs add addc and bfe bfi bfind brev clz cnot copysign cos cvt div dp2a dp4a ex2 fma fns lg2 lop3 mad mad24 madc
    max min mov mul mul24 neg not or popc prmt rcp rem rsqrt sad selp set setp shf shl shr sin slct sqrt sub subc szext
    tanh testp xor""".split()  # noqa: SIM905
)
_HARMLESS: Final = frozenset({"__assertfail", "vprintf"})


def unfollowed(body: Sequence[Statement], made: Mapping[str, bool], sizes: Sizes) -> Iterator[Statement]:
    """Statements that compare what comes from sizes alone and has no expression, look up what lies at a place that
    sizes say, or hand a size to a function. `made` is what `made_of_sizes` found."""
    called = ""
    for statement in reversed(body):  # parameters stand before the call that they are for
        name, *modifiers = statement.opcode.split(".")
        handed = any(made.get(register) for register in set().union(*statement.operands[1:]))
        if name == "call":
            called = next((token for token in statement.tokens[1:] if token[0].isalpha() or token[0] in "_$"), "")
        elif name == "st" and modifiers[:1] == ["param"]:
            if called not in _HARMLESS and handed:
                yield statement
        elif handed and (_looks_up(name, modifiers) if name != "setp" else _strange(statement, made, sizes)):
            yield statement


def _looks_up(name: str, modifiers: Sequence[str]) -> bool:
    return name in ("ld", "ldu") and modifiers[:1] != ["param"]


def _strange(compares: Statement, made: Mapping[str, bool], sizes: Sizes) -> bool:
    return any(register in made and not _followed(sizes, register) for register in compares.operands[0])


def _followed(sizes: Sizes, register: str) -> bool:
    if sizes.of(register) is not None:
        return True
    found = [other.of(register) for other, _ in sizes.chosen(register)]
    return bool(found) and None not in found


def made_of_sizes(body: Sequence[Statement], given: Collection[str], tables: Collection[str] = ()) -> dict[str, bool]:
    """Registers that are made from sizes (`given`), constants and addresses of `tables` alone, without a loop; and
    whether a size is in them.

    Taken in an order in which each comes behind all that it is made of, so that what waits for itself is never taken.
    """
    missing: defaultdict[str, int] = defaultdict(int)
    users: defaultdict[str, list[str]] = defaultdict(list)
    sized: set[str] = set()
    written = {register for statement in body for register in statement.written}
    for statement in body:
        sources = _sources(statement, given)
        waits = [name for name in sources if name not in given and name not in tables]
        opcode = statement.opcode
        pure = opcode.split(".")[0] in _PURE or (opcode.startswith("ld.param") and not waits)
        for register in statement.written:
            missing[register] += len(waits) + (0 if pure and written.issuperset(waits) else 1)
            if any(name in given for name in sources):
                sized.add(register)
            for name in waits:
                users[name].append(register)
    new = [register for register in written if not missing[register]]
    found = dict.fromkeys(new, False)
    while new:
        register = new.pop()
        found[register] = register in sized
        for user in users[register]:
            if register in sized:
                sized.add(user)
            missing[user] -= 1
            if not missing[user]:
                found[user] = False
                new.append(user)
    return found


def _sources(statement: Statement, given: Collection[str]) -> set[str]:
    """Names that a statement reads; of a part such as `%v.x` the whole, unless that is a register of its own."""
    tokens = {token for part in statement.parts[1:] for token in part if is_name(token)}
    tokens |= {statement.guard} if statement.guard else set()
    return {token if token in given else token.partition(".")[0] for token in tokens}
