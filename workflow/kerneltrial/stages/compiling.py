"""The compiler as the trial's lock fixes it."""

from typing import TYPE_CHECKING

from kerneltrial.build.builder import LIMITS, Builder
from kerneltrial.build.compilers import Compilers
from kerneltrial.records.lock import Lock
from kerneltrial.sandbox.nursery import Nursery
from kerneltrial.stages.code_folder import compiled_of
from kerneltrial.stages.job import Job

if TYPE_CHECKING:
    from kerneltrial.build.given import Given


def open_given(lock: Lock, nursery: Nursery) -> "Given":
    """What takes a baseline that is a binary already."""
    from kerneltrial.build.given import Given  # numpy comes with it, and a stage that builds sources needs none

    return Given(Compilers(nursery, lock.device.arch, LIMITS), lock.contract, lock.device)


def open_builder(job: Job, lock: Lock, nursery: Nursery, *, shelved: bool = False) -> Builder:
    """A builder for the trial's contract and architecture; include folders are relative to the contract's file.

    With `shelved`, what an earlier stage of this trial compiled is taken and kept. Whoever judges another's evidence
    compiles everything anew.
    """
    folder, shelf = job.source("contract").parent, compiled_of(job) if shelved else None
    return Builder(nursery, lock.contract, lock.device.arch, folder=folder, shelf=shelf)
