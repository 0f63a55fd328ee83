"""A first look at PTX before anything runs: what a kernel of a trial should not do, found by parsing.

What is found belongs to a topic of `records.screening`, whose policy says what follows:

- `module_state`: module-scope memory in the `.global` space that is used in any way but read by plain loads (state
  that outlives a call); the same in `.const`, where a generic address of it is made (else `ld.const` alone reaches it).
- `clock`, `launch_identity`: registers by which a kernel can tell one call from another: clocks and performance
  counters; the grid's number, the graph that it is launched from.
- `unknown_function`: functions that the module does not define (`vprintf`, `malloc`, a launch from the device).
- `trap`: what stops the grid or speaks to a tool: `trap`, a failed `assert`, `brkpt`, `pmevent`. It can fake no answer,
  and the toolkit's own code has it where a grid meets. `discard`: what destroys data in the cache.
- `cache_policy`: what keeps data in the L2 for a later call: cache policies and hints, `evict_last`.
- `placement`: registers that tell on which multiprocessor and in which slot a block runs, as no result should, and
  where the shared memory lies that the system keeps for itself.
- `dependent_launch`: `griddepcontrol`. Routine where a plan has several launches, so seen only where one has one.

A clock beside a wait for an `mbarrier` and `nanosleep` is how the toolkit's barriers wait before sm_90: what else it is
good for the screen cannot tell, so that `reject` becomes `review` there.

Refused by no policy but always: PTX above MAX_PTX_BYTES (SOURCE_REFUSED), and PTX that cannot be read to its end.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, get_args

from kerneltrial.judge.ptx import Statement, functions, is_name, read
from kerneltrial.records.reason import Finding, Reason
from kerneltrial.records.screening import Action, Screening, Topic

MAX_PTX_BYTES: Final = 16 << 20
"""Reading takes one to four seconds a MiB at worst, in the judge's own process; kernels have some 10 to 500 KiB."""

_REGISTERS: Final[dict[str, tuple[Topic, str]]] = {
    **dict.fromkeys(("%clock", "%clock_hi", "%clock64"), ("clock", "a clock")),
    **dict.fromkeys(("%globaltimer", "%globaltimer_lo", "%globaltimer_hi"), ("clock", "a clock")),
    **{f"%pm{n}{suffix}": ("clock", "a performance counter") for n in range(8) for suffix in ("", "_64")},
    "%gridid": ("launch_identity", "the number of the launch"),
    "%current_graph_exec": ("launch_identity", "the graph that launches it"),
    **dict.fromkeys(("%smid", "%nsmid"), ("placement", "where the block runs")),
    **dict.fromkeys(("%warpid", "%nwarpid"), ("placement", "the slot of a warp")),
    **dict.fromkeys(
        (f"%reserved_smem_offset_{which}" for which in ("begin", "end", "cap", "0", "1", "2")),
        ("placement", "where the system's own shared memory lies"),
    ),
}
_OPCODES: Final[dict[str, tuple[Topic, str]]] = {
    "trap": ("trap", "ends the whole grid"),
    "brkpt": ("trap", "waits for a debugger"),
    "pmevent": ("trap", "signals a profiler"),
    "discard": ("discard", "destroys data in the cache"),
    "createpolicy": ("cache_policy", "makes a cache policy"),
    "applypriority": ("cache_policy", "changes what the cache keeps"),
    "griddepcontrol": ("dependent_launch", "lets launches overlap, and the plan has but one"),
}
_ASSERT: Final = "__assertfail"
_KEEPS_IN_CACHE: Final = frozenset({"L2::cache_hint", "L2::evict_last"})
# Operands (0 is the result) in which an address may stand. Of `mad`, only the summand; `selp` chooses by a predicate,
# which cannot come from an address, since nothing that makes a predicate may use one.
_ADDRESS_ARITHMETIC: Final = {
    "mov": (0, 1),
    "cvta": (0, 1),
    "add": (0, 1, 2),
    "sub": (0, 1),
    "mad": (0, 3),
    "selp": (0, 1, 2),
}


class Sight(NamedTuple):
    """Something that the screen saw, and under which topic it falls."""

    topic: Topic
    detail: str


