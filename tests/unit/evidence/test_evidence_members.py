"""What belongs to a trial's evidence, and what a bundle may not hold whatever its SHA256SUMS says."""

import pytest

from kerneltrial.evidence import members, sealed
from kerneltrial.evidence.sealing import sums
from kerneltrial.evidence.verdict import Verdict


def put(root, *paths):
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(path)


def test_secrets_logs_code_and_exported_loaders_are_left_out(tmp_path):
    kept = ("results/t/lock.json", "results/t/objects/x", "reports/t/report.html")
    put(tmp_path, *kept, "results/t/private/code-key", "results/t/logs/a.log", "results/t/aside/a.json")
    put(tmp_path, "results/t/cache/machine-code/a.code", "reports/t/axpy_loader/__init__.py")
    found = members.evidence(tmp_path, "t", ())
    assert set(found) - set(members.instructions()) == set(kept)


@pytest.mark.parametrize("folder", ["cache/machine-code", "private", "aside", "logs"])
def test_a_bundle_that_names_more_than_evidence_is_refused(tmp_path, folder):
    extra = f"results/t/{folder}/x"
    put(tmp_path, "results/t/objects/x", extra)
    (tmp_path / "SHA256SUMS").write_bytes(sums(members.present(tmp_path)))
    there = sealed.Evidence(
        tmp_path / "results/t", tmp_path, members.present(tmp_path), tmp_path / "SHA256SUMS", tmp_path / "none"
    )
    verdict = Verdict()
    sealed.look(there, sealed.Brought(), verdict)
    assert f"{extra}: is extra" in "\n".join(verdict.problems["bytes"])


def test_code_beside_a_trial_that_is_verified_in_place_is_no_problem(tmp_path):
    put(tmp_path, "results/t/objects/x", "results/t/cache/machine-code/a.code")
    found = members.evidence(tmp_path, "t", ())
    assert members.foreign(found, "t") == []


def test_the_instructions_are_those_that_the_seal_kept_where_it_kept_some(tmp_path):
    put(tmp_path, "results/t/objects/x", "results/t/signed/verify.sh")
    found = members.evidence(tmp_path, "t", ())
    assert found["verify.sh"] == tmp_path / "results/t/signed/verify.sh"
    assert found["VERIFY.md"] == members.instructions()["VERIFY.md"]
    assert "results/t/signed/verify.sh" not in found
