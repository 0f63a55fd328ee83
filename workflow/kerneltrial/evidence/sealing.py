"""The seal: the chain is closed, the salt revealed with the cases that it drew, every file's digest written down."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from kerneltrial.evidence import chain
from kerneltrial.evidence.manifest import manifest, sha256
from kerneltrial.evidence.problem import EvidenceProblem
from kerneltrial.inputs.far import reaches, sealed_far_cases
from kerneltrial.inputs.holdout import commitment, draw_holdout, sealed_performance
from kerneltrial.records.case import Case, HoldoutDomain
from kerneltrial.records.decision import Decision
from kerneltrial.records.lock import Lock
from kerneltrial.records.seal import Seal
from kerneltrial.records.terms import Terms
from kerneltrial.store.canonical import canonical, digest


def sealed_cases(
    lock: Lock, domain: HoldoutDomain, salt: bytes, candidates: Iterable[str]
) -> dict[str, tuple[Case, ...]]:
    """All sealed cases of each candidate, as the holdout stage judged them."""
    known = reaches(lock.contract, lock.cases)
    return {
        candidate: (
            *draw_holdout(domain, lock.contract, salt, candidate),
            *sealed_far_cases(lock.contract, known, salt, candidate),
            *sealed_performance(lock.cases, salt, candidate),
        )
        for candidate in candidates
    }


def seal(results: Path, lock: Lock, terms: Terms, decision: Decision, cases: Mapping[str, tuple[Case, ...]]) -> Seal:
    """Close the chain and say what was found; `cases` are the sealed cases of each candidate that came so far."""
    salt = (results / "private" / "holdout-salt").read_bytes()
    if commitment(salt) != lock.holdout_commitment:
        raise EvidenceProblem(f"{results}/private/holdout-salt is not what was committed to; restore it from a copy")
    last = chain.extend(results)
    return Seal(
        trial=lock.trial,
        lock=digest(canonical(lock)),
        terms=digest(canonical(terms)),
        decision=digest(canonical(decision)),
        outcome=decision.outcome,
        chain=last,
        heads=chain.heads(chain.fragments(results)),
        salt=salt.hex(),
        sealed_cases=dict(cases),
        sealed_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def sums(members: Mapping[str, Path], more: Mapping[str, bytes] | None = None) -> bytes:
    """SHA256SUMS of the evidence; `more` is what will belong to it and is not written yet, by path in the bundle."""
    there = {name: sha256(path) for name, path in members.items()}
    return manifest(there | {name: digest(content) for name, content in (more or {}).items()})
