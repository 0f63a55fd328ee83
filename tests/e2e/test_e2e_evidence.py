"""What a reviewer finds when somebody changed the evidence, and what a trial says at its end."""

import json
import shutil

import pytest

pytestmark = pytest.mark.e2e


def fates(trial):
    found = {}
    for path in sorted(trial.results.glob("iterations/*/validation.json")):
        for entry in json.loads(path.read_bytes())["body"]["candidates"]:
            found[entry["candidate"]] = entry["state"]
    return found


def test_a_whole_trial_verifies(trial):
    done = trial.kerneltrial("verify")
    assert done.returncode == 0, done.stdout
    assert "every link holds" in done.stdout


def victims(trial):
    objects = sorted(trial.results.glob("objects/sha256/*/*"))
    return {
        "object": objects[0],
        "record": trial.results / "iterations/0003/timing.json",
        "measurement": sorted(trial.results.glob("measurements/*.json"))[0],
        "report": trial.folder / "reports/tiny/report.html",
        "journal": sorted(trial.results.glob("journal/*.jsonl"))[0],
    }


@pytest.mark.parametrize("kind", ["object", "record", "measurement", "report"])
def test_a_flipped_byte_is_named(trial, kind):
    path = victims(trial)[kind]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(bytes(data))
    done = trial.kerneltrial("verify")
    assert done.returncode == 1
    assert str(path.relative_to(trial.folder)) in done.stdout


@pytest.mark.parametrize("kind", ["object", "measurement"])
def test_a_deleted_file_is_named(trial, kind):
    path = victims(trial)[kind]
    path.unlink()
    done = trial.kerneltrial("verify")
    assert done.returncode == 1
    assert "missing" in done.stdout


def test_a_swapped_candidate_is_named(trial):
    a, b = (trial.results / f"iterations/000{i}/build.json" for i in (2, 3))
    first, second = a.read_bytes(), b.read_bytes()
    a.write_bytes(second)
    b.write_bytes(first)
    done = trial.kerneltrial("verify")
    assert done.returncode == 1
    assert "iterations/0002/build.json" in done.stdout
    assert "iterations/0003/build.json" in done.stdout


def test_bad_candidates_are_values_and_a_trial_on_cpu_is_never_go(fresh):
    ran = fresh.run("--config", "iterations=8")
    assert ran["propose"] == 8
    attempts = []
    for path in sorted(fresh.results.glob("iterations/*/proposal.json")):
        attempts += [a["state"] for a in json.loads(path.read_bytes())["body"]["attempts"]]
    assert attempts == ["proposed", "proposed", "proposed", "duplicate", "proposed", "proposed", "proposed", "unusable"]
    assert sorted(fates(fresh).values()) == ["invalid", "invalid", "skipped", "valid", "valid", "valid"]
    decision = json.loads((fresh.results / "decision.json").read_bytes())["body"]
    assert decision["outcome"] in ("NO-GO", "INCONCLUSIVE")
    on_gpu = next(rule for rule in decision["rules"] if rule["rule"] == "measured_on_gpu")
    assert on_gpu["result"] == "unknown"
    page = (fresh.folder / "reports/tiny/report.html").read_text()
    assert "example" in page
    assert (fresh.folder / "reports/tiny/best.cu").is_file()
    summary = json.loads((fresh.folder / "reports/tiny/summary.json").read_bytes())
    assert "space_exhausted" in json.dumps(summary)


def test_no_winner_leaves_no_best_kernel_and_says_why(fresh):
    for name in ("c_wide", "d_same", "e_more", "g_last"):
        (fresh.folder / f"kernels/scale_add/candidates/{name}.cu").unlink()
        (fresh.folder / f"kernels/scale_add/candidates/{name}.plan.yaml").unlink()
    fresh.run()
    assert not list((fresh.folder / "reports/tiny").glob("best.*"))
    summary = json.loads((fresh.folder / "reports/tiny/summary.json").read_bytes())
    assert summary["best"] == {"state": "none", "why": "none of 3 candidates was right on every public case"}
    decision = json.loads((fresh.results / "decision.json").read_bytes())["body"]
    assert decision["outcome"] == "NO-GO"


def test_nothing_of_the_holdout_is_to_be_found_outside_its_folder(trial):
    salt = next((trial.results / "private").iterdir()).read_bytes()
    for path in [*trial.results.rglob("*"), *(trial.folder / "reports").rglob("*")]:
        if path.is_file() and "private" not in path.parts:
            data = path.read_bytes()
            assert salt not in data
            assert salt.hex().encode() not in data
    assert (trial.results / "private").stat().st_mode & 0o777 == 0o700


def test_a_trial_runs_from_an_installed_copy_without_the_rules_beside_it(trial, tmp_path):
    package = tmp_path / "site"
    shutil.copytree(trial.package / "kerneltrial", package / "kerneltrial")
    shutil.copytree(trial.package / "rules", package / "kerneltrial" / "rules")
    trial.package = package
    assert not trial.run()
