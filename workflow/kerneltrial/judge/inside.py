"""Cases for what a kernel does in shapes that no other case has: each way through it that hangs on sizes is taken.

As `variants` does for a plan: a condition inside of a kernel (`if (n == 12345)`) that no case takes, or does not take
both ways, gets the cheapest shape that does. What no affordable shape was found for, a person must look at.

A condition on the thread's place too (`row == 300 && col == 300`) counts as taken where it may be, by what spans tell,
and gets a shape where one is found soon; for others nothing is claimed.
"""

import ast
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import msgspec

from kerneltrial.inputs.boundary import cost
from kerneltrial.inputs.paths import Path, wanted
from kerneltrial.inputs.shape_search import Found, domain, find, point
from kerneltrial.judge.launched import OTHER_SIZES, Launched, arguments, sizes_of_launch
from kerneltrial.judge.mixed import mixed
from kerneltrial.judge.ptx import Statement, functions, is_name
from kerneltrial.judge.setup import JudgeSetup
from kerneltrial.judge.sizes import Sizes
from kerneltrial.judge.taken import Asked, Look
from kerneltrial.judge.unfollowed import Unfollowed, made_of_sizes, unfollowed
from kerneltrial.judge.variants import FULL, ONCE, Derived, larger, shape_name, too_large
from kerneltrial.judge.ways import Way, ways
from kerneltrial.records.build import Abi
from kerneltrial.records.case import Case
from kerneltrial.records.contract import Contract, Range
from kerneltrial.records.plan import LaunchPlan
from kerneltrial.records.reason import Finding, Reason

CASES: Final = 12  # of one candidate, at most
CELLS: Final = 1024  # of all searches
CELLS_ONCE: Final = 256  # of one
STATEMENTS: Final = 100_000  # of PTX that are followed, counted once for each launch
FUNCTION: Final = 100  # statements that a function counts as beside its own: looking at one is work, if it has none
SHOWN: Final = 16  # of what a person must look at
WAYS: Final = 4096  # of one candidate
CELLS_PLACED: Final = 256  # of all searches that are about a thread's place
CELLS_PLACED_ONCE: Final = 128


@dataclass(frozen=True)
class Module:
    """A candidate's PTX as statements, and how its kernels take arrays."""

    found: Sequence[Statement]
    abi: Abi


def ways_inside(
    setup: JudgeSetup, plan: LaunchPlan, module: Module, cases: Sequence[Case], once: Sequence[Case] = ()
) -> Derived:
    """Cases for ways through a plan's kernels that `cases` leave; the plan is known to be right (`check_plan`).

    `once`: cases that are run with one draw of values. What they alone take gets a case with every draw where one is
    cheap, after all others, and nothing is told where none is.
    """
    contract = setup.contract
    look = Look(plan, [point(case.dimensions) for case in cases])
    look_once = Look(plan, [point(case.dimensions) for case in once])
    most = max(ONCE, max(cost(contract, case.dimensions) for case in setup.cases.cases))
    made: list[Case] = []
    unseen: list[Finding] = []
    cells = CELLS
    whole = domain(contract)
    found = _all_asked(contract, plan, module, unseen)
    all_asked = list(itertools.islice(found, WAYS))
    if next(found, None) is not None:
        unseen.insert(0, _too_long("the candidate"))
    later = []
    for asked in all_asked:
        if asked.placed or look.took(asked) or asked.launched.contradicts(asked.way.wants, whole):
            continue
        if look_once.took(asked):
            later.append(asked)
            continue
        if cells <= 0 or len(made) == CASES:
            unseen.append(_finding(plan, asked, "it was not looked for, the kernel has too many ways"))
            continue
        shape, cells = _searched(contract, plan, asked, cells)
        why = too_large(contract, shape, most)
        if shape.dimensions is None or why:
            unseen += [_finding(plan, asked, why)] if why else []
            continue
        made.append(_case(setup, shape.dimensions, asked, look))
    for asked in later:
        if cells <= 0 or len(made) == CASES:
            break
        if look.took(asked):
            continue
        shape, cells = _searched(contract, plan, asked, cells)
        if shape.dimensions is not None and not too_large(contract, shape, FULL):
            made.append(_case(setup, shape.dimensions, asked, look))
    for case in once:
        look.add(point(case.dimensions))
    placed = _at_places(setup, plan, [asked for asked in all_asked if asked.placed], look)
    dear = [case for case in made if cost(contract, case.dimensions) > FULL]
    return Derived(
        cases=(*made, *placed),
        once=frozenset(case.name for case in (*dear, *placed)),
        unchecked=_few(tuple(dict.fromkeys(unseen))),
    )


