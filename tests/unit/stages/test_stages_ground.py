"""Machine code of earlier stages is taken only by a stage that asks for it; what decides compiles anew."""

import ast
import inspect
from types import SimpleNamespace

import pytest
from trial_pieces import CPU, H200, lock

from kerneltrial.stages import confirm, ground, judged_again


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
