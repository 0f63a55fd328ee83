"""The prompt of one iteration, from records alone: a static part that providers cache, and what was learnt so far.

Nothing of the holdout is handed to this module: it takes the contract, the cases in view, the baseline, the card, and
the records of earlier iterations less holdout and cost. Secrets and host paths are scrubbed from the result.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, get_args

import jinja2

from kerneltrial.build.nvrtc import STANDARD
from kerneltrial.inputs.expressions import evaluate
from kerneltrial.propose.history import Iteration
from kerneltrial.propose.prompt.attempts import Read, told
from kerneltrial.propose.prompt.directive import direct
from kerneltrial.propose.prompt.learnt import Showing, learnt, plan_text
from kerneltrial.propose.prompt.quoted import fenced, one_line
from kerneltrial.propose.prompt.scrub import scrub
from kerneltrial.propose.search.card import card_of
from kerneltrial.records.case import Case
from kerneltrial.records.compilers import CompilerLatency
from kerneltrial.records.contract import Contract, Tolerance
from kerneltrial.records.lock import Lock
from kerneltrial.records.plan import DType
from kerneltrial.records.profile import Profiled
from kerneltrial.records.qualification import BaselineLatency, Qualification
from kerneltrial.records.record import Digest
from kerneltrial.records.roofline import Ceilings, Floor

TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Known:
    """What a prompt is made from. `read` gives an object by digest; `folders` are this host's, to be scrubbed.

    `environment` holds the variables whose secrets are scrubbed; None is this process's own.
    """

    lock: Lock
    qualification: Qualification
    baseline_source: str
    read: Read
    folders: tuple[Path, ...] = ()
    environment: Mapping[str, str] | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Prompt:
    """`instructions` stay the same over a trial, `feedback` does not; `parents` are candidates that it builds on."""

    instructions: str
    feedback: str
    parents: tuple[Digest, ...]

    @property
    def whole(self) -> str:
        return f"{self.instructions}\n{self.feedback}"


def prompt(known: Known, iterations: Sequence[Iteration], sample: int = 1) -> Prompt:
    """Return the prompt of the iteration after `iterations`; `sample` counts the answers asked for in it."""
    attempts = told(iterations)
    directive = direct(attempts)
    showing = Showing(known.lock, known.read, card_of(known.lock.device), known.baseline_source)
    feedback = _rendered(
        "feedback.md.j2", iteration=len(iterations) + 1, sample=sample, **learnt(showing, attempts, directive)
    )
    parent = directive.parent
    parents = (parent.candidate.id,) if parent is not None and parent.candidate is not None else ()
    if directive.kind == "different":
        parents = ()
    return Prompt(_scrubbed(known, _instructions(known)), _scrubbed(known, feedback), parents)


def program_text(lock: Lock) -> str:
    """What a program has to know beyond the prompt: how to answer, and how to have a draft judged."""
    return _rendered("program.md.j2", command=lock.command, timed=lock.device.kind == "cuda")


def _instructions(known: Known) -> str:
    lock, performance, profile = known.lock, known.qualification.performance, known.qualification.profile
    timed = isinstance(performance, BaselineLatency)
    floors = performance.floors if isinstance(performance, BaselineLatency) else {}
    return _rendered(
        "instructions.md.j2",
        lock=lock,
        contract=lock.contract,
        bounds={name: _bound(tolerance) for name, tolerance in lock.contract.tolerances.items()},
        headers=sorted(STANDARD),
        nvrtc=lock.toolchain.get("nvidia-cuda-nvrtc", ""),
        options=[*_defines(lock.contract), *lock.contract.options],
        dtypes=get_args(DType),
        cases=[_case(known, case.name, floors.get(case.name)) for case in lock.cases.cases],
        timed=timed,
        compilers=[_compiler(c) for c in known.qualification.compilers.entries if isinstance(c, CompilerLatency)],
        ceilings=_ceilings(performance) if isinstance(performance, BaselineLatency) else None,
        card=card_of(lock.device),
        baseline=known.baseline_source.rstrip(),
        profile=profile.sentence if isinstance(profile, Profiled) else "",
        baseline_plan=plan_text(known.qualification.baseline_plan),
    )


def _bound(tolerance: Tolerance) -> str:
    """The right side of |got - want| <= ...; parts of zero are left out."""
    parts = {
        f"{tolerance.absolute}": tolerance.absolute,
        f"{tolerance.relative} * |want|": tolerance.relative,
        f"{tolerance.scaled} * eps * sum of absolute terms": tolerance.scaled,
    }
    return " + ".join(text for text, value in parts.items() if value) or "0"


def _defines(contract: Contract) -> list[str]:
    return [f"-D{name}={value}" if value else f"-D{name}" for name, value in contract.defines.items()]


def _case(known: Known, name: str, floor: object) -> dict[str, Any]:
    """A case in view: shape, work, the baseline's figure, and the least time where a roofline is known."""
    contract, performance = known.lock.contract, known.qualification.performance
    case = next(case for case in known.lock.cases.cases if case.name == name)
    figure = performance.cases.get(name)
    unit = "µs" if isinstance(performance, BaselineLatency) else "score"
    return {
        "name": name,
        "kind": case.kind,
        "dimensions": ", ".join(f"{key}={size}" for key, size in case.dimensions.items()) + _residency(case),
        "operations": f"{evaluate(contract.operations, case.dimensions):,}",
        "bytes": f"{evaluate(contract.bytes, case.dimensions):,}",
        "baseline": "" if figure is None else f"{figure:.4g} {unit}",
        "floor": f"{floor.floor_us:.4g} µs ({floor.bound})" if isinstance(floor, Floor) else "",
    }


def _residency(case: Case) -> str:
    return f"; production finds {', '.join(case.warm)} in the L2 and all else in memory" if case.warm else ""


def _compiler(found: CompilerLatency) -> str:
    cases = ", ".join(f"{case} {us:.4g} µs" for case, us in sorted(found.cases.items()))
    return f"{found.name.replace('_', '.')} {found.version}: {cases}"


def _ceilings(performance: BaselineLatency) -> dict[str, str] | None:
    found = performance.ceilings
    if not isinstance(found, Ceilings):
        return None
    return {
        "reads and writes of memory": f"{found.dram_bytes_per_s / 1e12:.3g} TB/s",
        "reads that stay in the L2": f"{found.l2_bytes_per_s / 1e12:.3g} TB/s (it holds {found.l2_bytes / 1e6:.3g} MB)",
        "float32 multiply-adds": f"{found.fp32_flop_per_s / 1e12:.3g} TFLOP/s",
        "float64 multiply-adds": f"{found.fp64_flop_per_s / 1e12:.3g} TFLOP/s",
        "one empty launch": f"{found.launch_us:.3g} µs",
    }


def _scrubbed(known: Known, text: str) -> str:
    return scrub(text, known.folders, known.environment)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # it is text for a model, and no page
    )
    environment.filters |= {"fenced": fenced, "one_line": one_line}
    return environment


def _rendered(name: str, **values: object) -> str:
    return _environment().get_template(name).render(**values)
