"""Config files are looked at before Snakemake reads them."""

from pathlib import Path

import pytest

from kerneltrial.commands.init import STARTER
from kerneltrial.dag import asked, prepared


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.yaml").write_bytes((STARTER / "config.yaml").read_bytes())
    return tmp_path


def test_a_right_config_passes_and_one_alone_may_be_absent(folder: Path, tmp_path_factory) -> None:
    asked.look(folder, (), False)
    asked.look(tmp_path_factory.mktemp("empty"), (), False)


def test_a_second_whole_config_asks_for_the_option(folder: Path) -> None:
    (folder / "b.yaml").write_bytes((folder / "config.yaml").read_bytes())
    (folder / "part.yaml").write_text("iterations: 3\n")
    with pytest.raises(SystemExit, match=r"^kerneltrial: b.yaml: is a whole config.*--replace-workflow-config"):
        asked.look(folder, [str(folder / "b.yaml")], False)
    asked.look(folder, ["b.yaml"], True)
    asked.look(folder, ["part.yaml", "config.yaml"], False)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"prices: {date: 2026-13-01}", "prices.date: 2026-13-01 is no day of the calendar"),
        (b"a: caf\xe9", "config.yaml: is not UTF-8 text"),
        (b"a: " + b"[" * 5000, "nested more than 40 deep"),
        (b"a: 1\na: 2", "'a' stands twice"),
    ],
)
def test_what_snakemake_would_stumble_over_or_overlook_is_one_line(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "config.yaml").write_bytes(content)
    with pytest.raises(SystemExit) as ended:
        asked.look(tmp_path, (), True)
    assert str(ended.value).startswith("kerneltrial: config.yaml: ")
    assert told in str(ended.value)
    assert "\n" not in str(ended.value)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--cores 1 --config iterations=0 --config seed=2 -n", "--config is given 2 times"),
        ("-C iterations=0 --cores 1 --config=seed=2", "give all values after one: --config iterations=... seed=..."),
        ("-Citerations=0 -Cseed=2", "--config is given 2 times"),
        ("--config iterations=3 seed=1 iterations=4 --cores 1", "--config gives iterations 2 values"),
    ],
)
def test_words_that_snakemake_would_drop_without_a_word_are_refused(folder: Path, words: str, told: str) -> None:
    with pytest.raises(SystemExit) as ended:
        asked.look(folder, (), False, words.split())
    assert told in str(ended.value)
    assert "=0" not in str(ended.value), "a value may be a secret"


@pytest.mark.parametrize(
    "words",
    ["--config iterations=3 seed=1 --configfile part.yaml", "-c 1 -C seed=1", "--cores 1 --config=seed=1", "--config"],
)
def test_words_that_all_count_are_let_pass(folder: Path, words: str) -> None:
    asked.look(folder, (), False, words.split())


def test_a_run_that_is_stopped_before_any_job_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(prepared, "check", stopped)
    with pytest.raises(SystemExit, match=r"^kerneltrial: stopped before any job; the same command goes on"):
        prepared.prepare({}, folder, main_process=True)


def test_a_run_from_another_folder_is_told_where_to_go(folder: Path) -> None:
    home, other = folder / "my trial", folder / "elsewhere"
    home.mkdir()
    other.mkdir()
    (folder / "config.yaml").rename(home / "config.yaml")
    for place, told in ((folder, "'my trial'"), (other, "'../my trial'")):
        with pytest.raises(SystemExit) as ended:
            asked.at_home(place, (), home / "Snakefile")
        line = f"kerneltrial: there is no config.yaml here; go to the trial's folder, `cd {told}`, or add "
        assert str(ended.value) == f"{line}`--directory {told}`"
    asked.at_home(home, (), home / "Snakefile")
    asked.at_home(other, ["part.yaml"], home / "Snakefile")
    asked.at_home(other, (), other / "Snakefile")
