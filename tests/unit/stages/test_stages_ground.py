"""Machine code of earlier stages is taken only by a stage that asks for it; what decides compiles anew."""

import ast
import inspect
import threading
from types import SimpleNamespace

import pytest
from trial_pieces import CPU, H200, lock

from kerneltrial.devices.device import DeviceProblem
from kerneltrial.stages import confirm, ground, judged_again
from kerneltrial.stages.ground import Closing


def job(tmp_path, device):
    private = tmp_path / "private"
    private.mkdir()
    return SimpleNamespace(
        record=lambda stage, type_: lock(device, "t"), nursery=object(), folder=tmp_path, private=private
    )


@pytest.mark.parametrize(("shelved", "device", "taken"), [(True, CPU, True), (False, CPU, False), (True, H200, False)])
def test_only_who_asks_gets_a_shelf_and_the_trial_a_key(tmp_path, shelved, device, taken):
    with ground.ground(job(tmp_path, device), shelved=shelved) as g:
        assert (g.shelf is not None) == taken
        assert g.runner()._shelf is g.shelf
    assert (tmp_path / "private/code-key").exists() == taken


@pytest.mark.parametrize("stage", [confirm, judged_again])
def test_what_decides_and_what_looks_at_evidence_of_others_asks_for_none(stage):
    calls = [node for node in ast.walk(ast.parse(inspect.getsource(stage))) if isinstance(node, ast.Call)]
    grounds = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "ground"]
    assert grounds
    assert not any(call.keywords for call in grounds)


def test_runners_are_closed_side_by_side_and_the_end_waits_for_all() -> None:
    all_here, closed = threading.Barrier(3, timeout=60.0), []

    class Slow:
        def close(self) -> None:
            all_here.wait()  # each waits for the others to be closed too
            closed.append(self)

    with Closing() as closing:
        closing.soon(Slow(), Slow())
        closing.soon(Slow())
    assert len(closed) == 3


def test_what_goes_wrong_when_a_runner_is_closed_is_raised_unless_something_else_was() -> None:
    class Broken:
        def close(self) -> None:
            raise DeviceProblem("the card is lost")

    with pytest.raises(DeviceProblem, match="the card is lost"), Closing() as closing:
        closing.soon(Broken())

    def failing() -> None:
        with Closing() as closing:
            closing.soon(Broken())
            raise ValueError("first")

    with pytest.raises(ValueError, match="first"):
        failing()
