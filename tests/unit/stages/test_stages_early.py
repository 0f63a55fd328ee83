"""What a stage starts before its own modules: the compiler of the language that its space is written in."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from kerneltrial.build.preloading import preload
from kerneltrial.stages import early
from kerneltrial.store import envelopes


@pytest.mark.parametrize(
    ("device", "text", "prepared"),
    [
        ("cuda", "source: s.cu\n", preload({"cuda_cpp"})),
        ("cuda", "source: s.py\nlanguage: numba_cuda\n", preload({"numba_cuda"})),
        ("cpu", "source: s.py\nlanguage: numba_cuda\n", ()),
    ],
)
def test_a_search_on_a_card_has_its_own_languages_compiler_prepared(
    device: str, text: str, prepared: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = tmp_path / "space.yaml"
    space.write_text(text)
    lock = SimpleNamespace(body={"proposer": "search", "device": {"kind": device}})
    monkeypatch.setattr(envelopes, "read", lambda path: lock)
    job = SimpleNamespace(stage="propose", folder=tmp_path, source=lambda group: space)
    assert early._names(job) == prepared
