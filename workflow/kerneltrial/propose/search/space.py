"""The search space: a template source, its parameters, and every configuration that meets the constraints.

A space is the team's own file, so what is wrong with it is an `InputProblem`. Its expressions go through
`inputs.expressions`; nothing of it is evaluated as Python.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from kerneltrial.inputs.expressions import ExpressionProblem, evaluate, names
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.propose.search.columns import Columns, Integers, column
from kerneltrial.propose.search.space_file import Parameters, SpaceFile, filled, read_space_file
from kerneltrial.records.device import Device
from kerneltrial.records.plan import LaunchPlan, Variant

MAXIMUM_CONFIGURATIONS = 20_000
MAXIMUM_ROWS = 1_000_000  # on the way, before the last constraints
MAXIMUM_SOURCE_BYTES = 1_000_000


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
        """Return the source of one configuration, which stands alone: its parameters, then the template.

        In CUDA C++ parameters are macros, in Python they are constants of the module.
        """
        form = "#define {} {}\n" if self.file.language == "cuda_cpp" else "{} = {}\n"
        lines = [form.format(name, parameters[name]) for name in self.file.parameters]
        return ("".join(lines) + self.template).encode()

    def plan(self, parameters: Parameters) -> LaunchPlan:
        """Return the launch plan of one configuration: expressions in the dimensions alone.

        Variants that no dimensions can reach are left out, so that a source need not hold kernels that only other
        configurations launch.
        """
        try:
            document = filled(msgspec.to_builtins(self.file.plan), self.named(parameters))
            plan = msgspec.convert(document, LaunchPlan)
        except (ExpressionProblem, msgspec.ValidationError) as fault:
            raise InputProblem(f"{self.path}: plan of {dict(parameters)}: {fault}") from None
        variants = tuple(_reachable(plan.variants))
        if not variants:
            raise InputProblem(f"{self.path}: plan of {dict(parameters)}: no variant holds for any dimensions")
        return msgspec.structs.replace(plan, variants=variants)

    def named(self, parameters: Parameters) -> dict[str, int]:
        """Return the parameters with all derived names."""
        return _named(self.file, parameters)


def read_space(path: Path, device: Device | None = None) -> Space:
    """Read space.yaml and the template beside it, and enumerate the configurations.

    With a device, those that `requires` keeps for another architecture are left out, seeds too; on `cpu` all of
    `requires` are, whatever is compiled for: it executes no instruction that one architecture alone has.

    Raises
    ------
    InputProblem
        Where a file is absent or wrong, a name is unknown, a seed is no valid configuration, or nothing is valid.
    """
    file = read_space_file(path)
    if device is not None:
        file = _on(device, file)
    template = _read_template(path.parent / file.source)
    try:
        table = _enumerate(path, file)
    except ExpressionProblem as fault:
        raise InputProblem(f"{path}: {fault}") from None
    rows = zip(*(table[name].tolist() for name in file.parameters), strict=True)
    configurations = tuple(dict(zip(file.parameters, row, strict=True)) for row in rows)
    if not configurations:
        raise InputProblem(f"{path}: no configuration meets the constraints; loosen one of them")
    if len(configurations) > MAXIMUM_CONFIGURATIONS:
        many = len(configurations)
        raise InputProblem(f"{path}: {many} configurations are valid, at most {MAXIMUM_CONFIGURATIONS} can be")
    for number, seed in enumerate(file.seeds, start=1):
        if seed.parameters not in configurations:
            raise InputProblem(f"{path}: seeds, number {number}: {seed.parameters} is no valid configuration")
    return Space(path, file, template, configurations, table)


def _on(device: Device, file: SpaceFile) -> SpaceFile:
    """The file with what the device lacks as further constraints, and without seeds of it."""
    here = device.arch if device.kind == "cuda" else ""
    lacking = tuple(f"not ({needs.when})" for needs in file.requires if needs.arch != here)
    seeds = tuple(seed for seed in file.seeds if _meets(file, seed.parameters, lacking))
    return msgspec.structs.replace(file, constraints=(*file.constraints, *lacking), seeds=seeds)


def _meets(file: SpaceFile, parameters: Parameters, constraints: Iterable[str]) -> bool:
    """Whether the constraints hold; a seed with other names is no configuration, which is said elsewhere."""
    if set(parameters) != set(file.parameters):
        return True
    known = _named(file, parameters)
    return all(evaluate(constraint, known) for constraint in constraints)


def _named(file: SpaceFile, parameters: Parameters) -> dict[str, int]:
    known = dict(parameters)
    for name, expression in file.derived.items():
        known[name] = evaluate(expression, known)
    return known


def _reachable(variants: Iterable[Variant]) -> Iterator[Variant]:
    """Variants up to the first that always holds, without those that never do; both as the parameters alone tell."""
    for variant in variants:
        try:
            holds = evaluate(variant.when, {})  # `and` and `or` end at the first part that decides
        except ExpressionProblem:
            yield variant  # dimensions decide
            continue
        if holds:
            yield variant
            return


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


def _enumerate(path: Path, file: SpaceFile) -> Columns:
    """Return the valid configurations, a column a parameter; a constraint is applied once its names have values."""
    table: dict[str, Integers] = {}
    for name, (derived, constraints) in zip(file.parameters, _ready(file), strict=True):
        values = np.array(file.parameters[name], dtype=np.int64)
        rows = len(next(iter(table.values()))) if table else 1
        if rows * len(values) > MAXIMUM_ROWS:
            raise InputProblem(f"{path}: more than {MAXIMUM_ROWS} configurations at parameter {name}; add constraints")
        table = {known: np.repeat(held, len(values)) for known, held in table.items()}
        table[name] = np.tile(values, rows)
        for which in derived:
            table[which] = column(file.derived[which], table)
        for constraint in constraints:
            keep = column(constraint, table) != 0
            table = {known: held[keep] for known, held in table.items()}
    return table


def _ready(file: SpaceFile) -> list[tuple[list[str], list[str]]]:
    """Return, for each parameter, the derived names and constraints that can be evaluated once it has a value."""
    depth_of = {name: depth for depth, name in enumerate(file.parameters)}
    steps: list[tuple[list[str], list[str]]] = [([], []) for _ in file.parameters]
    for name, expression in file.derived.items():
        depth_of[name] = max((depth_of[used] for used in names(expression)), default=0)
        steps[depth_of[name]][0].append(name)
    for constraint in file.constraints:
        steps[max((depth_of[used] for used in names(constraint)), default=0)][1].append(constraint)
    return steps
