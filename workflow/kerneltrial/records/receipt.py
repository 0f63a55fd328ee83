"""A reviewer's receipt: someone who was not part of the trial saw the lock before the first proposal."""

from kerneltrial.records.record import Digest, Record


class Receipt(Record, tag_field="state", tag="received"):
    """`lock` is the digest of the lock's record that the reviewer signed."""

    reviewer: str
    lock: Digest


class NoReceipt(Record, tag_field="state", tag="none"):
    """Nobody outside the trial has signed for the lock."""
