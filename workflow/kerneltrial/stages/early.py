"""What a stage starts before it imports its own modules: either takes about half a second, so both are done at once."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kerneltrial.build.preloading import preload as compilers
from kerneltrial.devices.preloading import preload as devices
from kerneltrial.records.device import DeviceKind
from kerneltrial.records.proposal import Proposal
from kerneltrial.stages.job import Job
from kerneltrial.store import envelopes

if TYPE_CHECKING:
    from kerneltrial.sandbox.nursery import Nursery

_DEVICE_STAGES = frozenset({"qualify", "validate", "time", "holdout", "confirm"})


@contextlib.contextmanager
def nursery(job: Job) -> "Iterator[Nursery | None]":
    """A nursery that holds the device, or the compilers, that the stage will want; None for a stage that wants none."""
    names = _names(job)
    if not names:
        yield None
        return
    from kerneltrial.sandbox.nursery import Nursery

    with Nursery(names) as opened:
        yield opened


def device_kind(job: Job) -> DeviceKind | None:
    """The device that the stage uses, as the lock says; None for a stage that uses none."""
    if job.stage not in _DEVICE_STAGES:
        return None
    lock = envelopes.read(job.folder / "lock.json")
    if lock is None:
        return None
    return "cuda" if lock.body["device"]["kind"] == "cuda" else "cpu"


def _names(job: Job) -> tuple[str, ...]:
    kind = device_kind(job)
    if kind is not None:
        return devices(kind, vendors=job.stage == "confirm")
    if job.stage == "propose" and _search_compiles(job):
        return compilers({_language(job.source("space"))})
    if job.stage == "build":
        return compilers({candidate.language for candidate in job.record("propose", Proposal).candidates})
    return ()


def _search_compiles(job: Job) -> bool:
    """Whether the proposer is the search on a card, which has drafts compiled before it chooses."""
    lock = envelopes.read(job.folder / "lock.json")
    return lock is not None and lock.body["proposer"] == "search" and lock.body["device"]["kind"] == "cuda"


def _language(space: Path) -> str:
    """What a space is written in; what is wrong with the file is said by whoever searches it."""
    from kerneltrial.inputs.documents import read_document

    document = read_document(space)
    language = document.get("language") if isinstance(document, dict) else None
    return "numba_cuda" if language == "numba_cuda" else "cuda_cpp"
