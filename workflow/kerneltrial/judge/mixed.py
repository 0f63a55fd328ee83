"""What a loop mixes out of sizes alone: a greatest common divisor, a hash, a sequence.

A loop that counts takes all that it can take in some case, since far shapes go to the ends of the domain. One that
divides or multiplies what it made the last time may end at a number that one size alone gives, and what is then done
with that number no case shows.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from kerneltrial.judge.ptx import Statement
from kerneltrial.judge.unfollowed import PURE, Unfollowed, sources

_COUNTS: Final = frozenset({"add", "cvt", "max", "min", "mov", "neg", "selp", "setp", "sub"})
_BY_A_NUMBER: Final = frozenset({"shl", "shr", "xor"})  # halves of a tree, the other of two buffers


def mixed(
    body: Sequence[Statement], given: Collection[str], made: Mapping[str, bool], tables: Collection[str] = ()
) -> Iterator[Unfollowed]:
    """Statements by which a register that hangs on itself changes otherwise than a counter, where a size is in it.

    `given` are the sizes' names, without those that are one number; `made` is what `made_of_sizes` found.
    """
    known = {*given, *tables, *made}
    alone = _of_sizes_alone(body, known)
    uses: defaultdict[str, set[str]] = defaultdict(set)
    writing: defaultdict[str, list[Statement]] = defaultdict(list)
    for statement in body:
        for register in statement.written & alone:
            uses[register] |= sources(statement, given)
            writing[register].append(statement)
    sized = _with_sizes(uses, {*given, *(name for name in made if made[name])})
    for circle in _circles({register: uses[register] & alone for register in alone}):
        if circle & sized:
            changes = [statement for register in sorted(circle) for statement in writing[register]]
            for statement in dict.fromkeys(changes):
                if _mixes(statement, circle, given):
                    yield Unfollowed(statement, f"mixes sizes in a loop by {statement.opcode}")


def _mixes(statement: Statement, circle: set[str], given: Collection[str]) -> bool:
    inside = sources(statement, given) & circle
    name, *modifiers = statement.opcode.split(".")
    if not inside:
        return False
    if name in _BY_A_NUMBER:
        return not (len(statement.parts) == 3 and statement.parts[2] and statement.parts[2][-1][0].isdigit())
    both = name == "sub" and len(inside - {statement.guard}) > 1  # by turns, as Euclid did; numba's ranges add so
    return both or name not in _COUNTS or any(modifier[:1] == "f" for modifier in modifiers)


def _with_sizes(uses: Mapping[str, set[str]], named: Collection[str]) -> set[str]:
    """The names themselves, and registers that one of them is in, loops and all."""
    users: defaultdict[str, set[str]] = defaultdict(set)
    for register, read in uses.items():
        for name in read:
            users[name].add(register)
    return _reached(users, named)


def _of_sizes_alone(body: Sequence[Statement], known: Collection[str]) -> set[str]:
    """Registers that nothing but sizes, constants and each other is in, less those that are no part of a loop."""
    users: defaultdict[str, set[str]] = defaultdict(set)
    written = {register for statement in body for register in statement.written}
    other: set[str] = set()
    for statement in body:
        pure = statement.opcode.split(".")[0] in PURE or statement.opcode.startswith("ld.param")
        for register in statement.written:
            for source in sources(statement, known):
                users[source].add(register)
                pure = pure and (source in written or source in known)
            if not pure:
                other.add(register)
    return written - _reached(users, other) - set(known)


def _reached(users: Mapping[str, set[str]], begun: Collection[str]) -> set[str]:
    """What some names get to, themselves among it, from each name to those that read it."""
    found = set(begun)
    new = list(found)
    while new:
        further = users.get(new.pop(), set()) - found
        found |= further
        new += further
    return found


def _circles(uses: Mapping[str, set[str]]) -> Iterator[set[str]]:
    """Registers that hang on each other, after Tarjan, "Depth-First Search and Linear Graph Algorithms"."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    open_ones: set[str] = set()
    for start in uses:
        work = [] if start in number else [(start, iter(sorted(uses[start])))]
        while work:
            name, left = work[-1]
            if name not in number:
                number[name] = low[name] = len(number)
                path.append(name)
                open_ones.add(name)
            source = next(left, None)
            if source is not None:
                if source not in number:
                    work.append((source, iter(sorted(uses[source]))))
                elif source in open_ones:
                    low[name] = min(low[name], number[source])
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[name])
            if low[name] == number[name]:
                circle: set[str] = set()
                while name not in circle:
                    circle.add(path.pop())
                open_ones -= circle
                if len(circle) > 1 or name in uses[name]:
                    yield circle