def screen(ptx: str, policy: Screening, *, several_launches: bool = False) -> tuple[Finding, ...]:
    """What is refused (one finding, alone), or what a person should look at (one a topic), or nothing.

    `several_launches`: every variant of the plan has more than one launch.
    """
    if len(ptx) > MAX_PTX_BYTES:
        detail = f"{len(ptx)} bytes of PTX are too many to look at; the limit is {MAX_PTX_BYTES >> 20} MiB"
        return (Finding(reason=Reason.SOURCE_REFUSED, detail=detail),)
    try:
        found = read(ptx)
    except ValueError as error:
        return (Finding(reason=Reason.FORBIDDEN_INSTRUCTION, detail=f"the PTX cannot be read: {error}"),)
    actions: dict[Topic, Action] = {topic: getattr(policy, topic) for topic in get_args(Topic)}
    if several_launches:
        actions["dependent_launch"] = "allow"
    if actions["clock"] == "reject" and _backs_off(found):
        actions["clock"] = "review"
    return _judged(_sights(found), actions)


def _backs_off(found: Sequence[Statement]) -> bool:
    """Whether the only clock is `%globaltimer`, in a module that waits for an mbarrier and sleeps meanwhile."""
    waits = any(s.opcode.startswith(("mbarrier.test_wait", "mbarrier.try_wait")) for s in found)
    sleeps = any(s.opcode.startswith("nanosleep") for s in found)
    clocks = {token for s in found for token in s.tokens if _REGISTERS.get(token, ("",))[0] == "clock"}
    return waits and sleeps and clocks == {"%globaltimer"}


def _judged(sights: Iterable[Sight], actions: dict[Topic, Action]) -> tuple[Finding, ...]:
    to_review: dict[Topic, Finding] = {}
    for topic, detail in sights:
        if actions[topic] == "reject":
            return (Finding(reason=Reason.FORBIDDEN_INSTRUCTION, detail=detail),)
        if actions[topic] == "review":
            to_review.setdefault(topic, Finding(reason=Reason.NEEDS_REVIEW, detail=f"{topic}: {detail}"))
    return tuple(to_review.values())


def _sights(found: Sequence[Statement]) -> Iterator[Sight]:
    yield from _special_registers(found)
    yield from _opcodes(found)
    yield from _unknown_calls(found)
    yield from (Sight("module_state", detail) for detail in _used_globals(found))


def _special_registers(found: Iterable[Statement]) -> Iterator[Sight]:
    for statement in found:
        for token in statement.tokens:
            if token in _REGISTERS:
                topic, what = _REGISTERS[token]
                yield Sight(topic, f"line {statement.line}: reads {token}, {what}")


def _opcodes(found: Iterable[Statement]) -> Iterator[Sight]:
    for statement in found:
        opcode, *modifiers = statement.opcode.split(".")
        if opcode in _OPCODES:
            topic, what = _OPCODES[opcode]
            yield Sight(topic, f"line {statement.line}: {statement.opcode} {what}")
        elif not _KEEPS_IN_CACHE.isdisjoint(modifiers):
            yield Sight("cache_policy", f"line {statement.line}: {statement.opcode} says what the cache keeps")


def _unknown_calls(found: Sequence[Statement]) -> Iterator[Sight]:
    """Functions that are declared (`.extern`) and defined nowhere here."""
    for statement in found:
        tokens = statement.tokens
        if ".extern" in tokens and ".func" in tokens:
            name = _function_name(tokens)
            if name == _ASSERT:
                yield Sight("trap", f"line {statement.line}: a failed assert ends the whole grid")
            else:
                detail = f"line {statement.line}: needs the function {name}, which the module does not define"
                yield Sight("unknown_function", detail)


def _function_name(tokens: tuple[str, ...]) -> str:
    """The name in a `.func` header: after `.func` and the parenthesis of return values, where there is one."""
    rest = list(tokens[tokens.index(".func") + 1 :])
    if rest[:1] == ["("]:
        rest = rest[rest.index(")") + 1 :] if ")" in rest else rest
    return next((t for t in rest if is_name(t)), "?")


