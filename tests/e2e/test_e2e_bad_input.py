"""Bad input: one clear line, a non-zero exit, nothing written."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.e2e

CLONE = Path(__file__).resolve().parents[2]


def problem(done):
    """The one line of ours in what Snakemake printed."""
    assert done.returncode != 0
    lines = [x for x in (done.stdout + done.stderr).splitlines() if "kerneltrial:" in x]
    assert len(lines) == 1, done.stdout + done.stderr
    return lines[0]


def refuse(trial, *arguments):
    done = trial.snakemake(*arguments)
    line = problem(done)
    assert "Traceback" not in done.stdout + done.stderr
    left = list((trial.folder / "results").rglob("*.json"))
    assert not left, f"left behind: {left}"
    return line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["iterations=0"], ["iterations", "0"]),
        (["iterations=-1"], ["iterations", "-1"]),
        (["iterations=abc"], ["iterations", "abc"]),
        (["iteration=7"], ["iteration", "iterations"]),
        (["iterations=2", "--config", "seed=2"], ["--config is given 2 times", "iterations=... seed=..."]),
        (["gpu_hour_usd=5"], ["prices: {gpu_hour_usd: VALUE}"]),
        (["device=tpu"], ["device", "tpu", "cuda"]),
        (["device=cuda"], ["cuda"]),
    ],
    ids=str,
)
def test_wrong_config_on_the_command_line(fresh, arguments, words):
    if arguments == ["device=cuda"] and shutil.which("nvidia-smi"):
        pytest.skip("this machine has a GPU")
    done = fresh.snakemake("--config", *arguments)
    line = problem(done)
    assert all(word in line for word in words), line


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"unknown_key": 1}, ["unknown_key"]),
        ({"baseline": "kernels/scale_add/absent.cu"}, ["baseline", "absent.cu"]),
        ({"prices__gpu_hour_usd": "dear"}, ["gpu_hour_usd", "dear"]),
        ({"policy__minimum_effect": "-1"}, ["minimum_effect", "-1"]),
        ({"protocol__rounds": 0}, ["rounds"]),
        ({"trial": "../escape"}, ["trial"]),
    ],
    ids=str,
)
def test_wrong_config_in_the_file(fresh, changes, words):
    fresh.config(**changes)
    line = refuse(fresh)
    assert all(word in line for word in words), line


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b"date: 2026-12-01", b"date: 2026-13-01", ["config.yaml: prices.", "2026-13-01 is no day of the calendar"]),
        (b"put your name here", b"Ren\xe9", ["config.yaml: is not UTF-8 text"]),
        (b"languages: [cuda_cpp]", b"languages: " + b"[" * 3000, ["config.yaml: line", "nested more than 40 deep"]),
        (b"iterations: ", b"iterations: 1\niterations: ", ["'iterations' stands twice"]),
    ],
    ids=["day", "latin-1", "nesting", "twice"],
)
def test_a_file_that_snakemake_would_stumble_over_is_one_line_before_it_does(fresh, old, new, words):
    written = (CLONE / "workflow/kerneltrial/commands/starter/config.yaml").read_bytes()
    (fresh.folder / "config.yaml").write_bytes(written.replace(old, new, 1))
    line = refuse(fresh)
    assert all(word in line for word in words), line
    doctor = fresh.kerneltrial("doctor")
    assert doctor.returncode == 3
    assert words[-1] in doctor.stdout
    assert "nothing is missing" not in doctor.stdout


def test_what_no_file_can_hold_is_one_line_in_a_quiet_run_too(fresh):
    """Snakemake prints no trace of a Snakefile then: such a run ended with status 1 and not one word."""
    line = refuse(fresh, "--quiet", "all", "--config", os.fsdecode(b"oracle_author=a\xffb"))
    assert "config.yaml: oracle_author: holds bytes that are no UTF-8" in line
    folder = fresh.folder / "kernels/scale_add/candidates"
    (folder / os.fsdecode(b"\xff.cu")).write_text("")
    assert "candidates: a file there is called '\\udcff.cu'" in refuse(fresh, "--quiet", "all")


def test_a_second_whole_config_is_not_mixed_with_the_first(fresh):
    shutil.copy(fresh.folder / "config.yaml", fresh.folder / "other.yaml")
    line = refuse(fresh, "-n", "--configfile", "other.yaml")
    assert "other.yaml: is a whole config" in line
    assert "--replace-workflow-config" in line
    assert fresh.snakemake("-n", "--configfile", "other.yaml", "--replace-workflow-config").returncode == 0
    (fresh.folder / "part.yaml").write_text("iterations: 1\n")
    assert fresh.snakemake("-n", "--configfile", "part.yaml").returncode == 0


ORACLE = "cases/scale_add/oracle.py"
CASES = "cases:\n  - {{name: one, kind: {kind}, dimensions: {{{dims}}}, seed: 1}}\n"


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("cases/scale_add/cases.yaml", CASES.format(kind="correctness", dims="n: 5"), ["performance"]),
        ("cases/scale_add/cases.yaml", CASES.format(kind="performance", dims="n: 5, m: 3"), ["m", "cases.yaml"]),
        ("cases/scale_add/cases.yaml", CASES.format(kind="performance", dims="n: 999999999"), ["999999999"]),
        ("cases/scale_add/cases.yaml", "cases: [", ["cases.yaml"]),
        ("kernels/scale_add/contract.yaml", "name: [", ["contract.yaml"]),
        (ORACLE, "def oracle(inputs, dims):\n    raise RuntimeError('boom')\n", ["oracle.py", "boom"]),
        (ORACLE, "import numpy as np\ndef oracle(i, d):\n    return {'out': np.zeros(3)}\n", ["oracle.py", "out"]),
        (ORACLE, "def answer(i, d):\n    return {}\n", ["oracle.py", "oracle"]),
        (ORACLE, "def oracle(i, d):\n    return {'out': i['x'].astype('float32')}\n", ["oracle.py", "float64"]),
    ],
)  # fmt: skip
def test_wrong_contract_cases_and_oracle(fresh, file, text, words):
    (fresh.folder / file).write_text(text)
    done = fresh.snakemake()
    line = problem(done)
    assert all(word in line for word in words), line
    assert not (fresh.results / "qualification.json").exists()
    if file == ORACLE:  # a job found it; what it said is said again, last
        last = done.stderr.splitlines()[-1]
        assert last.startswith("lock stopped: ")
        assert all(word in last for word in words), last


HOSTILE = ["9**9**9", "__import__('os').system('touch escaped')", "n.real", "(lambda: 1)()", "'a' * 9"]


@pytest.mark.parametrize("expression", HOSTILE)
def test_a_hostile_plan_of_the_baseline_is_refused(fresh, expression):
    plan = fresh.folder / "kernels/scale_add/baseline.plan.yaml"
    plan.write_text(plan.read_text().replace("ceil_div(n, 256)", expression.replace('"', "'")))
    line = problem(fresh.snakemake())
    assert "baseline.plan.yaml" in line or "baseline" in line
    assert not list(fresh.folder.rglob("escaped"))


def test_a_hostile_plan_of_a_candidate_counts_against_it_alone(fresh):
    plan = fresh.folder / "kernels/scale_add/candidates/c_wide.plan.yaml"
    document = yaml.safe_load(plan.read_text())
    document["variants"][0]["launches"][0]["grid"][0] = "__import__('os').system('touch escaped')"
    plan.write_text(yaml.safe_dump(document))
    assert fresh.run()["report"] == 1
    proposal = json.loads((fresh.results / "iterations/0003/proposal.json").read_bytes())["body"]
    build = json.loads((fresh.results / "iterations/0003/build.json").read_bytes())["body"]
    assert "bad_plan" in json.dumps([proposal, build])
    assert not list(fresh.folder.rglob("escaped"))


@pytest.mark.parametrize(
    "file",
    [
        "kernels/scale_add/baseline.cu",
        "kernels/scale_add/contract.yaml",
        "cases/scale_add/cases.yaml",
        "cases/scale_add/oracle.py",
        "cases/scale_add/holdout.yaml",
    ],
)
def test_an_edited_locked_file_stops_the_trial_and_names_the_way_out(trial, file):
    before = trial.records()
    path = trial.folder / file
    path.write_text(path.read_text() + ("\n# edited\n" if path.suffix in (".py", ".yaml") else "\n// edited\n"))
    line = problem(trial.snakemake())
    assert file in line
    assert "kerneltrial lock --new" in line
    assert trial.records() == before


def test_a_new_lock_sets_the_old_trial_aside_and_starts_over(trial):
    with (trial.folder / "kernels/scale_add/baseline.cu").open("a") as baseline:
        baseline.write("\n// edited\n")
    assert trial.kerneltrial("lock", "--new").returncode == 0
    assert (trial.folder / "results/tiny.old1/lock.json").exists()
    assert trial.run("--config", "iterations=1")["propose"] == 1


def test_another_trial_in_the_same_folder_is_refused(trial):
    trial.config(protocol__rounds=61)
    assert "protocol" in problem(trial.snakemake())


def test_a_full_disk_gives_one_line_and_no_half_record(finished, tmp_path):
    trial = finished.copy(tmp_path / "full")
    shutil.rmtree(trial.results)
    script = (
        "mkdir -p results && mount -t tmpfs -o size=96k tmpfs results && "
        + " ".join(trial.command())
        + "; code=$?; find results -name '*.tmp' | head -1; cat results/tiny/qualification.json 2>/dev/null; exit $code"
    )
    done = subprocess.run(
        ["unshare", "-Urm", "bash", "-c", script],
        cwd=trial.folder,
        env=trial.environment,
        capture_output=True,
        text=True,
    )
    if "mount:" in done.stderr or "unshare:" in done.stderr:
        pytest.skip("this system lets no user mount a small file system")
    assert done.returncode != 0
    assert "the disk is full" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
