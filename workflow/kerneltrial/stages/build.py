"""Build: compile each candidate in a limited child; what does not compile is a value."""

import contextlib
from collections.abc import Iterable, Iterator

import msgspec

from kerneltrial.build.preloading import preload
from kerneltrial.records.build import Build, Built, NotBuilt
from kerneltrial.records.lock import Lock
from kerneltrial.records.proposal import Proposal
from kerneltrial.sandbox.nursery import Nursery
from kerneltrial.stages.compiling import open_builder
from kerneltrial.stages.job import Job


def run(job: Job) -> Build:
    """Build this iteration's candidates; equal PTX of an earlier candidate is noted."""
    lock, proposal = job.record("lock", Lock), job.record("propose", Proposal)
    if not proposal.candidates:
        return Build(candidates=())
    sources = [job.objects.get(candidate.source) for candidate in proposal.candidates]
    with contextlib.ExitStack() as own:
        languages = {candidate.language for candidate in proposal.candidates}
        builder = open_builder(job, lock, job.nursery or own.enter_context(Nursery(preload(languages))), shelved=True)
        built = builder.build_all(list(zip(proposal.candidates, sources, strict=True)), job.objects)
    earlier = [entry for record in job.records("build", Build) for entry in record.candidates]
    return Build(candidates=tuple(_with_twins(built, earlier)))


def _with_twins(built: Iterable[Built | NotBuilt], earlier: Iterable[Built | NotBuilt]) -> Iterator[Built | NotBuilt]:
    """The builds, each with the candidates before it that have the same PTX."""
    known: dict[str, tuple[str, ...]] = {}
    for entry in earlier:
        if isinstance(entry, Built):
            known[entry.ptx] = (*known.get(entry.ptx, ()), entry.candidate)
    for entry in built:
        if isinstance(entry, Built):
            twins = known.get(entry.ptx, ())
            known[entry.ptx] = (*twins, entry.candidate)
            yield msgspec.structs.replace(entry, same_ptx_as=twins)
        else:
            yield entry