def _searched(contract: Contract, plan: LaunchPlan, asked: Asked, cells: int) -> tuple[Found, int]:
    """A shape that takes a way, and how many of the `cells` are left."""
    spelled = [(asked.launched.spelled(node), holds) for node, holds in asked.way.wants]
    wants = (*spelled, *wanted(plan, Path(asked.launched.variant)))
    shape = find(contract, wants, min(cells, CELLS_ONCE))
    cells -= shape.cells
    if not shape.settled and cells > 0:
        shape = find(contract, sorted(wants, key=_late), min(cells, CELLS_ONCE), order="deepest")
        cells -= shape.cells
    return shape, cells


def _at_places(setup: JudgeSetup, plan: LaunchPlan, left: Sequence[Asked], look: "Look") -> list[Case]:
    """Cases for conditions on the thread's place that no case can take; each is run once, as there may be many."""
    contract = setup.contract
    made: list[Case] = []
    cells = CELLS_PLACED
    for asked in left:
        if cells <= 0 or len(made) == CASES:
            break
        if look.took(asked):
            continue
        launched, names = asked.launched, asked.placed
        spelled = [(launched.spelled(node), holds) for node, holds in (*asked.way.wants, *launched.within(names))]
        most = launched.cell(domain(contract))
        ranges = {name: Range(minimum=0, maximum=most[name].high) for name in names}
        wider = msgspec.structs.replace(contract, dimensions=contract.dimensions | ranges)
        wants = sorted((*spelled, *wanted(plan, Path(launched.variant))), key=_late)
        shape = find(wider, wants, min(cells, CELLS_PLACED_ONCE), order="deepest")
        cells -= shape.cells
        if shape.dimensions is not None and cost(contract, shape.dimensions) <= ONCE:
            dimensions = {name: size for name, size in shape.dimensions.items() if name in contract.dimensions}
            made.append(_case(setup, dimensions, asked, look))
    return made


def _late(want: tuple[ast.expr, bool]) -> bool:
    """False for a condition about one value among many: those are searched for first."""
    node, _ = want
    return not any(
        isinstance(op, ast.Eq | ast.NotEq)
        for part in ast.walk(node)
        if isinstance(part, ast.Compare)
        for op in part.ops
    )


def _case(setup: JudgeSetup, found: Mapping[str, int], asked: Asked, look: "Look") -> Case:
    """The case of a shape, its free dimensions made larger than one."""
    dimensions = larger(setup.contract, found, partial(look.takes, asked))
    look.add(point(dimensions))
    return Case(name=shape_name(dimensions), kind="correctness", dimensions=dimensions, seed=setup.seed)


def _all_asked(contract: Contract, plan: LaunchPlan, module: Module, unseen: list[Finding]) -> Iterator[Asked]:
    """Every way once for each launch; what cannot be followed goes to `unseen`."""
    entries: dict[str, tuple[tuple[str, ...], list[Statement]]] = {}
    others: list[tuple[tuple[str, ...], list[Statement]]] = []  # of no entry: sizes of the launch are there alone
    for header, body in functions(module.found):
        named = dict(_entry(header))
        entries |= {name: (parameters, body) for name, parameters in named.items()}
        others += [] if named else [((), body)]
    tables = frozenset(name for statement in module.found for name in _declared(statement))
    whole = domain(contract)
    statements = STATEMENTS
    for place, variant in enumerate(plan.variants):
        for launch in variant.launches:
            for parameters, body in [*(entries[launch.entry] for _ in range(launch.entry in entries)), *others]:
                statements -= FUNCTION + len(body)
                if statements < 0:
                    unseen.append(_too_long(launch.entry))
                    continue
                given = dict(zip(parameters, arguments(contract, plan, launch, module.abi), strict=False))
                integers = {name: node for name, node in given.items() if node is not None}
                launched = Launched(place, launch, integers | sizes_of_launch(launch))
                places = {name: ast.Name(name) for name in launched.places}
                sizes = Sizes(body, launched.named | places, launched.cell(whole))
                made = made_of_sizes(body, {*launched.named, *OTHER_SIZES}, tables)
                yield from _each_once(launched, ways(body, sizes, made))
                changing = {*OTHER_SIZES, *(name for name in launched.named if launched.changes(name, whole))}
                told = (*unfollowed(body, made, sizes), *mixed(body, changing, made, tables))
                unseen += [_strange(launch.entry, found) for found in told]


