"""What a newcomer's first commands say: init, a lock that a run would refuse, a mistyped command."""

from pathlib import Path

import pytest

from kerneltrial.__main__ import main


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    monkeypatch.delenv("KERNELTRIAL_RUN", raising=False)
    monkeypatch.chdir(tmp_path)
    assert main(["init", "mine"]) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.chdir(tmp_path / "mine")
    return tmp_path / "mine"


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
    ("word", "said"), [("verfy", "did you mean 'verify'?"), ("qqq", "`kerneltrial --help` lists the commands")]
)
def test_a_mistyped_command_is_told_the_near_one(word: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([word])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
