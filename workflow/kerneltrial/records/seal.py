"""The seal: the end of a trial. It names all that was found and reveals the sealed cases."""

from typing import Annotated

from msgspec import Meta

from kerneltrial.records.case import Case
from kerneltrial.records.decision import Outcome
from kerneltrial.records.record import Count, Digest, Name, Record

Salt = Annotated[str, Meta(pattern=r"^[0-9a-f]{32,128}(?!\n)$", description="hexadecimal")]


class Head(Record):
    """How many lines a fragment of the journal has, and the digest of the last."""

    lines: Count
    digest: Digest


class Seal(Record):
    """`lock`, `terms` and `decision` are digests of these records' bodies, `chain` the digest of the chain's last line.

    `salt` is what the lock committed to; `sealed_cases` are the cases that it gave each candidate that came so far.
    """

    trial: Name
    lock: Digest
    terms: Digest
    decision: Digest
    outcome: Outcome
    chain: Digest
    heads: dict[str, Head]
    salt: Salt
    sealed_cases: dict[Digest, tuple[Case, ...]]
    sealed_at: str
