"""Records on disk: a body, what it was made from, and a digest over both."""

from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import msgspec

from kerneltrial.records.envelope import SCHEMA_VERSION, Envelope, MadeFrom
from kerneltrial.records.record import Record
from kerneltrial.store.canonical import builtins, canonical, convert, decode, digest, written
from kerneltrial.store.files import write_atomic
from kerneltrial.store.problem import StoreProblem

T = TypeVar("T", bound=Record)


def body_digest(envelope: Envelope) -> str:
    """What other records link to: the digest of the body alone, so that equal results stay equal."""
    return digest(canonical(envelope.body))


def seal(stage: str, iteration: int, made_from: MadeFrom, body: Record) -> Envelope:
    """The envelope around a body. The body is read back strictly, so that what is written can be read."""
    plain = builtins(body)
    convert(type(body), plain)
    content = {
        "schema_version": SCHEMA_VERSION,
        "stage": stage,
        "iteration": iteration,
        "made_from": builtins(made_from),
        "body": plain,
    }
    return convert(Envelope, {**content, "sha256": digest(canonical(content))})


def write(path: Path, envelope: Envelope) -> None:
    """Write a record atomically."""
    write_atomic(path, canonical(envelope))


def parse(data: bytes) -> Envelope | None:
    """The envelope, or None where it is torn, of another form, or edited by hand."""
    try:
        envelope = decode(Envelope, data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    content = builtins(envelope)
    if written(content) != data:
        return None
    stated = content.pop("sha256")
    return envelope if digest(written(content)) == stated else None


@lru_cache(maxsize=4096)
def _parsed(data: bytes) -> Envelope | None:
    """As `parse`, once for equal bytes: a verification reads the records of early iterations hundreds of times.

    What it gives is only read, never changed in place: others may hold it too.
    """
    return parse(data)


def read(path: Path) -> Envelope | None:
    """The envelope at `path`, or None where there is none that can be believed."""
    try:
        return _parsed(path.read_bytes())
    except OSError:
        return None


def body(type_: type[T], data: bytes, path: str) -> T:
    """The body of the record whose bytes are `data`; `path` is for the message."""
    envelope = _parsed(data)
    if envelope is None:
        raise StoreProblem(f"{path}: torn or edited by hand; run the same snakemake command again to make it anew")
    try:
        return convert(type_, envelope.body)
    except msgspec.ValidationError as error:
        raise StoreProblem(f"{path}: {error}; it was written by another version, run snakemake again") from error
