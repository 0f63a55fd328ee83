"""Fixtures; makes `propose_doubles` importable for the tests beside it (pytest's importlib mode adds no folder)."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from propose_doubles import DEVICE, SPACE

from kerneltrial.propose.search.search import Search
from kerneltrial.propose.search.space import Space, read_space


@pytest.fixture
def write_space(tmp_path: Path) -> Callable[..., Path]:
    """Write the small space, with pieces of its text replaced."""

    def write(replaced: Mapping[str, str] | None = None) -> Path:
        text = SPACE
        for old, new in (replaced or {}).items():
            assert old in text
            text = text.replace(old, new)
        (tmp_path / "space.cu").write_text('extern "C" __global__ void scale(float* x, int n, float* partial) {}\n')
        (tmp_path / "space.yaml").write_text(text)
        return tmp_path / "space.yaml"

    return write


@pytest.fixture
def space(write_space: Callable[..., Path]) -> Space:
    return read_space(write_space())


@pytest.fixture
def search(space: Space) -> Search:
    return Search(space, [{"n": 4096}], DEVICE, seed=7)
