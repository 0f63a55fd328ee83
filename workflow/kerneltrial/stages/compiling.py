"""The compiler as the trial's lock fixes it."""

from kerneltrial.build.builder import LIMITS, Builder
from kerneltrial.build.compilers import Compilers
from kerneltrial.build.given import Given
from kerneltrial.records.lock import Lock
from kerneltrial.sandbox.nursery import Nursery
from kerneltrial.stages.job import Job


def open_given(lock: Lock, nursery: Nursery) -> Given:
    """What takes a baseline that is a binary already."""
    return Given(Compilers(nursery, lock.device.arch, LIMITS), lock.contract, lock.device)


def open_builder(job: Job, lock: Lock, nursery: Nursery) -> Builder:
    """A builder for the trial's contract and architecture; include folders are relative to the contract's file."""
    device = lock.device
    return Builder(nursery, lock.contract, device.arch, device.kind, folder=job.source("contract").parent)
