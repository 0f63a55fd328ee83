"""Whether this kerneltrial can look into records, or only at their bytes: by the version that each of them carries.

A record's frame (envelope, journal, chain, stored measurements, SHA256SUMS) keeps its form for ever; what lies in
the frame may change with the version (workflow/adr/0031-bundles-of-other-versions.md).
"""

from collections.abc import Iterable
from pathlib import Path

from kerneltrial.records.envelope import SCHEMA_VERSION, Envelope
from kerneltrial.store import envelopes


def other_version(results: Path) -> str:
    """Why the records of a trial can be looked at as bytes only; empty where they are of this version."""
    paths = [path for path in results.glob("*.json") if path.name != "config.json"]
    return other_version_of(filter(None, map(envelopes.read, [*paths, *results.glob("iterations/*/*.json")])))


def other_version_of(records: Iterable[Envelope]) -> str:
    """The same of envelopes."""
    found = list(records)
    others = sorted({envelope.schema_version for envelope in found} - {SCHEMA_VERSION})
    if not others:
        return ""
    bodies = (envelope.body for envelope in found if envelope.stage == "lock" and isinstance(envelope.body, dict))
    toolchain = next(bodies, {}).get("toolchain", {})
    made_by = str(toolchain.get("kerneltrial", "")) if isinstance(toolchain, dict) else ""
    install = f"install kerneltrial {made_by}" if made_by else "install a kerneltrial of that time"
    return f"records are of version {', '.join(map(str, others))}, this kerneltrial reads {SCHEMA_VERSION}: {install}"
