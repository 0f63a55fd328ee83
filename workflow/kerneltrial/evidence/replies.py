"""From request and reply to source: a model's proposals are worked out again from the answers that are stored."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kerneltrial.propose.openai.exchange import Answered, Exchange, Exchanges, Request
from kerneltrial.propose.openai.reply import Reply, draft_in, read_reply
from kerneltrial.propose.proposer import Draft, candidate_of
from kerneltrial.records.envelope import Envelope
from kerneltrial.store.canonical import decode, digest
from kerneltrial.store.objects import Objects
from kerneltrial.store.problem import StoreProblem

_TOKENS = {
    "input_tokens": "input",
    "cached_tokens": "cached",
    "cache_write_tokens": "cache_write",
    "output_tokens": "output",
    "reasoning_tokens": "reasoning",
}


def derived_proposals(folder: Path, records: Mapping[str, Envelope]) -> Iterator[str]:
    """Proposals whose candidates or usage do not follow from the replies that they name."""
    lock: dict[str, Any] = next((e.body for e in records.values() if e.stage == "lock"), {})
    languages = tuple(lock.get("languages", ()))
    for path, envelope in records.items():
        usage = envelope.body.get("usage", {}) if envelope.stage == "propose" else {}
        if not usage.get("requests"):
            continue
        try:
            replies = [read_reply(exchange) for exchange in _exchanges(folder, usage)]
        except (StoreProblem, ValueError):  # named as missing or changed elsewhere
            continue
        yield from _kept(folder, path, usage)
        attempts = envelope.body["attempts"]
        if not all(_follows(*pair, languages) for pair in zip(attempts, replies, strict=False)):
            yield f"{path}: a candidate does not follow from the reply that it names"
        if any(usage.get(name, 0) != sum(getattr(r.tokens, of) for r in replies) for name, of in _TOKENS.items()):
            yield f"{path}: the tokens do not follow from the replies that it names"


def _kept(folder: Path, path: str, usage: dict[str, Any]) -> Iterator[str]:
    """A rerun takes replies from their own folder, so they must be those that the record names."""
    for request, reply in zip(usage["requests"], usage["replies"], strict=True):
        told = Exchanges(folder / "replies").find(request)
        if told is not None and isinstance(told.outcome, Answered) and digest(told.outcome.body.encode()) != reply:
            yield f"{path}: replies/{request}.json is not the reply that it names"


def _exchanges(folder: Path, usage: dict[str, Any]) -> Iterator[Exchange]:
    """Each request with its reply, from the objects; how it was answered stands beside, where this trial asked."""
    objects, kept = Objects(folder / "objects"), Exchanges(folder / "replies")
    for request, reply in zip(usage["requests"], usage["replies"], strict=True):
        asked = decode(Request, objects.get(request))
        told = kept.find(request)
        answered = told.outcome if told is not None else None
        status, cut = (answered.status, answered.cut) if isinstance(answered, Answered) else (200, False)
        body = objects.get(reply).decode()
        yield Exchange(request=asked, outcome=Answered(status=status, body=body, lost=0, cut=cut))


def _follows(attempt: dict[str, Any], reply: Reply, languages: tuple[str, ...]) -> bool:
    draft = draft_in(reply, languages)
    if not isinstance(draft, Draft):
        return bool(attempt["state"] == "unusable" and attempt["detail"] == draft.detail)
    if attempt["state"] == "unusable":
        return bool(attempt["reason"] == "source_refused")
    name = attempt["duplicate_of"] if attempt["state"] == "duplicate" else attempt["candidate"]["id"]
    return bool(name == candidate_of(draft).id and attempt["origin"]["hypothesis"] == draft.origin.hypothesis)
