"""A bundle outlives the record types that it was written with: workflow/adr/0031-bundles-of-other-versions.md."""

import dataclasses
import re
import shutil

import pytest

from kerneltrial.evidence.tarball import unpack
from kerneltrial.records.envelope import SCHEMA_VERSION

pytestmark = pytest.mark.e2e


@pytest.fixture
def later(sealed, tmp_path):
    """The sealed trial, seen by a kerneltrial whose lock and workload have fields that the bundle lacks."""
    package = tmp_path / "site"
    shutil.copytree(sealed.package, package, ignore=shutil.ignore_patterns("__pycache__"))
    for name, old, new in (
        ("envelope", f"SCHEMA_VERSION = {SCHEMA_VERSION}", f"SCHEMA_VERSION = {SCHEMA_VERSION + 1}"),
        ("lock", "class Lock(Record):", "class Lock(Record):\n    moon_phase: str\n"),
        ("terms", "class Workload(Record):", "class Workload(Record):\n    planet: str\n"),
    ):
        path = package / f"kerneltrial/records/{name}.py"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
    return dataclasses.replace(sealed, package=package)


def test_bytes_and_signatures_are_looked_at_and_the_rest_is_said_to_be_left_out(later, people):
    done = later.kerneltrial("verify", "bundle.tar", "--keys", str(people / "signers"), "--recompile", "all")
    assert done.returncode == 4, done.stdout + done.stderr
    why = rf"not done \(records are of version {SCHEMA_VERSION}, this kerneltrial reads {SCHEMA_VERSION + 1}: install "
    for level in ("derivation", "decision", "rerun"):
        assert re.search(rf"^{level} +{why}", done.stdout, re.MULTILINE), done.stdout
    assert re.search("^bytes +ok", done.stdout, re.MULTILINE)
    assert "signatures  ok (the seal by team@example.org" in done.stdout
    assert "the bytes are whole; what they say was not looked into" in done.stdout


def test_a_changed_byte_is_named_in_any_version(later, tmp_path):
    folder = unpack(later.folder / "bundle.tar", tmp_path)
    for path in (folder / "results/tiny/decision.json", folder / "results/tiny/journal/decide.jsonl"):
        data = path.read_bytes()
        path.write_bytes(data.replace(b"decide", b"decode", 1))
        done = later.kerneltrial("verify", str(folder))
        path.write_bytes(data)
        assert done.returncode == 1
        assert path.relative_to(folder).as_posix() in done.stdout
