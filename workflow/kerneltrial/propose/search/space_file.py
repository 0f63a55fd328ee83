"""What space.yaml holds, and whether its names fit together."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from kerneltrial.inputs.contracts import with_text_expressions
from kerneltrial.inputs.documents import read_document, to_record
from kerneltrial.inputs.expressions import evaluate, names
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.records.candidate import Language, Pattern
from kerneltrial.records.plan import LaunchPlan
from kerneltrial.records.record import Expression, Name, Record, Text

_BRACES = re.compile(r"\{([^{}]+)\}")

Parameters = Mapping[str, int]
Values = Annotated[tuple[int, ...], Meta(min_length=1)]


class Seed(Record):
    """A configuration that an expert chose, and why."""

    parameters: dict[Name, int]
    hypothesis: Text
    pattern: Pattern = "hardware"


class Because(Record):
    """Why a change of a parameter could pay. `because` is a sentence; {EXPR} in it becomes a number or a word."""

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


class Requirement(Record):
    """Configurations for which `when` holds are there for cards of this architecture alone, such as `sm_90a`."""

    arch: Annotated[str, Meta(pattern=r"^sm_[0-9]{2,3}[af]?(?!\n)$")]
    when: Expression


class SpaceFile(Record):
    """space.yaml. `derived` names may use parameters and the derived names before them."""

    source: str
    parameters: Annotated[dict[Name, Values], Meta(min_length=1, max_length=24)]
    plan: LaunchPlan
    language: Language = "cuda_cpp"
    derived: dict[Name, Expression] = {}
    constraints: tuple[Expression, ...] = ()
    requires: tuple[Requirement, ...] = ()
    prior: PriorTerms = PriorTerms()
    seeds: tuple[Seed, ...] = ()
    reasons: dict[Name, Because] = {}


def read_space_file(path: Path) -> SpaceFile:
    """Read space.yaml; raises `InputProblem` with file and place where a field or a name is wrong."""
    file = to_record(with_text_expressions(read_document(path)), SpaceFile, str(path))
    known = _checked_derived(path, file)
    for number, expression in enumerate(file.constraints, start=1):
        refuse_unknown(f"{path}: constraints, number {number}", expression, known)
    for number, requirement in enumerate(file.requires, start=1):
        refuse_unknown(f"{path}: requires, number {number}", requirement.when, known)
    for text in _texts(msgspec.to_builtins(file.plan)):
        for expression in _BRACES.findall(text):
            refuse_unknown(f"{path}: plan", expression, known)
    for name in file.reasons:
        if name not in file.parameters:
            raise InputProblem(f"{path}: reasons.{name} is no parameter; known are {', '.join(file.parameters)}")
    return file


def check_reasons(path: Path, file: SpaceFile, known: set[str], words: set[str]) -> None:
    """Raise `InputProblem` where a reason speaks of something that is no parameter, dimension or word."""
    for name, reason in file.reasons.items():
        for expression in _BRACES.findall(reason.because):
            if expression not in words:
                refuse_unknown(f"{path}: reasons.{name}", expression, known | words)


def refuse_unknown(where: str, expression: str, known: set[str]) -> None:
    """Raise `InputProblem` unless the expression is allowed and all of its names are known."""
    try:
        unknown = sorted(names(expression) - known)
    except InputProblem as fault:
        raise InputProblem(f"{where}: {fault}") from None
    if unknown:
        raise InputProblem(f"{where}: {unknown[0]!r} is not known; known are {', '.join(sorted(known))}")


def filled(document: Any, known: Parameters) -> Any:
    """Return a document with each {EXPR} in its texts replaced by the expression's value."""
    if isinstance(document, dict):
        return {key: filled(item, known) for key, item in document.items()}
    if isinstance(document, list | tuple):
        return [filled(item, known) for item in document]
    return sentence(document, known, {}) if isinstance(document, str) else document


def sentence(text: str, known: Parameters, words: Mapping[str, str]) -> str:
    """Return `text` with each {EXPR} replaced by its value in `known`, or by the word of that name."""
    return _BRACES.sub(lambda m: words[m[1]] if m[1] in words else str(evaluate(m[1], known)), text)


def bare(expression: str) -> str:
    """Return a template expression with {EXPR} as (EXPR): its value when parameters count as dimensions too."""
    return expression.replace("{", "(").replace("}", ")")


def _checked_derived(path: Path, file: SpaceFile) -> set[str]:
    """Return all names that the parameters and what is derived from them give."""
    for name, values in file.parameters.items():
        if len(set(values)) < len(values):
            raise InputProblem(f"{path}: parameters.{name}: a value stands twice")
    known = set(file.parameters)
    for name, expression in file.derived.items():
        refuse_unknown(f"{path}: derived.{name}", expression, known)
        if name in known:
            raise InputProblem(f"{path}: derived.{name}: a parameter has this name too; rename one")
        known.add(name)
    return known


def _texts(document: Any) -> Iterator[str]:
    if isinstance(document, str):
        yield document
    elif isinstance(document, dict | list | tuple):
        for item in document.values() if isinstance(document, dict) else document:
            yield from _texts(item)
