"""What seal, receipt, signatures and heads that were handed out say, held against the evidence that is here."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kerneltrial.evidence import chain
from kerneltrial.evidence.lock_page import lock_pages
from kerneltrial.evidence.manifest import differences, parse
from kerneltrial.evidence.members import foreign
from kerneltrial.evidence.problem import EvidenceProblem
from kerneltrial.evidence.receipts import receipt_of
from kerneltrial.evidence.sealing import sealed_cases
from kerneltrial.evidence.signatures import LOCK, RECEIPT, SEAL, signer
from kerneltrial.evidence.verdict import Verdict
from kerneltrial.inputs.documents import read_document, to_record
from kerneltrial.inputs.holdout import commitment
from kerneltrial.records.case import HoldoutDomain
from kerneltrial.records.envelope import Envelope
from kerneltrial.records.lock import Lock
from kerneltrial.records.problem import Problem
from kerneltrial.records.receipt import NoReceipt
from kerneltrial.records.record import Record
from kerneltrial.records.seal import Seal
from kerneltrial.records.terms import Terms
from kerneltrial.store import envelopes
from kerneltrial.store.canonical import builtins, canonical, convert, decode, digest
from kerneltrial.store.problem import StoreProblem
from kerneltrial.store.signed import Signed, is_sealed


@dataclass(frozen=True)
class Evidence:
    """Where the evidence lies: the trial's results, all files by their path in a bundle, SHA256SUMS, its signature."""

    results: Path
    root: Path
    files: Mapping[str, Path]
    sums: Path
    sums_signature: Path


@dataclass(frozen=True)
class Brought:
    """What the reader brings: a file of keys, the time at which they must be valid, heads that were handed to him.

    `under_way`: it is his own trial, which need not have been sealed yet.
    """

    keys: Path | None = None
    at: str = ""
    heads: Path | None = None
    under_way: bool = False


def look(evidence: Evidence, brought: Brought, verdict: Verdict) -> None:
    """Add what is wrong with the seal and what belongs to it; of another version's, with its bytes and signatures."""
    extra = foreign(evidence.files, evidence.results.name)
    verdict.look(
        "bytes", (f"{path}: is extra: it is no part of evidence; nothing in it was looked at" for path in extra)
    )
    verdict.look("bytes", _chain(evidence))
    if evidence.sums.is_file():
        try:
            verdict.look("bytes", differences(parse(evidence.sums.read_bytes()), evidence.files))
        except EvidenceProblem as problem:
            verdict.look("bytes", [str(problem)])
    else:
        what = "SHA256SUMS is not here" if is_sealed(evidence.results) else "not sealed"
        verdict.note("bytes", f"{what}: what was added or left out as a whole cannot be told")
    if not verdict.other_version and (evidence.sums.is_file() or is_sealed(evidence.results)):
        verdict.look("derivation", _seal(evidence))
    if brought.heads is not None:
        verdict.look("bytes", handed_out(evidence.results, brought.heads))
    _signatures(evidence, brought, verdict)


def _chain(evidence: Evidence) -> Iterator[str]:
    try:
        links, found = chain.read(evidence.results), chain.fragments(evidence.results)
    except StoreProblem as problem:
        yield str(problem).replace(f"{evidence.root}/", "")
        return
    if not links and "decide" in found:
        yield "chain.jsonl: is missing, and the trial was decided"
    yield from chain.differences(links, found, whole=evidence.sums.is_file())


def _body(evidence: Evidence, name: str) -> Envelope | None:
    return envelopes.read(evidence.results / f"{name}.json")


def _seal(evidence: Evidence) -> Iterator[str]:
    path = Signed(evidence.results).seal
    try:
        seal = decode(Seal, path.read_bytes())
    except (OSError, ValueError):
        yield "signed/seal.json: is missing, or is no seal"
        return
    for stated, name in ((seal.lock, "lock"), (seal.terms, "terms"), (seal.decision, "decision")):
        envelope = _body(evidence, name)
        if envelope is None or envelopes.body_digest(envelope) != stated:
            yield f"signed/seal.json: is of another {name} than the one that is here"
    try:
        links, found = chain.read(evidence.results), chain.fragments(evidence.results)
    except StoreProblem:
        return  # named with the chain
    if not links or digest(canonical(links[-1])) != seal.chain or chain.heads(found) != seal.heads:
        yield "signed/seal.json: the journal is not the one that was sealed"
    yield from _salt(evidence, seal)


def _salt(evidence: Evidence, seal: Seal) -> Iterator[str]:
    """The revealed salt is what the lock committed to, and gives the sealed cases again."""
    envelope = _body(evidence, "lock")
    if envelope is None:
        return
    lock, salt = convert(Lock, envelope.body), bytes.fromhex(seal.salt)
    if commitment(salt) != lock.holdout_commitment:
        yield "signed/seal.json: reveals another salt than the lock committed to"
        return
    judged = judged_candidates(evidence.results)
    if judged.keys() != seal.sealed_cases.keys():
        yield "signed/seal.json: has sealed cases of other candidates than those that were judged on them"
        return
    try:
        domain = holdout_domain(evidence.root, lock, str(config_of(evidence.results).get("holdout", "")))
    except Problem as problem:
        yield str(problem)
        return
    for candidate, drawn in sealed_cases(lock, domain, salt, judged).items():
        written = canonical(builtins(seal.sealed_cases[candidate]))
        if canonical(builtins(drawn)) != written or len(drawn) != judged[candidate]:
            yield f"signed/seal.json: the salt draws other sealed cases for candidate {candidate[:12]}"


