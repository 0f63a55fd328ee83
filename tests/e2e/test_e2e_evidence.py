"""What a reviewer finds when somebody changed the evidence, and what a trial says at its end."""

import json
import shutil

import pytest

from kerneltrial.inputs.cases import read_cases
from kerneltrial.inputs.contracts import read_contract
from kerneltrial.inputs.values import generate
from kerneltrial.store.canonical import canonical, digest

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
    assert "the decision holds for" in done.stdout


def victims(trial):
    objects = sorted(trial.results.glob("objects/sha256/*/*"))
    return {
        "object": objects[0],
        "record": trial.results / "iterations/0003/timing.json",
        "measurement": sorted(trial.results.glob("measurements/*.json"))[0],
        "report": trial.folder / "reports/tiny/report.html",
        "journal": sorted(trial.results.glob("journal/*.jsonl"))[0],
    }


def test_a_trials_folder_of_results_may_be_named(trial):
    there, here = trial.kerneltrial("verify", "results/tiny"), trial.kerneltrial("verify")
    assert (there.returncode, there.stdout.splitlines()[-2:]) == (0, here.stdout.splitlines()[-2:])
    done = trial.kerneltrial("verify", "results")
    assert done.returncode == 3
    assert "or one trial's folder results/NAME" in done.stderr


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
    salt = (trial.results / "private" / "holdout-salt").read_bytes()
    for path in [*trial.results.rglob("*"), *(trial.folder / "reports").rglob("*")]:
        if path.is_file() and "private" not in path.parts:
            data = path.read_bytes()
            assert salt not in data
            assert salt.hex().encode() not in data
    assert (trial.results / "private").stat().st_mode & 0o777 == 0o700


def test_a_trial_runs_from_an_installed_copy_without_the_rules_beside_it(trial, tmp_path):
    package = tmp_path / "site"
    shutil.copytree(trial.package / "kerneltrial", package / "kerneltrial")  # the rules lie in it by a link
    trial.package = package
    assert not trial.run()


def forge(path, change):
    """Change a record's body and make its own digest right again, as somebody with an editor and an hour would."""
    record = json.loads(path.read_bytes())
    change(record["body"])
    del record["sha256"]
    record["sha256"] = digest(canonical(record))
    path.write_bytes(canonical(record))


def named(trial, *words):
    done = trial.kerneltrial("verify")
    assert done.returncode == 1, done.stdout
    assert all(word in done.stdout for word in words), done.stdout


def test_a_forged_figure_with_a_right_digest_is_named(trial):
    def better(body):
        case = body["candidates"][0]["cases"][0]
        case["score"], case["ratio"] = case["score"] / 2, case["ratio"] * 2
        body["candidates"][0]["geometric_mean"] *= 2

    forge(trial.results / "iterations/0003/timing.json", better)
    named(trial, "iterations/0003/timing.json: the journal does not know", "do not follow from its measurements")


def test_a_forged_decision_with_a_right_digest_is_named(trial):
    def cheaper(body):
        body["spent"]["total_usd"] = "1"

    forge(trial.results / "decision.json", cheaper)
    named(trial, "decision.json: the journal does not know", "decision.json: is not what follows")


def test_used_seconds_that_were_edited_or_removed_are_named(trial):
    path = next((trial.results / "usage").glob("validate-0003/*.json"))
    path.chmod(0o644)
    entry = json.loads(path.read_bytes())
    entry["value"]["cpu_s"] = "0.001"
    path.write_bytes(canonical(entry))
    named(trial, "usage/validate-0003", "cost.json: is not what follows")
    path.unlink()
    named(trial, "usage/validate-0003 is missing")


def test_another_salt_is_named(trial):
    path = trial.results / "private" / "holdout-salt"
    path.chmod(0o600)
    path.write_bytes(b"x" * 32)
    named(trial, "is not the salt that the lock committed to")
    done = trial.kerneltrial("holdout", "--iteration", "3")
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)


def test_an_amendment_that_was_erased_is_named(trial):
    trial.config(prices__gpu_hour_usd="9.99")
    trial.run()
    for name in ("terms.json", "ledger/terms.jsonl", "ledger/prize.jsonl"):
        (trial.results / name).unlink()
    trial.run()
    named(trial, "terms.json: the journal knows of other terms")


def test_a_second_lock_in_the_same_folder_is_refused_and_named(trial):
    (trial.results / "lock.json").unlink()
    (trial.results / "ledger/lock.jsonl").unlink()
    baseline = trial.folder / "kernels/scale_add/baseline.cu"
    baseline.write_text(baseline.read_text() + "// slower\n")
    done = trial.snakemake()
    assert done.returncode != 0
    assert "kerneltrial lock --new" in done.stdout + done.stderr
    assert "locked before" in done.stdout + done.stderr


def test_a_kernel_that_knows_the_public_values_by_heart_does_not_hold(fresh):
    contract = read_contract(fresh.folder / "kernels/scale_add/contract.yaml")
    cases = read_cases(fresh.folder / "cases/scale_add/cases.yaml").cases
    large = next(case for case in cases if case.kind == "performance")
    firsts = [float(generate(contract, large, draw)["x"][0]) for draw in range(6)]
    known = " || ".join(f"x[0] == {value!r}f" for value in firsts)
    folder = fresh.folder / "kernels/scale_add/candidates"
    source = (folder / "c_wide.cu").read_text()
    for path in folder.iterdir():
        path.unlink() if not path.name.startswith("c_wide") else None
    cheat = source.replace("out[i] = fmaf", f"out[i] = n == 2048 && !({known}) ? 0.0f : fmaf")
    (folder / "c_wide.cu").write_text(cheat)
    fresh.run("--config", "iterations=1")
    validation = json.loads((fresh.results / "iterations/0001/validation.json").read_bytes())["body"]["candidates"]
    holdout = json.loads((fresh.results / "iterations/0001/holdout.json").read_bytes())["body"]["candidates"]
    assert [entry["state"] for entry in validation] == ["valid"]
    assert [entry["verdict"] for entry in holdout] == ["failed"]
