"""The search space: a template source, its parameters, and every configuration that meets the constraints.

A space is the team's own file, so what is wrong with it is an `InputProblem`. Its expressions go through
`inputs.expressions`; nothing of it is evaluated as Python.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from kerneltrial.inputs.contracts import with_text_expressions
from kerneltrial.inputs.documents import read_document, to_record
from kerneltrial.inputs.expressions import evaluate, names
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.propose.search.columns import Columns, Integers, column
from kerneltrial.records.candidate import Language, Pattern
from kerneltrial.records.plan import LaunchPlan
from kerneltrial.records.record import Expression, Name, Record, Text

MAXIMUM_CONFIGURATIONS = 20_000
MAXIMUM_ROWS = 1_000_000  # on the way, before the last constraints
MAXIMUM_SOURCE_BYTES = 1_000_000
_BRACES = re.compile(r"\{([^{}]+)\}")

Parameters = Mapping[str, int]


class Seed(Record):
    """A configuration that an expert chose, and why."""

    parameters: dict[Name, int]
    hypothesis: Text
    pattern: Pattern = "hardware"


class Because(Record):
    """Why a change of a parameter could pay. `because` is a sentence; {EXPR} in it becomes a number or a name."""

    because: Text
    pattern: Pattern = "none"


class PriorTerms(Record):
    """What a configuration costs, as expressions in parameters and dimensions (see `prior`).

    `registers` a thread, `shared_bytes` a block, `instructions` a thread issues, `steps` that wait for global memory,
    `traffic_bytes` between a block and the level-2 cache, `tail_bytes` that the last block moves when others are done.
    """

    registers: Expression = "32"
    shared_bytes: Expression = "0"
    instructions: Expression = "1"
    steps: Expression = "1"
    traffic_bytes: Expression = "0"
    tail_bytes: Expression = "0"


class SpaceFile(Record):
    """space.yaml. `derived` names may use parameters and the derived names before them."""

    source: str
    parameters: Annotated[dict[Name, Annotated[tuple[int, ...], Meta(min_length=1)]], Meta(min_length=1, max_length=24)]
    plan: LaunchPlan
    language: Language = "cuda_cpp"
    derived: dict[Name, Expression] = {}
    constraints: tuple[Expression, ...] = ()
    prior: PriorTerms = PriorTerms()
    seeds: tuple[Seed, ...] = ()
    reasons: dict[Name, Because] = {}


@dataclass(frozen=True)
class Space:
    """A space in memory. `template` is the source without its macros; `configurations` in the order of the file.

    `table` holds the same as columns, with those of the derived names.
    """

    path: Path
    file: SpaceFile
    template: str
    configurations: tuple[dict[str, int], ...]
    table: Columns

    def source(self, parameters: Parameters) -> bytes:
        """Return the source of one configuration, which stands alone: its macros, then the template."""
        lines = [f"#define {name} {parameters[name]}\n" for name in self.file.parameters]
        return ("".join(lines) + self.template).encode()

    def plan(self, parameters: Parameters) -> LaunchPlan:
        """Return the launch plan of one configuration: expressions in the dimensions alone."""
        known = self.named(parameters)
        document = _filled(msgspec.to_builtins(self.file.plan), known, f"{self.path}: plan")
        try:
            return msgspec.convert(document, LaunchPlan)
        except msgspec.ValidationError as fault:
            raise InputProblem(f"{self.path}: plan of {dict(parameters)}: {fault}") from None

    def named(self, parameters: Parameters) -> dict[str, int]:
        """Return the parameters with all derived names."""
        known = dict(parameters)
        for name, expression in self.file.derived.items():
            known[name] = evaluate(expression, known)
        return known


def read_space(path: Path) -> Space:
    """Read space.yaml and the template beside it, and enumerate the configurations.

    Raises
    ------
    InputProblem
        Where a file is absent or wrong, a name is unknown, a seed is no valid configuration, or nothing is valid.
    """
    file = to_record(with_text_expressions(read_document(path)), SpaceFile, str(path))
    _check_names(path, file)
    template = _read_template(path.parent / file.source)
    table = _enumerate(path, file)
    rows = zip(*(table[name].tolist() for name in file.parameters), strict=True)
    configurations = tuple(dict(zip(file.parameters, row, strict=True)) for row in rows)
    if not configurations:
        raise InputProblem(f"{path}: no configuration meets the constraints; loosen one of them")
    if len(configurations) > MAXIMUM_CONFIGURATIONS:
        raise InputProblem(
            f"{path}: {len(configurations)} configurations are valid, at most {MAXIMUM_CONFIGURATIONS} can be"
        )
    for number, seed in enumerate(file.seeds, start=1):
        if seed.parameters not in configurations:
            raise InputProblem(f"{path}: seeds, number {number}: {seed.parameters} is no valid configuration")
    return Space(path, file, template, configurations, table)


def _read_template(path: Path) -> str:
    try:
        content = path.read_bytes()
    except OSError as fault:
        raise InputProblem(f"{path}: cannot be read ({fault.strerror}); `source` of the space names it") from None
    if len(content) > MAXIMUM_SOURCE_BYTES:
        raise InputProblem(f"{path}: is larger than {MAXIMUM_SOURCE_BYTES} bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise InputProblem(f"{path}: is not UTF-8 text") from None


def _check_names(path: Path, file: SpaceFile) -> None:
    known = set(file.parameters)
    for name, expression in file.derived.items():
        _refuse_unknown(f"{path}: derived.{name}", expression, known)
        if name in known:
            raise InputProblem(f"{path}: derived.{name}: a parameter has this name too; rename one")
        known.add(name)
    for number, expression in enumerate(file.constraints, start=1):
        _refuse_unknown(f"{path}: constraints, number {number}", expression, known)
    for name in file.reasons:
        if name not in file.parameters:
            raise InputProblem(f"{path}: reasons.{name} is no parameter; known are {', '.join(file.parameters)}")


def _refuse_unknown(where: str, expression: str, known: set[str]) -> None:
    unknown = sorted(names(expression) - known)
    if unknown:
        raise InputProblem(f"{where}: {unknown[0]!r} is no parameter; known are {', '.join(sorted(known))}")


def _enumerate(path: Path, file: SpaceFile) -> Columns:
    """Return the valid configurations, a column a parameter; a constraint is applied once its names have values."""
    table: dict[str, Integers] = {}
    for name, (derived, constraints) in zip(file.parameters, _ready(file), strict=True):
        values = np.array(file.parameters[name], dtype=np.int64)
        rows = len(next(iter(table.values()))) if table else 1
        if rows * len(values) > MAXIMUM_ROWS:
            raise InputProblem(f"{path}: more than {MAXIMUM_ROWS} configurations before {name}; add constraints")
        table = {known: np.repeat(held, len(values)) for known, held in table.items()}
        table[name] = np.tile(values, rows)
        for which in derived:
            table[which] = column(file.derived[which], table)
        for constraint in constraints:
            keep = column(constraint, table) != 0
            table = {known: held[keep] for known, held in table.items()}
    return table


def _ready(file: SpaceFile) -> list[tuple[list[str], list[str]]]:
    """Return, for each parameter, the derived names and the constraints that can be evaluated once it has a value."""
    depth_of = {name: depth for depth, name in enumerate(file.parameters)}
    steps: list[tuple[list[str], list[str]]] = [([], []) for _ in file.parameters]
    for name, expression in file.derived.items():
        depth_of[name] = max((depth_of[used] for used in names(expression)), default=0)
        steps[depth_of[name]][0].append(name)
    for constraint in file.constraints:
        steps[max((depth_of[used] for used in names(constraint)), default=0)][1].append(constraint)
    return steps


def _filled(document: Any, known: Parameters, where: str) -> Any:
    """Return a document with each {EXPR} in its texts replaced by the expression's value."""
    if isinstance(document, dict):
        return {key: _filled(item, known, f"{where}.{key}") for key, item in document.items()}
    if isinstance(document, list | tuple):
        return [_filled(item, known, where) for item in document]
    return _BRACES.sub(lambda m: str(evaluate(m[1], known)), document) if isinstance(document, str) else document


def sentence(text: str, known: Mapping[str, int], words: Mapping[str, str]) -> str:
    """Return `text` with each {EXPR} replaced by its value in `known`, or by the word of that name."""
    return _BRACES.sub(lambda m: words[m[1]] if m[1] in words else str(evaluate(m[1], known)), text)
