"""The one table of what each stage reads and makes. The rules, the stages and the staleness check all ask here."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kerneltrial.inputs.file_keys import FILE_KEYS
from kerneltrial.store.signed import Signed

LOCKED_KEYS = (
    "trial",
    "device",
    "arch",
    "proposer",
    "languages",
    "candidates_per_iteration",
    "seed",
    "sandbox",
    "oracle_author",
    "oracle_by_proposer",
    "protocol",
    "model",
    "command",
    "stop",
    "application",
    "end_to_end",
)
TERMS_KEYS = ("iterations", "policy", "prices", "workload")


@dataclass(frozen=True)
class Stage:
    """One stage. Names in `same`, `earlier`, `every` are stages whose records it reads.

    `reads` are config keys that it is handed, and no others; `sources` are groups of files; `code` names modules beside
    the stage's own that do its work in child processes. `earlier` takes records of all earlier iterations, `every`
    those of all iterations, `upto` those of this one and all earlier ones; `after` only orders. `receipt`: it reads the
    reviewer's receipt, where there is one.
    """

    record: str
    reads: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    same: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ()
    upto: tuple[str, ...] = ()
    every: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    loop: bool = False
    ledger: bool = False
    receipt: bool = False


_RUNNER = ("devices.serving", "devices.cpu.device", "devices.cuda.device", "devices.cuda.sanitized")
_COMPILER = ("build.nvrtc", "build.numba_ptx")
_JUDGED = ("propose", "build", "validate", "time", "holdout")

STAGES: dict[str, Stage] = {  # in topological order
    "lock": Stage("lock", reads=(*LOCKED_KEYS, "prices.model"), sources=FILE_KEYS, ledger=True),
    "terms": Stage("terms", reads=TERMS_KEYS, same=("lock",), ledger=True),
    "qualify": Stage(
        "qualification",
        sources=("contract", "baseline", "cases", "oracle", "reference"),
        same=("lock",),
        code=_RUNNER + _COMPILER,
    ),
    "prize": Stage("prize", reads=("policy", "prices", "workload"), same=("qualify",), ledger=True),
    "propose": Stage(
        "proposal",
        reads=("program",),
        sources=("space", "candidates", "baseline", "replies", "program", "contract", "cases", "oracle"),
        same=("lock", "qualify"),
        earlier=("propose", "build", "validate", "time"),
        after=("prize",),
        code=_RUNNER + _COMPILER,
        loop=True,
    ),
    "build": Stage(
        "build", sources=("contract",), same=("lock", "propose"), earlier=("build",), code=_COMPILER, loop=True
    ),
    "validate": Stage(
        "validation",
        sources=("cases", "oracle"),
        same=("lock", "qualify", "propose", "build"),
        code=_RUNNER,
        loop=True,
    ),
    "time": Stage(
        "timing",
        sources=("cases", "oracle"),
        same=("lock", "qualify", "propose", "build", "validate"),
        code=_RUNNER,
        loop=True,
    ),
    "holdout": Stage(
        "holdout",
        sources=("cases", "oracle", "holdout"),
        same=("lock", "qualify", "propose", "build", "validate"),
        code=_RUNNER,
        loop=True,
    ),
    "cost": Stage("cost", reads=("prices", "workload"), upto=("propose", "validate", "time", "holdout"), loop=True),
    "confirm": Stage(
        "confirmation",
        reads=("iterations",),
        sources=("cases", "oracle", "application"),
        same=("lock", "qualify"),
        every=_JUDGED,
        code=_RUNNER,
    ),
    "decide": Stage(
        "decision",
        reads=("iterations",),
        sources=("reviewers",),
        same=("lock", "terms", "qualify", "prize", "confirm"),
        every=(*_JUDGED, "cost"),
        receipt=True,
    ),
    "report": Stage(
        "report",
        reads=("iterations", "report"),
        sources=("cases", "oracle"),
        same=("lock", "terms", "qualify", "prize", "confirm", "decide"),
        every=(*_JUDGED, "cost"),
    ),
}


def results(trial: str) -> str:
    return f"results/{trial}"


def reports(trial: str) -> str:
    return f"reports/{trial}"


def record_path(trial: str, stage: str, iteration: int = 0) -> str:
    spec = STAGES[stage]
    return f"{results(trial)}/" + (f"iterations/{iteration:04d}/" if spec.loop else "") + f"{spec.record}.json"


def fragment_path(trial: str, stage: str, iteration: int = 0) -> str:
    return f"{results(trial)}/journal/{_job(stage, iteration)}.jsonl"


def printed_path(trial: str, stage: str, iteration: int = 0) -> str:
    """The file, beside the stage's log, with what the oracle printed in it; absent where it printed nothing."""
    return f"{results(trial)}/logs/{_job(stage, iteration)}.oracle.txt"


def _job(stage: str, iteration: int) -> str:
    """A stage's name, with the iteration's number where it has one, as files of each job are named."""
    return f"{stage}-{iteration:04d}" if STAGES[stage].loop else stage


def ledger_path(trial: str, stage: str) -> str:
    return f"{results(trial)}/ledger/{stage}.jsonl"


def received(trial: str, stage: str, root: Path) -> list[str]:
    """Paths of the receipt and the signatures that a stage reads, of those that are there."""
    signed = Signed(Path(results(trial)))
    paths = (signed.receipt, signed.receipt_signature, signed.lock_signature) if STAGES[stage].receipt else ()
    return [path.as_posix() for path in paths if (root / path).is_file()]


def again_path(trial: str, iteration: int) -> str:
    """The file that says how often an iteration was asked for anew; absent where it never was."""
    return f"{results(trial)}/again/{iteration:04d}.json"


def jobs(iterations: int) -> Iterator[tuple[str, int]]:
    """Every job of a trial with so many iterations, inputs before outputs."""
    names = list(STAGES)
    first = names.index("propose")
    last = names.index("confirm")
    yield from ((stage, 0) for stage in names[:first])
    for iteration in range(1, iterations + 1):
        yield from ((stage, iteration) for stage in names[first:last])
    yield from ((stage, 0) for stage in names[last:])


def record_inputs(trial: str, stage: str, iteration: int, iterations: int) -> list[str]:
    """Paths of the records that a job reads, without repeats."""
    spec = STAGES[stage]
    pairs = [(name, iteration) for name in spec.same]
    pairs += [(name, i) for i in range(1, iteration) for name in spec.earlier]
    pairs += [(name, i) for i in range(1, iteration + 1) for name in spec.upto]
    pairs += [(name, i) for i in range(1, iterations + 1) for name in spec.every]
    return list(dict.fromkeys(record_path(trial, name, i) for name, i in pairs))


def iterations_present(trial: str, root: Path) -> list[int]:
    """Numbers of the iterations that have a folder."""
    return sorted(int(p.name) for p in (root / results(trial) / "iterations").glob("[0-9][0-9][0-9][0-9]"))
