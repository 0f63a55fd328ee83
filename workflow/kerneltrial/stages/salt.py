"""The holdout's salt: made with the lock, kept in a folder that no child can read, revealed at the seal."""

import secrets

from kerneltrial.inputs.holdout import commitment
from kerneltrial.stages.job import Job
from kerneltrial.store.files import write_once
from kerneltrial.store.problem import StoreProblem

_NAME = "holdout-salt"


def ready_salt(job: Job) -> bytes:
    """The trial's salt, drawn at the first lock."""
    path = job.private / _NAME
    if not path.exists():
        write_once(path, secrets.token_bytes(32), mode=0o400)
    return path.read_bytes()


def read_salt(job: Job) -> bytes:
    """The salt that the lock committed to; raise StoreProblem where it is gone or is another."""
    from kerneltrial.records.lock import Lock

    path = job.private / _NAME
    if not path.is_file():
        raise StoreProblem(
            f"{path.relative_to(job.root)} is missing: sealed cases cannot be drawn; restore it from a copy"
        )
    salt = path.read_bytes()
    if commitment(salt) != job.record("lock", Lock).holdout_commitment:
        raise StoreProblem(
            f"{path.relative_to(job.root)} is not the salt that the lock committed to; restore it from a copy"
        )
    return salt
