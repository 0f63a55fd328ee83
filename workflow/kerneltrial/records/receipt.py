"""A reviewer's receipt: someone who was not part of the trial saw the lock before the first proposal."""

from kerneltrial.records.record import Digest, Record


class Receipt(Record, tag_field="state", tag="received"):
    """What was received, and when.

    `reviewer` and `key` are the name and the fingerprint that the locked file of reviewers' keys gives; `lock` and
    `terms` are digests of the bodies that the signed page names, `page` and `signature` of the files. `heads` maps the
    journal's fragments at that time to the digest of their last line: there was no proposal among them.
    """

    reviewer: str
    key: str
    lock: Digest
    terms: Digest
    page: Digest
    signature: Digest
    received_at: str
    heads: dict[str, Digest]


class NoReceipt(Record, tag_field="state", tag="none"):
    """Nobody outside the trial has signed for the lock in time, and why what there is does not count."""

    why: str = "there is no reviewer's signature"
