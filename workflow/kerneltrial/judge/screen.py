"""A first look at PTX before anything runs: what no kernel of a trial may do, found by parsing.

Refused (all as FORBIDDEN_INSTRUCTION): module-scope memory that is written or whose address leaves the reader's sight
(state that outlives a call); reads of clocks and of the grid's number (a kernel that can tell one call from another);
`trap`, `brkpt`, `discard`; calls of functions that the module does not define, such as `vprintf`, `malloc` or a launch
from the device.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from kerneltrial.judge.ptx import Statement, is_name, statements
from kerneltrial.records.reason import Finding, Reason

_REGISTERS: Final = {
    "%clock": "a clock",
    "%clock_hi": "a clock",
    "%clock64": "a clock",
    "%globaltimer": "a clock",
    "%globaltimer_lo": "a clock",
    "%globaltimer_hi": "a clock",
    "%gridid": "the number of the launch",
}
_OPCODES: Final = {
    "trap": "ends the whole grid",
    "brkpt": "waits for a debugger",
    "discard": "destroys data in the cache",
}


def screen(ptx: str) -> Finding | None:
    """The first thing that is refused, or None. PTX that cannot be read to its end is refused too."""
    try:
        found = list(statements(ptx))
    except ValueError as error:
        return _refused(f"the PTX cannot be read: {error}")
    return _first(_special_registers(found), _opcodes(found), _unknown_calls(found), _written_globals(found))


def _first(*looks: Iterator[str]) -> Finding | None:
    for look in looks:
        for detail in look:
            return _refused(detail)
    return None


def _refused(detail: str) -> Finding:
    return Finding(reason=Reason.FORBIDDEN_INSTRUCTION, detail=detail)


def _special_registers(found: Iterable[Statement]) -> Iterator[str]:
    for statement in found:
        for token in statement.tokens:
            if token in _REGISTERS:
                yield f"line {statement.line}: reads {token}, {_REGISTERS[token]}"


def _opcodes(found: Iterable[Statement]) -> Iterator[str]:
    for statement in found:
        opcode = statement.opcode.split(".")[0]
        if opcode in _OPCODES:
            yield f"line {statement.line}: {statement.opcode} {_OPCODES[opcode]}"


def _unknown_calls(found: list[Statement]) -> Iterator[str]:
    """Functions that are declared (`.extern`) and defined nowhere here."""
    for statement in found:
        tokens = statement.tokens
        if ".extern" in tokens and ".func" in tokens:
            name = _function_name(tokens)
            yield f"line {statement.line}: needs the function {name}, which the module does not define"


def _function_name(tokens: tuple[str, ...]) -> str:
    """The name in a `.func` header: after `.func` and the parenthesis of return values, where there is one."""
    rest = list(tokens[tokens.index(".func") + 1 :])
    if rest[:1] == ["("]:
        rest = rest[rest.index(")") + 1 :] if ")" in rest else rest
    return next((t for t in rest if is_name(t)), "?")


def _written_globals(found: list[Statement]) -> Iterator[str]:
    """Module-scope `.global` variables that are stored to, or whose address is stored or handed on.

    Flow-insensitive: within a function every register that is computed from a variable's address counts as its
    address. Constant tables (which are only read) pass, whatever space the compiler put them in.
    """
    variables = {name for s in found for name in _global_names(s)}
    if not variables:
        return
    for statement in found:
        named = _initial_names(statement) & variables
        if named:
            yield f"line {statement.line}: the address of {_some(named)} is stored in module-scope memory"
    for body in _functions(found):
        tainted = _closure(body, variables)
        for statement in body:
            if _written_or_handed_on(statement) & tainted:
                what = f"may write module-scope memory ({_some(variables)}), which outlives a call"
                yield f"line {statement.line}: {statement.opcode} {what}"


def _some(names: set[str]) -> str:
    return ", ".join(sorted(names)[:3])


def _global_names(statement: Statement) -> frozenset[str]:
    """Variables that a statement declares in the `.global` space."""
    tokens = statement.tokens
    if ".global" not in tokens or ".entry" in tokens or ".func" in tokens:
        return frozenset()
    before_value = tokens[: tokens.index("=")] if "=" in tokens else tokens
    return frozenset(t for t in before_value if is_name(t))


def _initial_names(statement: Statement) -> set[str]:
    """Symbols in the initial value of a declaration."""
    tokens = statement.tokens
    if not tokens[0].startswith(".") or "=" not in tokens:
        return set()
    return {t for t in tokens[tokens.index("=") :] if is_name(t)}


def _functions(found: list[Statement]) -> Iterator[list[Statement]]:
    """Statements of each function's body."""
    body: list[Statement] = []
    for statement in found:
        if statement.depth > 0:
            body.append(statement)
        elif body:
            yield body
            body = []
    if body:
        yield body


def _closure(body: list[Statement], variables: set[str]) -> set[str]:
    """Names and registers that may hold an address of `variables`."""
    tainted = set(variables)
    grown = True
    while grown:
        grown = False
        for statement in body:
            if statement.opcode.startswith(("ld", "st", "atom", "red")) or not statement.operands:
                continue
            sources = set().union(*statement.operands[1:])
            if sources & tainted and not statement.operands[0] <= tainted:
                tainted |= statement.operands[0]
                grown = True
    return tainted


def _written_or_handed_on(statement: Statement) -> set[str]:
    """Operands through which a statement writes memory, or hands an address to what this look does not follow."""
    opcode = statement.opcode.split(".")[0]
    everything: set[str] = set().union(*statement.operands) if statement.operands else set()
    if opcode in ("st", "atom", "red", "call", "cp", "stmatrix", "multimem", "wmma", "tensormap", "mbarrier"):
        return everything
    return set()
