"""A key in a config is refused before anything of it is written, and is not repeated."""

import shutil
from pathlib import Path

import pytest
import yaml

from kerneltrial.commands.init import STARTER
from kerneltrial.dag import prepared
from kerneltrial.dag.secrets import require_no_secret
from kerneltrial.inputs.problem import InputProblem


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"command": {"words": ["agent", "--key", "sk-proj-abcdefghij0123456789"]}}, "command.words"),
        ({"oracle_author": "the-very-key-of-mine"}, "oracle_author"),
        ({"prices": {"source": "asked with ghp_abcdefghijabcdefghij0123"}}, "prices.source"),
        ({"command": {"words": ["python3", "/opt/agents/skeleton.py"]}, "model": {"key_variable": "MY_KEY"}}, ""),
    ],
)
def test_a_config_that_holds_a_key_is_refused_without_repeating_it(monkeypatch, asked, named):
    monkeypatch.setenv("MY_KEY", "the-very-key-of-mine")
    if not named:
        assert require_no_secret(asked, "MY_KEY") is None
        return
    with pytest.raises(InputProblem, match=f"config key {named}: ") as caught:
        require_no_secret(asked, "MY_KEY")
    for part in ("sk-proj", "of-mine", "ghp_"):
        assert part not in str(caught.value)


def test_a_run_stops_before_the_key_is_written_anywhere(tmp_path, monkeypatch):
    shutil.copytree(STARTER, tmp_path / "trial")
    monkeypatch.chdir(tmp_path / "trial")
    values = yaml.safe_load(Path("config.yaml").read_text())
    values["oracle_author"] = "somebody, sk-proj-abcdefghij0123456789"
    with pytest.raises(SystemExit, match="config key oracle_author: "):
        prepared.prepare(values, Path(), main_process=True)
    written = [path for path in Path("results").rglob("*") if path.is_file()] if Path("results").exists() else []
    assert not any(b"sk-proj" in path.read_bytes() for path in written)
