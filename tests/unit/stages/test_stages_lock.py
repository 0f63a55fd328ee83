"""What the lock refuses: a system that cannot confine a child, unless the config allows it; a goal out of reach."""

from types import SimpleNamespace

import pytest

from kerneltrial.inputs.problem import InputProblem
from kerneltrial.sandbox import means
from kerneltrial.sandbox.problem import SandboxProblem
from kerneltrial.stages import lock


def test_a_system_that_cannot_confine_stops_the_trial_unless_the_config_allows_it(monkeypatch):
    monkeypatch.setattr(means, "lacking", lambda: "Landlock")
    with pytest.raises(SandboxProblem, match=r"no Landlock.*sandbox: plain"):
        lock._means("required")
    assert lock._means("plain") == means.report()


def test_what_confines_children_here_is_written_into_the_lock():
    assert set(means.report()) >= {"namespaces", "files", "system_calls"}


@pytest.mark.parametrize(
    ("stop", "device", "torch", "says"),
    [
        ("beats_compiler", "cpu", "a @ b", "a trial on the cpu device times nothing; take stop: fixed"),
        ("beats_compiler", "cuda", " ", "the contract gives no torch expression"),
        ("beats_compiler", "cuda", "a @ b", ""),
        ("fixed", "cpu", "", ""),
    ],
)
def test_a_goal_that_nothing_can_reach_is_refused_before_anything_runs(stop, device, torch, says):
    asked = SimpleNamespace(stop=stop, device=SimpleNamespace(kind=device), contract=SimpleNamespace(torch=torch))
    if not says:
        assert lock._require_goal(asked) is None
        return
    with pytest.raises(InputProblem, match=says):
        lock._require_goal(asked)


def test_what_was_begun_early_is_what_is_told_and_nothing_is_tried_twice(monkeypatch) -> None:
    means._probed.cache_clear()
    before, tried = means.report(), []
    real = means._tries
    monkeypatch.setattr(means, "_tries", lambda: tried.append(1) or real())
    means._probed.cache_clear()
    means.begin()
    assert means.report() == before
    assert means.lacking() == means.lacking()
    assert tried == [1]
