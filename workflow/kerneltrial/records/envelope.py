"""The envelope around every record: what it was made from, so that a record can be told to be stale."""

from typing import Annotated, Any

from msgspec import Meta

from kerneltrial.records.record import Count, Digest, Record

# Of all record types, and of what `verify` works out from them: raised when a sealed trial would no longer be read, or
# give the same decision (workflow/adr/0031-bundles-of-other-versions.md). The envelope itself never changes its form.
SCHEMA_VERSION = 1


class MadeFrom(Record):
    """`code` is the digest of the stage's modules, `config` the keys that it read, `inputs` digests by path."""

    code: Digest
    config: dict[str, Any]
    inputs: dict[str, Digest]


class Envelope(Record):
    """A record on disk. `sha256` is the digest of the canonical form of all else."""

    schema_version: Annotated[int, Meta(ge=1)]
    stage: str
    iteration: Count
    made_from: MadeFrom
    body: Any
    sha256: Digest
