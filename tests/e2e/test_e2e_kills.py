"""kill -9 at any moment, then the same command again: the same records, nothing measured twice."""

import os
import random
import shutil
import signal
import subprocess
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
    deadline = time.monotonic() + 10
    while (left := processes_of(trial)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not left, "stages outlived their run"
    trial.run()
    assert trial.records() == finished.records()
    assert trial.measurements().keys() == finished.measurements().keys()
    assert {n: m[1] for n, m in trial.measurements().items()} == {n: m[1] for n, m in finished.measurements().items()}
    assert trial.kerneltrial("verify").returncode == 0


def test_a_second_run_at_once_is_refused_in_one_line(finished, tmp_path):
    trial = without_records(finished, tmp_path / "two")
    run = start(trial)
    try:
        deadline = time.monotonic() + 20
        while not (trial.results / "config.json").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        second = trial.snakemake()
        assert second.returncode == 1
        assert "another run is at work here" in second.stderr
        by_hand = trial.kerneltrial("cost", "--iteration", "1")
        assert (by_hand.returncode, by_hand.stderr.count("\n")) == (3, 1)
        assert run.poll() is None
    finally:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
