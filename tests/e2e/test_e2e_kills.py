"""kill -9 at any moment, then the same command again: the same records, nothing measured twice."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.e2e

KILLS = int(os.environ.get("KERNELTRIAL_KILLS", "4"))


def without_records(finished, folder):
    """A trial that has its salt, measurements, usage and journal, but no record: what is left is to be made."""
    trial = finished.copy(folder)
    for path in [*trial.results.glob("*.json"), *trial.results.glob("iterations")]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.rmtree(trial.folder / ".snakemake")
    shutil.rmtree(trial.folder / "reports")
    return trial


def start(trial):
    return subprocess.Popen(
        trial.command(), cwd=trial.folder, env=trial.environment, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def processes_of(trial):
    """Processes that work in the trial's folder."""
    found = []
    for pid in (int(p) for p in os.listdir("/proc") if p.isdigit()):
        try:
            if os.readlink(f"/proc/{pid}/cwd").startswith(str(trial.folder)):
                found.append(pid)
        except OSError:
            continue
    return found


def wait_for_its_end(trial):
    """Nothing outlives a run that was killed; on a busy machine that takes a moment."""
    deadline = time.monotonic() + 60
    while (left := processes_of(trial)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not left, "stages outlived their run"


@pytest.mark.parametrize("whole_group", [True, False], ids=["group", "main"])
def test_records_after_kills_are_those_of_an_undisturbed_run(finished, tmp_path, whole_group):
    trial = without_records(finished, tmp_path / "killed")
    dice = random.Random(11 if whole_group else 12)
    landed = 0
    for _ in range(KILLS):
        run = start(trial)
        time.sleep(dice.uniform(1.0, 6.0))
        landed += run.poll() is None
        if whole_group:
            os.killpg(run.pid, signal.SIGKILL) if run.poll() is None else None
        else:
            run.kill()
        run.wait()
    assert landed, "every run ended before its kill: the test showed nothing"
    wait_for_its_end(trial)
    trial.run()
    assert trial.records() == finished.records()
    assert trial.measurements().keys() == finished.measurements().keys()
    assert {n: m[1] for n, m in trial.measurements().items()} == {n: m[1] for n, m in finished.measurements().items()}
    assert trial.kerneltrial("verify").returncode == 0


MOMENTS = ("lock.json", "iterations/0001/build.json", "iterations/0002/validation.json", "confirmation.json")
SECONDS = {"wall_s", "cpu_s", "device_s"}


def from_the_start(finished, folder):
    """A trial with its salt and what people signed, and nothing else: all is to be made, measured and paid anew."""
    trial = finished.copy(folder)
    for path in trial.results.iterdir():
        if path.name not in ("private", "signed"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.rmtree(trial.folder / ".snakemake")
    shutil.rmtree(trial.folder / "reports")
    return trial


def without_seconds(value):
    """A record's body without what was measured in seconds, which no two runs have alike."""
    if isinstance(value, dict):
        return {key: without_seconds(inner) for key, inner in value.items() if key not in SECONDS}
    return [without_seconds(inner) for inner in value] if isinstance(value, list) else value


def bodies(trial):
    """By path; the report's record holds digests of pages that show those seconds."""
    found = {path: json.loads(content)["body"] for path, content in trial.records().items()}
    return {path: without_seconds(body) for path, body in found.items() if not path.endswith("/report.json")}


def test_a_first_run_that_is_killed_differs_in_measured_seconds_alone(finished, tmp_path):
    trial = from_the_start(finished, tmp_path / "killed")
    dice = random.Random(13)
    for moment in MOMENTS:
        run = start(trial)
        while run.poll() is None and not (trial.results / moment).exists():
            time.sleep(0.02)
        time.sleep(dice.uniform(0.0, 0.2))
        assert run.poll() is None, "the run ended before its kill: the test showed nothing"
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        wait_for_its_end(trial)
    trial.run()
    assert bodies(trial) == bodies(finished)
    assert trial.measurements().keys() == finished.measurements().keys()
    # What was killed left no entry, so that each stage has the seconds of the run that came to its end.
    entries = [path.parent.name for path in trial.results.glob("usage/*/*.json")]
    assert sorted(entries) == sorted(path.parent.name for path in finished.results.glob("usage/*/*.json"))
    assert len(entries) == len(set(entries))
    assert trial.kerneltrial("verify").returncode == 0


KILLED_BEHIND = """
import os, signal, sys
from kerneltrial.store import envelopes, journal, measurements

place, name = {"journal": (journal, "append"), "usage": (measurements.Measurements, "once"),
               "record": (envelopes, "write")}[sys.argv.pop(1)]
real = getattr(place, name)
def killed(*given, **named):
    real(*given, **named)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(place, name, killed)
from kerneltrial.__main__ import main
main(["lock"])
"""


def test_a_kill_between_what_a_stage_writes_leaves_no_usage_that_the_journal_does_not_know(fresh):
    def usage_and_lines():
        entries = [json.loads(path.read_bytes())["value"] for path in fresh.results.glob("usage/lock-0000/*.json")]
        lines = (fresh.results / "journal/lock.jsonl").read_text().splitlines()
        return entries, [json.loads(line)["event"]["usage"] for line in lines]

    for step, written in (("journal", 0), ("usage", 1), ("record", 1)):
        done = subprocess.run(
            [sys.executable, "-c", KILLED_BEHIND, step], cwd=fresh.folder, env=fresh.environment, capture_output=True
        )
        assert done.returncode == -signal.SIGKILL, done.stderr
        entries, lines = usage_and_lines()
        assert len(entries) == written
        assert all(entry in lines for entry in entries)
        assert (fresh.results / "lock.json").exists() == (step == "record")
    assert fresh.kerneltrial("lock").returncode == 0
    entries, lines = usage_and_lines()
    assert len(entries) == 1
    assert entries[0] in lines


def test_a_second_run_at_once_is_refused_in_one_line(finished, tmp_path):
    trial = without_records(finished, tmp_path / "two")
    run = start(trial)
    try:
        deadline = time.monotonic() + 20
        while not (trial.results / "config.json").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        os.killpg(run.pid, signal.SIGSTOP)  # else it may be done before the others have begun, where much is going on
        second = trial.snakemake()
        assert second.returncode == 1
        assert "another run is at work here" in second.stderr
        by_hand = trial.kerneltrial("cost", "--iteration", "1")
        assert (by_hand.returncode, by_hand.stderr.count("\n")) == (3, 1)
        assert run.poll() is None
    finally:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
