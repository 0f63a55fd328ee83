"""What hangs on sizes alone in a way that `sizes` has no expression for: floats, counted bits, tables, other threads.

A loop's counter hangs on sizes too, and every case runs the loops that it can, so what counts in a loop is left out
(what is mixed there is not: `mixed`); so are flags that are set on several ways, since the conditions of those ways
are looked at themselves.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from kerneltrial.judge.arithmetic import COUNTED, LOWERED, WIDTHS
from kerneltrial.judge.floats import turns
from kerneltrial.judge.ptx import Statement, is_name
from kerneltrial.judge.sizes import Sizes

PURE: Final = frozenset(
    """abs add addc and bfe bfi bfind brev clz cnot copysign cos cvt div dp2a dp4a ex2 fma fns lg2 lop3 mad mad24 madc
    max min mov mul mul24 neg not or popc prmt rcp rem rsqrt sad selp set setp shf shl shr sin slct sqrt sub subc szext
    tanh testp xor""".split()  # noqa: SIM905
)
_HARMLESS: Final = frozenset({"__assertfail", "vprintf"})
_SMOOTH: Final = frozenset({"cvt", "div", "mov", "mul", "neg", "rcp", "rsqrt", "selp", "setp", "sqrt"})
"""What honest kernels do with a size that became a float: no step, no sum that is zero at one size alone. Where one of
a constant is zero is known (`floats`)."""
_ELSEWHERE: Final = frozenset({"bra", "brx", "call", "ld", "ldu", "ret", "exit"})  # told of by other rules, or nothing
_HEARD_BY_NONE: Final = frozenset({"bar", "barrier", "mbarrier", "cp", "nanosleep"})
"""What takes a size and hands none on: how many threads or bytes are waited for, how many are copied."""


class Unfollowed(NamedTuple):
    """A statement, and what it does with sizes that is not followed."""

    statement: Statement
    does: str


def unfollowed(body: Sequence[Statement], made: Mapping[str, bool], sizes: Sizes) -> Iterator[Unfollowed]:
    """Statements that compare what comes from sizes alone and has no expression, look up what lies at a place that
    sizes say, hand a size to a function, to memory or to other threads, or reckon with sizes as honest kernels do not.
    `made` is what `made_of_sizes` found."""
    called = ""
    for statement in reversed(body):  # parameters stand before the call that they are for
        name, *modifiers = statement.opcode.split(".")
        handed = any(made.get(register) for register in set().union(*statement.operands[1:]))
        if name == "call":
            called = next((token for token in statement.tokens[1:] if token[0].isalpha() or token[0] in "_$"), "")
            if handed:  # by hand: compilers pass all in `.param`
                yield Unfollowed(statement, "hands a size to a function")
        elif name == "st" and modifiers[:1] == ["param"]:
            if called not in _HARMLESS and handed:
                yield Unfollowed(statement, "hands a size to a function")
        elif handed:
            does = _does(statement, made, sizes)
            if does:
                yield Unfollowed(statement, does)


def _does(statement: Statement, made: Mapping[str, bool], sizes: Sizes) -> str:
    """What a statement that reads something made of sizes does with it, if that is not followed; else nothing."""
    name, *modifiers = statement.opcode.split(".")
    if name == "setp":
        return "compares what it makes of sizes" if _strange(statement, made, sizes) else ""
    if name in ("ld", "ldu"):
        return "loads from a place made of sizes" if modifiers[:1] != ["param"] else ""
    if name not in PURE:
        unheard = name in _HEARD_BY_NONE and "red" not in modifiers
        ticket = name == "atom" and {"inc", "global"} <= {*modifiers}  # as where a counter is compared with a size
        quiet = unheard or ticket or name in _ELSEWHERE or name.startswith(".")
        if quiet or not _passes_on(statement, made):
            return ""
        return f"hands a size to {statement.opcode}"
    if any("f" in modifier and modifier[-1].isdigit() for modifier in modifiers):  # f32, bf16x2, and tf32
        return f"reckons with sizes by {statement.opcode}" if _steps(statement, made, sizes) else ""
    unknown = name not in LOWERED or "cc" in modifiers or (modifiers[:1] == ["hi"] and WIDTHS.get(modifiers[-1]) == 64)
    unknown = unknown or (name in COUNTED and not all(_followed(sizes, register) for register in statement.written))
    return f"reckons with sizes by {statement.opcode}" if unknown and _makes(statement, made) else ""


def _passes_on(statement: Statement, made: Mapping[str, bool]) -> bool:
    """Whether a value that it takes, and no address, is made of sizes."""
    parts = (names for part, names in zip(statement.parts[1:], statement.operands[1:], strict=True) if "[" not in part)
    return any(made.get(name) for names in parts for name in names)


def _steps(statement: Statement, made: Mapping[str, bool], sizes: Sizes) -> bool:
    """Whether floats are made of sizes otherwise than smoothly, become integers again, are an integer's bits, or come
    from an integer that is not followed."""
    name, *modifiers = statement.opcode.split(".")
    if name == "cvt":
        there, back = ([kind in WIDTHS for kind in modifiers[-2:]] == way for way in ([False, True], [True, False]))
        lost = there and not all(_followed(sizes, name) for name in statement.operands[1])
        return (back or lost or "sat" in modifiers) and _makes(statement, made)
    bits = any(made.get(r) and sizes.of(r) is not None for names in statement.operands[1:3] for r in names)
    smooth = name in _SMOOTH and "sat" not in modifiers
    return bits or (not smooth and _makes(statement, made) and turns(statement, sizes) is None)


def _makes(statement: Statement, made: Mapping[str, bool]) -> bool:
    return any(made.get(register) for register in statement.written)


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
        read = sources(statement, given)
        waits = [name for name in read if name not in given and name not in tables]
        opcode = statement.opcode
        pure = opcode.split(".")[0] in PURE or (opcode.startswith("ld.param") and not waits)
        for register in statement.written:
            missing[register] += len(waits) + (0 if pure and written.issuperset(waits) else 1)
            if any(name in given for name in read):
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


def sources(statement: Statement, given: Collection[str]) -> set[str]:
    """Names that a statement reads; of a part such as `%v.x` the whole, unless that is a register of its own."""
    tokens = {token for part in statement.parts[1:] for token in part if is_name(token)}
    tokens |= {statement.guard} if statement.guard else set()
    return {token if token in given else token.partition(".")[0] for token in tokens}
