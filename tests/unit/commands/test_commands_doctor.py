"""`kerneltrial doctor`: what is here, which device, what is missing."""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kerneltrial.commands import doctor
from kerneltrial.commands.init import STARTER
from kerneltrial.inputs.installing import install
from kerneltrial.records.device import Device


def _told(capsys: pytest.CaptureFixture[str], folder: Path) -> tuple[int, list[str]]:
    status = doctor.run(argparse.Namespace(config=Path("config.yaml"), set=[]), folder)
    return status, capsys.readouterr().out.splitlines()


def test_it_names_the_device_and_takes_a_dozen_lines(capsys, tmp_path: Path) -> None:
    status, lines = _told(capsys, tmp_path)
    assert status == 0, lines
    assert len(lines) <= 13
    assert any(line.startswith("device: ") for line in lines)
    assert "a trial here (config.yaml and Snakefile): no" in lines
    assert lines[-1].startswith("nothing is missing")
    assert lines[-1].endswith(": make a trial with `kerneltrial init DIR`")
    shutil.copytree(STARTER, tmp_path / "mine")
    assert _told(capsys, tmp_path / "mine")[1][-1].endswith(": run `kerneltrial rehearse`, then `snakemake --cores 1`")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("date: 2026-12-01", "date: 2026-02-30", "prices.date: 2026-02-30 is no day"),
        ("iterations: 2 ", "iterations: two ", "iterations: 'two' is not allowed"),
        ("    large: ", "    larger: ", "workload.calls_per_month"),
        ("trial: scale_add", "trial: [", "config.yaml: line"),
        ("example: true", "example: yes", "yes has two readings in YAML; write true or false"),
        ("device: auto", "device: cuda", "cuda: there is no NVIDIA driver"),
        ("proposer: files ", "proposer: openai ", "the environment variable OPENAI_API_KEY is not set"),
    ],
)
def test_a_config_that_a_run_would_refuse_is_something_missing(
    capsys, tmp_path: Path, monkeypatch, old, new, told
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr("kerneltrial.devices.opening._lacking", lambda: "there is no NVIDIA driver on this machine")
    shutil.copytree(STARTER, tmp_path / "mine")
    config = tmp_path / "mine/config.yaml"
    text = config.read_text()
    assert old in text
    config.write_text(text.replace(old, new, 1))
    status, lines = _told(capsys, tmp_path / "mine")
    assert status == 3
    assert any(line.startswith("a trial here") and told in line for line in lines), lines
    assert lines[-1] == "missing: a trial without a mistake"


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        (
            "cases/scale_add/oracle.py",
            "def oracle(inputs",
            "def oracle(inputs(",
            "oracle.py: does not run: SyntaxError",
        ),
        ("cases/scale_add/oracle.py", 'inputs["x"]', 'inputs["X"]', "oracle.py: oracle() raised KeyError: 'X' (line "),
        ("kernels/scale_add/candidates/float4.plan.yaml", "entry:", "entyr:", "unknown key 'entyr'; did you mean"),
    ],
)
def test_an_oracle_that_does_not_run_and_a_plan_that_cannot_be_read_are_something_missing(
    capsys, tmp_path: Path, monkeypatch, file, old, new, told
) -> None:
    shutil.copytree(STARTER, tmp_path / "mine")
    monkeypatch.chdir(tmp_path / "mine")
    (tmp_path / "mine" / file).write_text((tmp_path / "mine" / file).read_text().replace(old, new))
    status, lines = _told(capsys, tmp_path / "mine")
    assert status == 3
    assert any(line.startswith(f"a trial here (config.yaml and Snakefile): {file}") and told in line for line in lines)


def test_a_trial_of_another_config_is_looked_at_where_snakemake_would_run_it(capsys, tmp_path: Path) -> None:
    shutil.copytree(STARTER, tmp_path / "mine")
    (tmp_path / "mine/trials").mkdir()
    (tmp_path / "mine/config.yaml").rename(tmp_path / "mine/trials/other.yaml")
    given = argparse.Namespace(config=Path("trials/other.yaml"), set=[])
    assert doctor.run(given, tmp_path / "mine") == 0
    assert "a trial here (trials/other.yaml and Snakefile): yes" in capsys.readouterr().out.splitlines()
    given = argparse.Namespace(config=Path("trials/other.yaml"), set=["iterations=0"])
    assert doctor.run(given, tmp_path / "mine") == 3


def test_what_is_missing_for_a_model_is_not_forgotten_in_the_last_line(capsys, tmp_path: Path, monkeypatch) -> None:
    real = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: None if name == "httpx2" else real(name))
    status, lines = _told(capsys, tmp_path)
    assert status == 0
    assert any("missing httpx2: pip install -e '.[openai]' in the clone" in line for line in lines)
    assert re.match(r"nothing is missing, the extras? (gpu(, | and ))?openai( and torch)? aside: ", lines[-1])


