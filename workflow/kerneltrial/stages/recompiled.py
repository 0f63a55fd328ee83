"""Sources compiled again for a verification: by the locked compiler the same PTX and machine code come out."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kerneltrial.build.preloading import preload
from kerneltrial.dag import graph
from kerneltrial.dag.freshness import Digests
from kerneltrial.inputs.config import Config
from kerneltrial.inputs.toolchain import toolchain
from kerneltrial.records.build import Build, Built, Cubin, NotBuilt
from kerneltrial.records.candidate import Candidate
from kerneltrial.records.decision import Decision, Winner
from kerneltrial.records.lock import Lock
from kerneltrial.records.proposal import Proposal
from kerneltrial.sandbox.nursery import Nursery
from kerneltrial.stages.compiling import open_builder
from kerneltrial.stages.running import job_of
from kerneltrial.store import envelopes
from kerneltrial.store.canonical import convert
from kerneltrial.store.objects import Objects

_TRIES = 8  # more compiles of a source whose first one gave other bytes, each at other addresses


@dataclass(frozen=True)
class Recompiled:
    """What did not come out again, and a word on what was compiled."""

    problems: tuple[str, ...]
    note: str


def recompiled(config: Config, root: Path, every: bool) -> Recompiled:
    """Compile the winner again, or with `every` all candidates, each in a limited child, and compare digests.

    Bytes are compared only under the same versions of all compiler packages; under others a difference would show
    nothing.
    """
    lock_envelope = envelopes.read(root / graph.record_path(config.trial, "lock"))
    if lock_envelope is None:
        return Recompiled((), "not compiled again: there is no lock")
    lock = convert(Lock, lock_envelope.body)
    now = toolchain()
    other = [name for name, version in sorted(lock.toolchain.items()) if now.get(name) != version]
    if other:
        return Recompiled((), f"not compiled again: another {', '.join(other)} is here")
    winner = _winner(config, root)
    if not every and winner is None:
        return Recompiled((), "not compiled again: there is no winner")
    wanted = None if every or winner is None else winner.candidate
    iterations = [winner.iteration] if wanted and winner else graph.iterations_present(config.trial, root)
    problems, count = list[str](), 0
    for iteration in iterations:
        found = list(_pairs(config, root, iteration, wanted))
        count += len(found)
        problems += _differences(config, root, lock, iteration, found)
    return Recompiled(tuple(problems), f"{'all ' if every else ''}{count} compiled again")


def _winner(config: Config, root: Path) -> Winner | None:
    envelope = envelopes.read(root / graph.record_path(config.trial, "decide"))
    winner = convert(Decision, envelope.body).winner if envelope else None
    return winner if isinstance(winner, Winner) else None


def _pairs(config: Config, root: Path, iteration: int, wanted: str | None) -> Iterator[tuple[Candidate, Built]]:
    read = [envelopes.read(root / graph.record_path(config.trial, stage, iteration)) for stage in ("propose", "build")]
    if read[0] is None or read[1] is None:
        return  # named as torn or missing elsewhere
    proposal, build = convert(Proposal, read[0].body), convert(Build, read[1].body)
    candidates = {candidate.id: candidate for candidate in proposal.candidates}
    for built in build.candidates:
        if isinstance(built, Built) and wanted in (None, built.candidate) and built.candidate in candidates:
            yield candidates[built.candidate], built


def _differences(
    config: Config, root: Path, lock: Lock, iteration: int, found: list[tuple[Candidate, Built]]
) -> Iterator[str]:
    """What does not come out again. NVRTC's output depends on addresses, which only some hosts let be fixed
    (workflow/adr/0030-equal-binaries.md), so a difference counts when it stays at several addresses.
    """
    job = job_of(config, "build", iteration, Digests(root))
    path, left, said = graph.record_path(config.trial, "build", iteration), found, dict[str, str]()
    # the same clean process as the build's: what numba loads beside NVRTC changes some of its texts
    languages = {candidate.language for candidate in job.record("propose", Proposal).candidates}
    for number in range(1 + _TRIES):
        if not left:
            break
        sources = [(candidate, job.objects.get(candidate.source)) for candidate, _ in left]
        names, first = preload(languages, placed=number == 0), number == 0
        with tempfile.TemporaryDirectory() as scratch, Nursery(names, fixed=first) as nursery:
            again = open_builder(job, lock, nursery).build_all(sources, Objects(Path(scratch)))
        left = [pair for pair, made in zip(left, again, strict=True) if not _is_again(pair[1], made)]
        said = {made.candidate: _said(made) for made in again}
    yield from (f"{path}: candidate {candidate.id[:12]}{said[candidate.id]}" for candidate, _ in left)


def _is_again(told: Built, made: Built | NotBuilt) -> bool:
    return isinstance(made, Built) and (made.ptx, _machine(made)) == (told.ptx, _machine(told))


def _said(made: Built | NotBuilt) -> str:
    if isinstance(made, Built):
        return f": its source compiles to another binary than is here, {1 + _TRIES} times"
    return f" does not compile again: {made.detail.splitlines()[0]}"


def _machine(built: Built) -> str:
    return built.cubin.digest if isinstance(built.cubin, Cubin) else ""
