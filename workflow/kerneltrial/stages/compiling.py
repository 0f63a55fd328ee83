"""The compiler as the trial's lock fixes it."""

from kerneltrial.build.builder import Builder
from kerneltrial.records.lock import Lock
from kerneltrial.sandbox.nursery import Nursery
from kerneltrial.stages.job import Job


def open_builder(job: Job, lock: Lock, nursery: Nursery) -> Builder:
    """A builder for the trial's contract and architecture; include folders are relative to the contract's file."""
    device = lock.device
    return Builder(nursery, lock.contract, device.arch, device.kind, folder=job.source("contract").parent)