def revealed_salt(results: Path) -> bytes:
    """The salt that the seal reveals."""
    try:
        return bytes.fromhex(decode(Seal, Signed(results).seal.read_bytes()).salt)
    except (OSError, ValueError):
        why = "signed/seal.json: there is none; sealed cases are revealed by `kerneltrial seal`"
        raise EvidenceProblem(why) from None


def judged_candidates(results: Path) -> dict[str, int]:
    """How many sealed cases each candidate was judged on, of those that came so far."""
    found = {}
    for path in sorted(results.glob("iterations/*/holdout.json")):
        envelope = envelopes.read(path)
        for entry in envelope.body["candidates"] if envelope else ():
            if entry["state"] == "judged":
                found[entry["candidate"]] = entry["cases"]
    return found


def config_of(results: Path) -> dict[str, object]:
    """The effective config's keys, as the stages read them."""
    path = results / "config.json"
    try:
        found = json.loads(path.read_bytes()) if path.is_file() else {}
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {}


def holdout_domain(root: Path, lock: Lock, path: str) -> HoldoutDomain:
    """The locked domain of the sealed cases."""
    if path not in lock.files or not (root / path).is_file():
        raise EvidenceProblem(f"{path or 'the holdout'}: the lock names no such file, or it is not here")
    return to_record(read_document(root / path), HoldoutDomain, path)


def handed_out(results: Path, path: Path) -> Iterator[str]:
    """Heads that a reviewer was given while the trial ran: each must lie in the journal that is here."""
    try:
        found = chain.fragments(results)
    except StoreProblem:
        return  # named with the chain
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as fault:
        raise EvidenceProblem(f"{path}: cannot be read; name a file of heads that were handed out") from fault
    named = re.findall(r"^([A-Za-z]+(?:-[0-9]{4})?) ([1-9][0-9]{0,8}) ([0-9a-f]{64})$", text, re.MULTILINE)
    if not named:
        yield f"{path.name}: holds no heads; they are lines such as 'propose-0001 1 <digest>'"
    for fragment, number, name in named:
        lines = found.get(fragment, [])
        if len(lines) < int(number) or digest(canonical(lines[int(number) - 1])) != name:
            yield f"journal/{fragment}.jsonl: is not the journal whose head was handed out: this is another run"


def _signatures(evidence: Evidence, brought: Brought, verdict: Verdict) -> None:
    signed = Signed(evidence.results)
    wanted = (
        ("the seal", evidence.sums, evidence.sums_signature, SEAL),
        ("the lock", signed.page, signed.lock_signature, LOCK),
        ("the receipt", signed.page, signed.receipt_signature, RECEIPT),
    )
    there = [one for one in wanted if one[2].is_file()]
    absent = [name for name, _, signature, _ in wanted if not signature.is_file()]
    if absent:
        verdict.note("signatures", f"not signed: {', '.join(absent)}")
    if not verdict.other_version:
        verdict.look("bytes", _page(evidence))
    if brought.keys is None:
        verdict.note("signatures", "bring keys with --keys to look at them" if there else "none to look at")
        return
    if brought.keys.resolve().is_relative_to(evidence.root.resolve()) and evidence.sums.parent == evidence.root:
        raise EvidenceProblem(f"{brought.keys}: lies in the bundle; keys come from the people, not from the evidence")
    unsealed = brought.under_way and not evidence.sums.is_file()
    if not there:
        verdict.look("signatures", ["no signature is here: nobody vouches for this evidence"])
    elif evidence.sums_signature.is_file() or unsealed:
        verdict.look("signatures", ())
    else:  # those of page and receipt say nothing of the rest, and to take the seal's away needs no key
        verdict.look("signatures", ["the seal is not signed: anyone may have made anew what follows the lock page"])
    for name, message, signature, namespace in there:
        try:
            who = signer(message.read_bytes(), signature.read_bytes(), brought.keys, namespace, brought.at)
            verdict.note("signatures", f"{name} by {who.name}")
        except (OSError, EvidenceProblem) as fault:
            verdict.look("signatures", [f"{name}: {fault}"])


def _page(evidence: Evidence) -> Iterator[str]:
    """The page is that of the lock and of a version of the terms; a receipt that is there counts."""
    signed = Signed(evidence.results)
    records = (_read(evidence, "lock", Lock), _read(evidence, "terms", Terms))
    if not isinstance(records[0], Lock) or not isinstance(records[1], Terms):
        return
    lock, terms = records[0], records[1]
    if signed.page.is_file():
        pages = {page for agreed in (terms.first, *terms.amendments) for page in lock_pages(lock, agreed)}
        if signed.page.read_bytes() not in pages:
            yield "signed/lock-page.txt: is not the page of the lock and the terms that are here"
    if signed.receipt.is_file() and (evidence.results / "config.json").is_file():  # else the trial has not run yet
        reviewers = str(config_of(evidence.results).get("reviewers", ""))
        keys = evidence.root / reviewers if reviewers else None
        receipt = receipt_of(evidence.results, lock, terms, keys)
        if isinstance(receipt, NoReceipt):
            yield f"signed/receipt.json: {receipt.why}"


def _read(evidence: Evidence, name: str, type_: type[Record]) -> Record | None:
    envelope = _body(evidence, name)
    try:
        return convert(type_, envelope.body) if envelope else None
    except ValueError:
        return None