def _declared(statement: Statement) -> Iterator[str]:
    """The variable of a declaration of module-scope memory."""
    if statement.depth == 0 and statement.opcode.startswith(".") and not {".func", ".entry"} & set(statement.tokens):
        yield from (token for token in statement.tokens[1:] if is_name(token) and token[0] != ".")


def _each_once(launched: Launched, found: Iterable[Way]) -> Iterator[Asked]:
    """Ways without those that are the same. One that ends in a condition on sizes alone is asked for by itself too,
    without what of the thread's place leads to it: else it would hang on a search for a place."""
    seen: set[tuple[tuple[str, bool], ...]] = set()
    texts: dict[int, tuple[ast.expr, str]] = {}  # many ways have conditions in common
    for way in found:
        for node, _ in way.wants:
            if id(node) not in texts:
                texts[id(node)] = node, ast.unparse(node)
        of_sizes = tuple(want for want in way.wants if not launched.placed((want,)))
        for wants in (of_sizes, way.wants) if of_sizes[-1:] == way.wants[-1:] else (way.wants,):
            text = tuple((texts[id(node)][1], holds) for node, holds in wants)
            if text not in seen:
                seen.add(text)
                yield Asked(launched, Way(wants, way.source), launched.placed(wants))


def _entry(header: Statement | None) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Name and parameters of an entry, by its header."""
    if header is None or ".entry" not in header.tokens:
        return
    tokens = header.tokens[header.tokens.index(".entry") + 1 :]
    parameters: list[str] = []
    for token in tokens[1:]:
        if token == ".param":
            parameters.append("")
        elif parameters and is_name(token):
            parameters[-1] = token
        elif token == ")":
            break
    yield from ((name, tuple(parameters)) for name in tokens[:1])


def _finding(plan: LaunchPlan, asked: Asked, why: str) -> Finding:
    told = [
        f"{ast.unparse(asked.launched.spelled(node))} is {'true' if holds else 'false'}"
        for node, holds in asked.way.wants
    ]
    behind = f" where {' and '.join(told[-4:-1])}" if told[:-1] else ""
    which = f", variant {asked.launched.variant + 1} of the plan" if len(plan.variants) > 1 else ""
    where = f"{_line(asked.way.source)} of {asked.launched.entry}{which}"
    detail = f"{where}: no case shows what it does when {told[-1]}{behind}: {why}"
    return Finding(reason=Reason.NEEDS_REVIEW, detail=detail[:1500])


def _few(found: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The first of many, and how many more there are: they stand in a record."""
    left = len(found) - SHOWN
    if left <= 0:
        return found
    more = Finding(reason=Reason.NEEDS_REVIEW, detail=f"{left} more ways through the kernels that no case takes")
    return (*found[:SHOWN], more)


def _too_long(what: str) -> Finding:
    detail = f"{what} has more code, or more ways, than are followed here, so no case is made for the rest"
    return Finding(reason=Reason.NEEDS_REVIEW, detail=detail)


def _strange(entry: str, found: Unfollowed) -> Finding:
    where = f"{_line(found.statement.source)} of {entry}"
    detail = f"{where} {found.does} in a way that is not followed here, so no case is made for it"
    return Finding(reason=Reason.NEEDS_REVIEW, detail=detail)


def _line(source: int) -> str:
    return f"line {source}" if source else "a line that is not known"
