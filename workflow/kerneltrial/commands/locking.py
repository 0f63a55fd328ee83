"""`kerneltrial lock` by hand: lock and terms, then the page that a reviewer reads and signs."""

from datetime import UTC, datetime
from pathlib import Path

from kerneltrial.commands.trial_records import record
from kerneltrial.dag import graph
from kerneltrial.inputs.config import Config
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.records.lock import Lock
from kerneltrial.records.terms import Terms
from kerneltrial.store import journal
from kerneltrial.store.canonical import digest
from kerneltrial.store.files import write_atomic
from kerneltrial.store.signed import Signed


def show_page(config: Config, root: Path, key: Path | None) -> None:
    """Write and print the lock page; sign it for the team where a key is named."""
    from kerneltrial.evidence.lock_page import lock_page
    from kerneltrial.evidence.signatures import LOCK, sign

    results = root / graph.results(config.trial)
    signed = Signed(results)
    lock, terms = record(root, config.trial, "lock", Lock), record(root, config.trial, "terms", Terms)
    page = lock_page(lock, terms.now)
    if not signed.receipt.is_file():  # what was signed stays what it was
        write_atomic(signed.page, page)
    print(page.decode(), end="")
    if key is not None:
        if graph.iterations_present(config.trial, root):
            raise InputProblem("--sign: proposals were made already; `kerneltrial lock --new` starts a trial anew")
        signature = sign(page, key, LOCK)
        write_atomic(signed.lock_signature, signature)
        event = {"stage": "sign", "iteration": 0, "signature": digest(signature), "at": now()}
        journal.append(results / "journal" / "sign.jsonl", event)
        print(f"signed: {signed.lock_signature.relative_to(root)}")
    print(f"for the reviewer: {signed.page.relative_to(root)}")


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
