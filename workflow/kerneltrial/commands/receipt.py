"""`kerneltrial receipt SIGNATURE`: take in a reviewer's signature under the lock page, before the first proposal."""

import argparse
from pathlib import Path

from kerneltrial.commands.configuration import read_config
from kerneltrial.commands.locking import now
from kerneltrial.commands.trial_records import alone, record
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.records.lock import Lock
from kerneltrial.records.terms import Agreed, Terms
from kerneltrial.store import journal
from kerneltrial.store.canonical import canonical, digest
from kerneltrial.store.files import write_atomic
from kerneltrial.store.signed import Signed


def run(given: argparse.Namespace, root: Path) -> int:
    """Check the signature by the locked file of reviewers' keys, and keep it; 3 where it does not count."""
    from kerneltrial.evidence import chain
    from kerneltrial.evidence.lock_page import lock_pages
    from kerneltrial.evidence.receipts import received

    signature_file = (root / given.signature).resolve()
    config, root = read_config(given, root)
    results = alone(root, config.trial)
    if not config.reviewers:
        raise InputProblem(
            "config.yaml: reviewers is empty; name a file of reviewers' public keys and lock a new trial"
        )
    if not signature_file.is_file():
        raise InputProblem(f"{given.signature}: no such file; the reviewer's ssh-keygen makes lock-page.txt.sig")
    lock, terms = record(root, config.trial, "lock", Lock), record(root, config.trial, "terms", Terms)
    signature, signed = signature_file.read_bytes(), Signed(results)
    before = {name: head.digest for name, head in chain.heads(chain.fragments(results)).items()}
    receipt = received(lock, terms, signature, root / config.reviewers, before)
    pages = lock_pages(lock, _version(terms, receipt.terms))
    write_atomic(signed.page, next(page for page in pages if digest(page) == receipt.page))
    write_atomic(signed.receipt_signature, signature)
    write_atomic(signed.receipt, canonical(receipt))
    event = {"stage": "receipt", "iteration": 0, "receipt": signed.receipt_digest(), "at": now()}
    journal.append(results / "journal" / "receipt.jsonl", event)
    print(f"received from {receipt.reviewer} ({receipt.key}), {receipt.received_at}; now run snakemake")
    return 0


def _version(terms: Terms, name: str) -> Agreed:
    versions = (terms.first, *terms.amendments)
    return next(version for version in versions if digest(canonical(version)) == name)
