"""The sealed example in reports/example/ stays verifiable: at every level, or at that of bytes once versions differ.

Where a change of record types or of the decision breaks this: raise SCHEMA_VERSION
(workflow/adr/0031-bundles-of-other-versions.md), and, where there is a card, make
a new example by tests/bench/sealed_example.py.
"""

import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from kerneltrial.evidence.tarball import unpack
from kerneltrial.evidence.versions import other_version

pytestmark = pytest.mark.e2e
ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "reports/example"
BUNDLE = EXAMPLE / "matmul_example-evidence.tar"
KEYS = ("--keys", str(EXAMPLE / "allowed_signers"), "--heads", str(EXAMPLE / "heads.txt"))


def kerneltrial(*words):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "workflow")}
    return subprocess.run(
        [sys.executable, "-m", "kerneltrial", *words], capture_output=True, text=True, env=environment, cwd=ROOT
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return unpack(BUNDLE, tmp_path_factory.mktemp("example"))


@pytest.fixture(scope="module")
def is_old(folder):
    """Whether its records are of another version than ours."""
    return bool(other_version(folder / "results/matmul_example"))


def test_every_level_that_needs_no_card_is_ok_within_two_seconds(is_old):
    spent = []
    for _ in range(3):  # the least of three: what else is done on the machine takes its caches
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = kerneltrial("verify", str(BUNDLE), *KEYS, "--recompile", "none")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(sum(getattr(after, name) - getattr(before, name) for name in ("ru_utime", "ru_stime")))
    assert done.returncode == (4 if is_old else 0), done.stdout + done.stderr
    levels = ("bytes", "signatures") if is_old else ("bytes", "signatures", "derivation", "decision")
    for level in levels:
        assert re.search(rf"^{level} +ok", done.stdout, re.MULTILINE), done.stdout
    assert "the seal by team-of-the-example" in done.stdout
    assert is_old or re.search(r"^decision +ok \(it says INCONCLUSIVE\)$", done.stdout, re.MULTILINE)
    assert min(spent) <= 2.0  # processor seconds, as the machine may be busy


def test_coreutils_and_ssh_keygen_are_enough_for_the_bytes(folder):
    done = subprocess.run(
        ["sh", str(folder / "verify.sh"), str(EXAMPLE / "allowed_signers")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok  ") == 5  # bytes, nothing extra, and the signatures of seal, lock page and receipt


def test_a_changed_byte_is_named(tmp_path):
    changed = unpack(BUNDLE, tmp_path)
    path = changed / "results/matmul_example/decision.json"
    path.write_bytes(path.read_bytes().replace(b"unknown", b"passed!", 1))
    done = kerneltrial("verify", str(changed), *KEYS, "--recompile", "none")
    assert done.returncode == 1
    assert "results/matmul_example/decision.json" in done.stdout


def test_the_page_says_what_the_bundle_says(folder):
    page = (EXAMPLE / "README.md").read_text()
    decision = json.loads((folder / "results/matmul_example/decision.json").read_bytes())["body"]
    device = json.loads((folder / "results/matmul_example/lock.json").read_bytes())["body"]["device"]
    assert f"**{decision['outcome']}**" in page
    assert device["name"] in page
    assert device["kind"] == "cuda"
    assert (EXAMPLE / "report.html").read_bytes() == (folder / "reports/matmul_example/report.html").read_bytes()
    unknown = {rule["rule"] for rule in decision["rules"] if rule["result"] != "passed"}
    assert all(f"`{rule}`" in page for rule in unknown)


def test_the_example_is_light():
    assert sum(path.stat().st_size for path in EXAMPLE.iterdir()) < 8 * 2**20
