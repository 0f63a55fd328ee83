"""`kerneltrial import report`: what counts as passed."""

from types import SimpleNamespace

import msgspec
import pytest

from kerneltrial.commands.importing import report
from kerneltrial.commands.importing.problem import Imported
from kerneltrial.records.decision import Failed, Winner


@pytest.mark.parametrize(("rule", "passed"), [("correct_on_public_cases", 0), ("held_on_holdout", 0), ("payback", 1)])
def test_a_winner_that_was_wrong_again_has_not_passed(tmp_path, monkeypatch, rule, passed):
    one = Imported(
        name="p", level="level1", problem="0" * 64, values="signed", evaluated=False, launches=1, torch="2.13.0"
    )
    (tmp_path / "imports.json").write_bytes(msgspec.json.encode([one]))
    (tmp_path / "p/results/p").mkdir(parents=True)
    (tmp_path / "p/results/p/decision.json").write_text("read by what stands in for the envelopes")
    winner = Winner(**{name: 2.0 if name == "geometric_mean" else "counts" for name in Winner.__struct_fields__})
    failed = Failed(rule=rule, asked="", seen="", example=False)
    decision = SimpleNamespace(winner=winner, rules=(failed,))
    monkeypatch.setattr(report.envelopes, "body", lambda *given: decision)
    assert report.table(tmp_path).splitlines()[1].split()[:5] == ["level1", "1", "1", "1", str(passed)]