def _used_globals(found: Sequence[Statement]) -> Iterator[str]:
    """Uses of module-scope `.global` variables that may be more than reading a constant table.

    An address may be moved, offset and loaded from, and nothing else may be done with it: a comparison, a bit of it or
    a carry would tell it to instructions that carry no trace of it, and a store through such a copy is not to be told
    from a store to an output. Flow-insensitive: within a function every register that once holds what was computed
    from an address counts as an address everywhere.
    """
    declared = [(s, *_declared(s)) for s in found if s.opcode.startswith(".")]
    generic = any(_makes_generic_constants(statement) for statement in found)
    variables = {name for s, names, _ in declared for name in names if _is_global(s) or (generic and _is_const(s))}
    if not variables:
        return
    for statement, _, values in declared:
        if values & variables:
            yield f"line {statement.line}: the address of {_some(values & variables)} is stored in module-scope memory"
    for header, whole in functions(found):
        body = _without_asserts(whole)
        addresses = _addresses(body, variables)
        if header is not None and addresses.intersection(header.tokens):
            yield f"line {header.line}: a function takes or returns an address of {_some(variables)}"
        for statement in body:
            if _escapes(statement, addresses):
                yield (
                    f"line {statement.line}: {statement.opcode} on module-scope memory or its address "
                    f"({_some(variables)}); memory that outlives a call may only be read, by plain loads "
                    "(tables can also be __constant__)"
                )


def _some(names: set[str]) -> str:
    return ", ".join(sorted(names)[:3])


def _is_global(statement: Statement) -> bool:
    tokens = statement.tokens
    return ".global" in tokens and ".entry" not in tokens and ".func" not in tokens


def _is_const(statement: Statement) -> bool:
    return ".const" in statement.tokens and statement.opcode.startswith(".") and ".entry" not in statement.tokens


def _makes_generic_constants(statement: Statement) -> bool:
    """Whether constant memory gets an address by which stores could reach it: only so can it be written."""
    return statement.opcode.startswith("cvta.const") or (
        statement.opcode.startswith(".") and "generic" in statement.tokens
    )


def _without_asserts(body: list[Statement]) -> list[Statement]:
    """Less the parameters of failed asserts: texts that are handed to what ends the grid."""
    dropped: set[int] = set()
    for at, statement in enumerate(body):
        if statement.opcode.startswith("call") and _ASSERT in statement.tokens:
            before = at - 1
            while before >= 0 and body[before].opcode.startswith(("st.param", ".param", ".reg")):
                dropped.add(before)
                before -= 1
    return [statement for at, statement in enumerate(body) if at not in dropped]


def _declared(statement: Statement) -> tuple[set[str], set[str]]:
    """Names that a declaration declares, and names in its initial values: `.global .u64 a = generic(b), c;`."""
    names: set[str] = set()
    values: set[str] = set()
    nested, into = 0, names
    for token in statement.tokens:
        if len(token) == 1 and token in "([{)]}":
            nested += 1 if token in "([{" else -1
        elif token == "=":
            into = values
        elif token == "," and nested == 0:
            into = names
        elif is_name(token):
            into.add(token)
    return names, values


def _addresses(body: list[Statement], variables: set[str]) -> set[str]:
    """Names and registers that may hold an address of `variables`."""
    results: defaultdict[str, set[str]] = defaultdict(set)
    for statement in body:
        if statement.opcode.split(".")[0] in _ADDRESS_ARITHMETIC and statement.operands:
            for source in set().union(*statement.operands[1:]):
                results[source] |= statement.operands[0]
    addresses, new = set(variables), list(variables)
    while new:
        for result in results[new.pop()] - addresses:
            addresses.add(result)
            new.append(result)
    return addresses


def _escapes(statement: Statement, addresses: set[str]) -> bool:
    """Whether a statement does anything with an address but move it, offset it or load from it."""
    if statement.guard in addresses:
        return True
    opcode, *modifiers = statement.opcode.split(".")
    operands = statement.operands
    if not opcode or addresses.isdisjoint(set().union(*operands)):
        return False  # a directive, or nothing to see
    if opcode in _ADDRESS_ARITHMETIC:
        may_hold = _ADDRESS_ARITHMETIC[opcode]
        misplaced = (names for at, names in enumerate(operands) if at not in may_hold)
        return "cc" in modifiers or not addresses.isdisjoint(set().union(*misplaced))
    if opcode in ("ld", "ldu"):
        return any(not addresses.isdisjoint(names) for names in operands[2:])
    return True
