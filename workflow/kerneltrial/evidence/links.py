"""What a record points to: objects by digest, measurements by digest, candidates by id."""

from collections.abc import Iterator
from typing import Any

from kerneltrial.store.canonical import canonical, digest

OBJECT_FIELDS = frozenset({"source", "ptx", "log", "requests", "replies"})
MEASUREMENT_FIELDS = frozenset({"samples"})


def _walk(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from _walk(item)
    elif isinstance(value, list):
        for item in value:
            yield from _walk(item)


def _digests(value: Any) -> Iterator[str]:
    match value:
        case str():
            several: list[Any] = [value]
        case dict():
            several = list(value.values())
        case list():
            several = value
        case _:
            several = []
    for text in several:
        if isinstance(text, str) and len(text) == 64:
            yield text


def objects(body: Any) -> set[str]:
    """Digests of all objects that a record's body names."""
    found: set[str] = set()
    for mapping in _walk(body):
        for field in OBJECT_FIELDS & mapping.keys():
            found.update(_digests(mapping[field]))
        if mapping.get("kind") == "cubin":
            found.update(_digests(mapping["digest"]))
    return found


def measurements(body: Any) -> set[str]:
    """Digests of all stored measurements that a record's body names."""
    return {
        d for mapping in _walk(body) for field in MEASUREMENT_FIELDS & mapping.keys() for d in _digests(mapping[field])
    }


def wrong_ids(body: Any) -> list[str]:
    """Ids of candidates in a record's body that are not the digest of their language, source and plan."""
    wrong = []
    for mapping in _walk(body):
        if {"id", "language", "source", "plan"} <= mapping.keys():
            content = {key: mapping[key] for key in ("language", "source", "plan")}
            if digest(canonical(content)) != mapping["id"]:
                wrong.append(mapping["id"])
    return wrong


def candidates(body: Any) -> list[str]:
    """Ids of the candidates that a stage judged, in order; of a proposal, those that it proposed."""
    if "attempts" in body:
        return [a["candidate"]["id"] for a in body["attempts"] if a["state"] == "proposed"]
    return [entry["candidate"] for entry in body.get("candidates", [])]
