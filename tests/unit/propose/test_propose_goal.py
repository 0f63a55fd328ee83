"""`stop: beats_compiler`: five percent faster than torch.compile, on every performance case taken together."""

import sys
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[2] / "golden"
if str(GOLDEN) not in sys.path:
    sys.path.insert(0, str(GOLDEN))

from prompts import iterations
from trial_pieces import BASELINE_US, SQUARE, WIDE
from trial_stories import STORIES

from kerneltrial.propose.goal import goal_reached
from kerneltrial.records.compilers import CompilerLatency, Compilers, NoCompiler


def compilers(share: float, name: str = "torch_compile", cases: tuple[str, ...] = (SQUARE, WIDE)) -> Compilers:
    """A compiler whose kernel takes `share` of the baseline's time."""
    return Compilers(
        entries=(CompilerLatency(name=name, version="2", cases={case: BASELINE_US[case] * share for case in cases}),)
    )


@pytest.mark.parametrize(
    ("share", "reached"),
    [(1.0, True), (0.76, True), (0.74, False), (0.5, False)],  # the best is 1.405 times the baseline
)
def test_the_best_must_be_five_percent_faster(share: float, reached: bool) -> None:
    said = goal_reached(iterations(STORIES["go"]()), compilers(share))
    assert bool(said) is reached
    if reached:
        assert f"the best is {1.404564 * share:.3f} times" in said


@pytest.mark.parametrize(
    "unknown",
    [
        Compilers(),
        Compilers(entries=(NoCompiler(name="torch_compile", why="no torch"),)),
        compilers(1.0, "torch_eager"),
        compilers(1.0, cases=(SQUARE,)),
    ],
)
def test_without_the_compilers_figures_the_trial_goes_on(unknown: Compilers) -> None:
    assert goal_reached(iterations(STORIES["go"]()), unknown) == ""


def test_counts_are_no_time() -> None:
    assert goal_reached(iterations(STORIES["cpu"]()), compilers(1.0)) == ""
