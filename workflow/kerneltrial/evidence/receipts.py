"""Receipts: taking one in before the first proposal, and judging later whether it counts."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from kerneltrial.evidence.lock_page import lock_pages
from kerneltrial.evidence.problem import EvidenceProblem
from kerneltrial.evidence.signatures import LOCK, RECEIPT, Signer, key_of, signer
from kerneltrial.records.lock import Lock
from kerneltrial.records.receipt import NoReceipt, Receipt
from kerneltrial.records.terms import Agreed, Terms
from kerneltrial.store import journal
from kerneltrial.store.canonical import canonical, decode, digest
from kerneltrial.store.problem import StoreProblem
from kerneltrial.store.signed import Signed

FIRST_PROPOSAL = "propose-0001"


def received(lock: Lock, terms: Terms, signature: bytes, keys: Path, before: dict[str, str]) -> Receipt:
    """The receipt for a signature that arrives now; `before` are the journal's heads.

    Raises
    ------
    EvidenceProblem
        A proposal is there already, the key is foreign or expired, or other bytes were signed.
    """
    late = sorted(name for name in before if name.startswith("propose"))
    if late:
        raise EvidenceProblem(
            f"{late[0]}: proposals were made already, so a receipt would say nothing of them; `kerneltrial lock --new` "
            "starts a trial whose lock can be seen first"
        )
    if not signature.startswith(b"-----BEGIN SSH SIGNATURE-----"):
        raise EvidenceProblem(
            "what was given is no SSH signature; give the file that `ssh-keygen -Y sign` wrote, lock-page.txt.sig"
        )
    now = datetime.now(UTC)
    who, agreed, page = _signed_version(lock, terms, signature, keys, now.strftime("%Y%m%d%H%M%S"))
    return Receipt(
        reviewer=who.name,
        key=who.key,
        lock=digest(canonical(lock)),
        terms=digest(canonical(agreed)),
        page=digest(page),
        signature=digest(signature),
        received_at=now.isoformat(timespec="seconds"),
        heads=before,
    )


def _signed_version(lock: Lock, terms: Terms, signature: bytes, keys: Path, at: str) -> tuple[Signer, Agreed, bytes]:
    """Which version of the terms stands on the signed page, and who signed it."""
    why = ""
    versions = (terms.now, *reversed(terms.amendments), terms.first)
    for agreed, page in ((version, page) for version in versions for page in lock_pages(lock, version)):
        try:
            return signer(page, signature, keys, RECEIPT, at), agreed, page
        except EvidenceProblem as problem:
            why = str(problem)
    raise EvidenceProblem(f"the receipt is refused: {why}")


def receipt_of(results: Path, lock: Lock, terms: Terms, keys: Path | None) -> Receipt | NoReceipt:
    """The trial's receipt where it counts, by the locked file of reviewers' keys; it is judged as of its arrival.

    The same evidence gives the same answer on any day, so that the decision can be made again.
    """
    signed = Signed(results)
    if not signed.receipt.is_file():
        return NoReceipt()
    if keys is None:
        return NoReceipt(why="the config names no reviewers, so nobody's signature counts")
    try:
        receipt = decode(Receipt, signed.receipt.read_bytes())
        signature = signed.receipt_signature.read_bytes()
        at = datetime.fromisoformat(receipt.received_at).astimezone(UTC).strftime("%Y%m%d%H%M%S")
        who, agreed, page = _signed_version(lock, terms, signature, keys, at)
    except (OSError, ValueError, EvidenceProblem) as fault:
        return NoReceipt(why=f"there is one that does not count: {fault}")
    expected = (who.name, who.key, digest(canonical(lock)), digest(canonical(agreed)), digest(page), digest(signature))
    if expected != (receipt.reviewer, receipt.key, receipt.lock, receipt.terms, receipt.page, receipt.signature):
        return NoReceipt(why="there is one that says other things than were signed")
    wrong = next(iter([*_own_key(signed, page, receipt), *_late(signed, receipt)]), "")
    return NoReceipt(why=wrong) if wrong else receipt


def _own_key(signed: Signed, page: bytes, receipt: Receipt) -> Iterator[str]:
    if signed.lock_signature.is_file():
        try:
            team = key_of(page, signed.lock_signature.read_bytes(), LOCK)
        except EvidenceProblem:
            return  # over another version of the page; `verify` says so
        if team == receipt.key:
            yield "the same key signed the lock for the team and the receipt for the reviewer"


def _late(signed: Signed, receipt: Receipt) -> Iterator[str]:
    """The first proposal's line in the journal names the receipt that was there when it was made."""
    try:
        lines = journal.read(signed.results / "journal" / f"{FIRST_PROPOSAL}.jsonl")
    except StoreProblem:
        lines = []
    if any(name.startswith("propose") for name in receipt.heads):
        yield "the receipt came when proposals had been made"
    elif lines and lines[0].event.get("receipt") != signed.receipt_digest():
        yield "the receipt was not there when the first proposal was made"