@pytest.mark.parametrize(
    ("version", "told"), [(None, "missing torch: pip install"), ("2.13.0+cpu", "torch 2.13.0+cpu")]
)
def test_it_says_whether_problems_in_pytorch_can_be_imported(capsys, tmp_path, monkeypatch, version, told) -> None:
    real = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: version if name == "torch" else real(name))
    status, lines = _told(capsys, tmp_path)
    assert status == 0
    assert any(line.startswith(f"for PyTorch's problems, and torch beside a baseline: {told}") for line in lines)
    assert ("torch aside: " in lines[-1]) == (version is None)


def test_the_command_for_an_extra_is_that_of_a_clone_or_of_a_package(tmp_path: Path) -> None:
    assert install("gpu") == "pip install -e '.[gpu]' in the clone"
    assert install("gpu", tmp_path / "site-packages/kerneltrial") == "pip install 'kerneltrial[gpu]'"


def test_a_missing_package_is_named_and_ends_in_status_3(capsys, tmp_path: Path, monkeypatch) -> None:
    real = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: None if name == "llvmlite" else real(name))
    status, lines = _told(capsys, tmp_path)
    assert status == 3
    assert "llvmlite MISSING" in lines[1]
    assert "llvmlite" in lines[-1]


@pytest.mark.parametrize(("path", "told"), [("/opt/compute-sanitizer", "/opt/compute-sanitizer"), ("", "absent: ")])
def test_on_a_card_it_says_whether_compute_sanitizer_is_there(capsys, tmp_path, monkeypatch, path, told) -> None:
    card = Device(kind="cuda", arch="sm_90a", name="a card", fingerprint={})
    monkeypatch.setattr("kerneltrial.devices.opening.detect", lambda: card)
    monkeypatch.setattr("kerneltrial.devices.cuda.sanitizer.found", lambda: path)
    assert any(line.startswith(f"  compute-sanitizer: {told}") for line in _told(capsys, tmp_path)[1])


def test_what_a_card_says_of_itself_takes_few_lines(capsys, tmp_path: Path, monkeypatch) -> None:
    told = {f"property_{number}": "1234567" for number in range(20)}
    monkeypatch.setattr(
        "kerneltrial.devices.opening.detect", lambda: Device(kind="cuda", arch="a", name="b", fingerprint=told)
    )
    lines = _told(capsys, tmp_path)[1]
    assert len(lines) <= 16
    assert max(map(len, (line for line in lines if line.startswith("  property")))) <= 110
    assert all(f"property {number} 1234567" in " ".join(" ".join(lines).split()) for number in range(20))


def test_either_toolkit_will_do(capsys, tmp_path: Path, monkeypatch) -> None:
    real = doctor._version
    swapped = {"nvidia-cuda-nvrtc": None, "nvidia-cuda-nvrtc-cu12": "12.9.86"}
    monkeypatch.setattr(doctor, "_version", lambda name: swapped[name] if name in swapped else real(name))
    status, lines = _told(capsys, tmp_path)
    assert status == 0
    assert "nvidia-cuda-nvrtc-cu12 12.9.86" in lines[1]


def test_a_reader_that_has_seen_enough_gets_no_traceback() -> None:
    script = f"{sys.executable} -m kerneltrial doctor | true; sleep 0.1"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120)
    assert "Traceback" not in done.stderr


def test_a_full_disk_and_a_folder_that_is_shut_are_something_missing(capsys, tmp_path: Path, monkeypatch) -> None:
    shutil.copytree(STARTER, tmp_path / "mine")
    (tmp_path / "mine/results").mkdir()
    reads = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "results" and reads(path, mode))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: argparse.Namespace(total=1 << 40, used=1 << 40, free=1 << 20))
    status, lines = _told(capsys, tmp_path / "mine")
    assert status == 3
    assert any(line.startswith("disk: 0.0 GiB free") for line in lines)
    assert any(line.endswith(f"; nothing can be written in {tmp_path / 'mine/results'}") for line in lines)
    assert lines[-1] == "missing: room on the disk, a folder to write to"


def test_a_config_that_is_named_and_not_there_is_something_missing(capsys, tmp_path: Path) -> None:
    assert doctor.run(argparse.Namespace(config=Path("other.yaml"), set=[]), tmp_path) == 3
    lines = capsys.readouterr().out.splitlines()
    assert "a trial here (other.yaml and Snakefile): there is no file other.yaml" in lines
    assert lines[-1] == "missing: a trial without a mistake"
