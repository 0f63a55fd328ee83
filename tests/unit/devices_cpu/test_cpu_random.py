"""Random CUDA programs of tests/bench/cpu_random.py as an H200 ran them: the same texts and bits, no accusation."""

import base64
import json
import sys
import zlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT / "tests" / "bench")]

from cpu_random import on_cpu
from random_programs import Program, module_of

GOLDEN = json.loads((ROOT / "tests" / "golden" / "random_h200.json").read_text())


@pytest.mark.parametrize("number", range(len(GOLDEN["modules"])))
def test_as_on_the_card(number: int) -> None:
    """A quarter of them under all checks, too."""
    module = GOLDEN["modules"][number]
    ptx = zlib.decompress(base64.b64decode(module["ptx"])).decode()
    programs = tuple(Program(f"k{k}", "", grid, block) for k, (grid, block) in enumerate(module["shapes"]))
    assert len(programs) == 40
    assert on_cpu(ptx, programs) == module["digests"]


def test_the_same_seed_draws_the_same_programs() -> None:
    first, again, other = (module_of(seed, 3, 2).source for seed in (1, 1, 2))
    assert first == again != other
