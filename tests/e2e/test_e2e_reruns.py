"""What reruns and what does not: decided by digests inside the records."""

import json
import os
import random
import shutil
import time
from collections import Counter

import pytest

pytestmark = pytest.mark.e2e

LAST = Counter(confirm=1, decide=1, report=1, all=1)
ITERATION = Counter(propose=1, build=1, validate=1, time=1, holdout=1, cost=1)


def test_more_iterations_reuse_the_first_and_fewer_reuse_all(trial):
    before, measured = trial.records(), trial.measurements()
    ran = trial.run("--config", "iterations=5")
    assert ran == LAST + Counter(terms=1) + ITERATION + ITERATION
    after = trial.records()
    kept = [p for p in before if "/iterations/" in p or p.endswith(("lock.json", "qualification.json", "prize.json"))]
    assert {p: after[p] for p in kept} == {p: before[p] for p in kept}
    assert measured.items() <= trial.measurements().items()
    kept.append("results/tiny/confirmation.json")  # that of the first three is put back; terms now tell of both changes
    assert trial.run("--config", "iterations=3") == LAST + Counter(terms=1) - Counter(confirm=1)
    assert {p: trial.records()[p] for p in kept} == {p: before[p] for p in kept}


def test_a_price_edit_reruns_what_it_prices_and_shows_as_an_amendment(trial):
    before, measured = trial.records(), trial.measurements()
    trial.config(prices__gpu_hour_usd="9.99")
    ran = trial.run()
    assert ran == Counter(terms=1, prize=1, cost=3, decide=1, report=1, all=1)
    after = trial.records()
    assert after["results/tiny/lock.json"] == before["results/tiny/lock.json"]
    terms = json.loads(after["results/tiny/terms.json"])["body"]
    assert [a["prices"]["gpu_hour_usd"] for a in terms["amendments"]] == ["9.99"]
    assert json.loads(after["results/tiny/decision.json"])["body"]["post_hoc"]
    assert "post hoc" in (trial.folder / "reports/tiny/report.html").read_text().lower()
    assert trial.measurements() == measured
    assert not trial.run()


def test_a_price_put_back_takes_its_records_back_and_the_next_run_has_nothing_to_do(trial):
    """Snakemake's notes are on the records that were set aside: they must not have what came back made again."""
    trial.config(prices__gpu_hour_usd="9.99")
    assert trial.run("--config", "iterations=4")
    assert not trial.run("--config", "iterations=4")
    for price in ("3.50", "9.99", "3.50"):
        trial.config(prices__gpu_hour_usd=price)
        ran = trial.run("--config", "iterations=4")
        assert set(ran) >= {"terms", "prize", "decide", "report"}, price
        assert not trial.run("--config", "iterations=4"), price


def test_touch_reruns_nothing(trial):
    for path in trial.folder.rglob("*"):
        if ".snakemake" not in path.parts:
            os.utime(path)
    assert not trial.run()


@pytest.mark.parametrize("keep_metadata", [True, False])
def test_a_copy_with_shuffled_times_reruns_nothing(trial, keep_metadata):
    before, measured = trial.records(), trial.measurements()
    if not keep_metadata:
        shutil.rmtree(trial.folder / ".snakemake")
    dice = random.Random(7)
    for path in trial.folder.rglob("*"):
        if ".snakemake" not in path.parts:
            when = time.time() + dice.uniform(-1e6, 1e5)  # also in the future
            os.utime(path, (when, when))
    assert not trial.run()
    assert trial.records() == before
    assert trial.measurements() == measured


def test_without_metadata_a_changed_price_is_noticed_and_nothing_stale_is_left(trial):
    shutil.rmtree(trial.folder / ".snakemake")
    trial.config(prices__gpu_hour_usd="5.55")
    ran = trial.run()
    assert ran == Counter(terms=1, prize=1, cost=3, decide=1, report=1, all=1)
    assert trial.kerneltrial("verify").returncode == 0


@pytest.mark.parametrize("stage", ["validate", "time", "holdout", "confirm"])
def test_a_stage_forced_again_gives_equal_bytes(trial, stage):
    before, measured = trial.records(), trial.measurements()
    assert trial.run("--forcerun", stage)[stage] >= 1
    assert trial.records() == before
    assert trial.measurements() == measured


def test_a_deleted_record_is_made_again_equal(trial):
    before, measured = trial.records(), trial.measurements()
    for name in ("iterations/0002/timing.json", "iterations/0003/validation.json", "qualification.json"):
        (trial.results / name).unlink()
    trial.run()
    assert trial.records() == before
    assert trial.measurements() == measured


def test_a_record_edited_by_hand_is_made_again(trial):
    before = trial.records()
    path = trial.results / "iterations/0003/validation.json"
    path.write_bytes(path.read_bytes().replace(b'"state":"valid"', b'"state":"invalid"', 1))
    trial.run()
    assert trial.records() == before


def test_a_single_stage_runs_without_snakemake(trial):
    before = trial.records()
    done = trial.kerneltrial("validate", "--iteration", "3")
    assert (done.returncode, done.stdout) == (0, "results/tiny/iterations/0003/validation.json\n"), done.stderr
    assert trial.records() == before
    assert not trial.run()


@pytest.mark.parametrize(
    ("module", "reruns", "spared"),
    [
        ("decide/rules_worth.py", {"decide", "report"}, {"validate", "time", "propose", "cost"}),
        ("judge/holdout.py", {"holdout", "cost", "confirm"}, {"propose", "build", "validate", "time"}),
        ("report/page.py", {"report"}, {"decide", "cost", "validate"}),
    ],
)
def test_an_edited_module_reruns_the_stages_that_import_it(trial, tmp_path, module, reruns, spared):
    package = tmp_path / "package"
    shutil.copytree(trial.package, package, ignore=shutil.ignore_patterns("__pycache__"))
    trial.package = package
    measured = trial.measurements()
    assert not trial.run()
    edited = package / "kerneltrial" / module
    edited.write_text(edited.read_text() + "\n# edited\n")
    ran = set(trial.run())
    assert reruns <= ran
    assert not spared & ran
    assert trial.measurements() == measured


def everything(trial):
    """Bytes and times of all files but Snakemake's own notes."""
    files = (p for p in trial.folder.rglob("*") if p.is_file() and not {".snakemake", ".cache"} & set(p.parts))
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def test_a_dry_run_changes_nothing_and_says_what_is_stale(trial):
    trial.config(prices__gpu_hour_usd="9.99")
    edited = trial.results / "decision.json"
    edited.write_bytes(edited.read_bytes().replace(b"outcome", b"0utcome"))
    before = everything(trial)
    done = trial.snakemake("-n")
    assert done.returncode == 0, done.stderr
    assert everything(trial) == before
    (line,) = [line for line in done.stderr.splitlines() if "are stale" in line]
    assert all(f"results/tiny/{name}.json" in line for name in ("terms", "prize", "iterations/0003/cost", "decision"))
    assert "validation" not in line
