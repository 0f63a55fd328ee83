"""What a newcomer's first commands say: init, a lock that a run would refuse, a mistyped command."""

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kerneltrial.__main__ import main

CLONE = Path(__file__).resolve().parents[3]


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    monkeypatch.delenv("KERNELTRIAL_RUN", raising=False)
    monkeypatch.chdir(tmp_path)
    assert main(["init", "mine"]) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.chdir(tmp_path / "mine")
    return tmp_path / "mine"


def test_the_starter_config_has_every_key_of_the_shipped_one_and_its_comments(started: Path) -> None:
    def keys(value: Any, path: str = "") -> Iterator[str]:
        if isinstance(value, dict) and not path.endswith("calls_per_month"):
            for key, inner in value.items():
                yield from keys(inner, f"{path}.{key}")
        else:
            yield path

    text, shipped = (started / "config.yaml").read_text(), (CLONE / "config.yaml").read_text()
    assert sorted(keys(yaml.safe_load(text))) == sorted(keys(yaml.safe_load(shipped)))
    comments = [line.partition("#")[2] for line in text.splitlines() if "#" in line]
    gone = {line.partition("#")[2] for line in shipped.splitlines()[1:] if "#" in line} - set(comments)
    assert gone == set(), "the starter's config.yaml lacks these comments: copy them from the root's"


def test_init_says_which_key_runs_the_application(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "mine"]) == 0
    assert "end_to_end.words: [python3, app.py]" in capsys.readouterr().out
    assert "set end_to_end.words to [python3, app.py]" in (tmp_path / "mine/config.yaml").read_text()


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


MISTAKES = {
    "workload": ("cases/scale_add/cases.yaml", "name: ", "name: other_", "config.yaml: workload.calls_per_month: "),
    "entry": ("kernels/scale_add/baseline.plan.yaml", "scale_add", "scaled", "baseline.plan.yaml: entry: 'scaled'"),
}


@pytest.mark.parametrize("mistake", [*MISTAKES, "plan", "empty"])
def test_lock_refuses_what_a_run_would_refuse_and_prints_no_page(
    started: Path, mistake: str, capsys: pytest.CaptureFixture[str]
) -> None:
    candidates = started / "kernels/scale_add/candidates"
    if mistake in MISTAKES:
        file, old, new, said = MISTAKES[mistake]
        _edit(started / file, old, new)
    else:
        said = {"plan": "has no float4.plan.yaml beside it", "empty": "holds no NAME.cu or NAME.py"}[mistake]
        for path in candidates.glob("*.yaml" if mistake == "plan" else "*"):
            path.unlink()
    assert main(["lock"]) == 3
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""
    assert not (started / "results").exists()


def test_init_inside_a_clone_warns_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "workflow/kerneltrial").mkdir(parents=True)
    (tmp_path / "workflow/kerneltrial/__main__.py").touch()
    monkeypatch.chdir(tmp_path)
    assert main(["init", "mine"]) == 0
    assert "inside the clone" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("verfy", "did you mean 'verify'?"),
        ("qqq", "there is no command 'qqq'; `kerneltrial --help`"),
        ("help", "`kerneltrial COMMAND --help`"),
    ],
)
def test_a_mistyped_command_is_told_the_near_one(word: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([word])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("key", ["nosuch", "config.yaml", "kernels"])
def test_a_key_that_is_none_is_said_before_anything_is_locked(
    started: Path, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lock", "--sign", key]) == 3
    printed = capsys.readouterr()
    assert "key" in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""
    assert not (started / "results").exists()


@pytest.mark.parametrize("target", ["pipe", "/dev/zero", "."])
def test_rerun_of_what_is_no_plain_file_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    assert main(["rerun", target]) == 3
    assert capsys.readouterr().err.startswith(f"kerneltrial: {target}: is no plain file")


def test_a_folder_that_cannot_be_made_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "/proc/nobody/mine"]) == 3
    assert capsys.readouterr().err.startswith("kerneltrial: /proc/nobody/mine: cannot be made (")
    assert main(["init", "my trial"]) == 0
    assert "next: cd 'my trial' && snakemake" in capsys.readouterr().out
    assert "results/" in (tmp_path / "my trial/.gitignore").read_text().splitlines()


def test_a_problem_names_files_as_they_are_seen_from_here(started: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (started / "cases/scale_add/oracle.py").write_text("def oracle(:\n")
    log = started / "logs/lock.log"
    assert main(["lock", "--log", str(log)]) == 3
    for said in (capsys.readouterr().err.removeprefix("kerneltrial: "), log.read_text()):
        assert said.startswith("cases/scale_add/oracle.py: does not run: SyntaxError")


@pytest.mark.parametrize("command", ["verify", "lock", "rehearse", "cost-sheet"])
def test_a_command_outside_of_a_trials_folder_says_where_to_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([command]) == 3
    told = "kerneltrial: config.yaml: is not here; go to the trial's folder, or name its config with --config\n"
    assert capsys.readouterr().err == told


@pytest.mark.parametrize("there", [False, True])
def test_init_leaves_all_of_the_starter_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], there: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    if there:
        (tmp_path / "mine").mkdir()
    kept, copied = shutil.copy2, []

    def full(source: str, target: str) -> object:
        copied.append(target)
        if len(copied) == 5:
            raise OSError(errno.ENOSPC, "No space left on device", target)
        return kept(source, target)

    monkeypatch.setattr(shutil.copytree, "__defaults__", (False, None, full, False, False))
    assert main(["init", "mine"]) == 3
    said = capsys.readouterr().err
    assert said.startswith("kerneltrial: mine: cannot be made (")
    assert "No space left on device" in said
    assert said.count("\n") == 1
    assert (tmp_path / "mine").exists() == there
    assert not there or not list((tmp_path / "mine").iterdir())


def test_a_cost_sheet_makes_its_folder_and_replaces_no_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "mine"]) == 0
    monkeypatch.chdir(tmp_path / "mine")
    assert main(["cost-sheet", "--out", "prices/costs.csv"]) == 0
    assert (tmp_path / "mine/prices/costs.csv").read_text().startswith("key,value")
    (tmp_path / "mine/link.csv").symlink_to("nowhere")
    assert main(["cost-sheet", "--out", "link.csv"]) == 3
    assert "link.csv: is there already" in capsys.readouterr().err


def test_an_iteration_that_the_config_does_not_have_is_none(started: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["propose", "--iteration", "3"]) == 3
    told = capsys.readouterr().err
    assert told.startswith("kerneltrial: --iteration 3: the config has iterations: 2; add --set iterations=3, or run ")
    assert not (started / "results").exists()
