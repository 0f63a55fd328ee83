"""How benches come to import torch: by the first way that works, and with all that may explain a failure."""

import sys
from pathlib import Path

import pytest
from families_import import torch_import

TORCH = """
import os
if {condition}:
    raise RuntimeError("annotate(strtag)")
__version__ = "9.9"
class cuda:
    is_available = staticmethod(lambda: {card})
"""


def pretend(folder: Path, monkeypatch: pytest.MonkeyPatch, condition: str, card: bool = True) -> None:
    (folder / "torch").mkdir()
    (folder / "torch/__init__.py").write_text(TORCH.format(condition=condition, card=card))
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(sys, "pycache_prefix", None)


def test_where_nothing_is_wrong_the_path_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(tmp_path, monkeypatch, "False")
    found = torch_import()
    assert (found.version, found.why, found.pycache, found.path) == ("9.9", "", "", tuple(sys.path))


def test_compiled_modules_that_are_wrong_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(tmp_path, monkeypatch, "not os.environ.get('PYTHONPYCACHEPREFIX')")
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    found = torch_import()
    assert found.version == "9.9"
    assert Path(found.pycache).is_dir()
    assert found.why.count("RuntimeError: annotate(strtag)") == 2
    found.adopt()
    assert sys.pycache_prefix == found.pycache


def test_where_no_way_works_all_that_may_explain_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(tmp_path, monkeypatch, "True")
    found = torch_import()
    assert found.version == ""
    assert found.why.count("RuntimeError: annotate(strtag)") == 3
    for word in ("space b' '", "numpy ", "typing_extensions ", "torch._library.infer_schema ", "path [", "mappings "):
        assert word in found.why


def test_torch_without_a_card_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(tmp_path, monkeypatch, "False", card=False)
    found = torch_import()
    assert found.version == ""
    assert "status 0 torch 9.9 False" in found.why
