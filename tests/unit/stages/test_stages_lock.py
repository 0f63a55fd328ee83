"""Where the system cannot confine a child, the config has to allow it."""

import pytest

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
