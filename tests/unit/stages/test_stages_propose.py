"""What ends the proposing before a proposer is asked: the compiler is beaten, or the prize is too small."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

GOLDEN = Path(__file__).parents[2] / "golden"
if str(GOLDEN) not in sys.path:
    sys.path.insert(0, str(GOLDEN))

from trial_pieces import BASELINE_US, SQUARE, WIDE
from trial_stories import STORIES

from kerneltrial.decide.stopping import stop_reason
from kerneltrial.propose.proposer import NO_USAGE
from kerneltrial.records.compilers import CompilerLatency, Compilers, NoCompiler
from kerneltrial.records.prize import KnownPrize, Prize
from kerneltrial.records.proposal import Proposal, Unusable
from kerneltrial.records.reason import Reason
from kerneltrial.report.words import STOPS
from kerneltrial.stages import propose
from kerneltrial.store import envelopes

TRIAL = STORIES["go"]()
DRY = Unusable(reason=Reason.SPACE_EXHAUSTED, detail="all were tried")


def compiled(share: float) -> Compilers:
    """torch.compile's kernel takes `share` of the baseline's time; the best candidate is 1.405 times the baseline."""
    cases = {case: BASELINE_US[case] * share for case in (SQUARE, WIDE)}
    return Compilers(entries=(CompilerLatency(name="torch_compile", version="2", cases=cases),))


def _ending(record: Any, attempts: tuple[Unusable, ...]) -> Any:
    """A proposal that ends in these; another record as it is."""
    if not isinstance(record, Proposal):
        return record
    return msgspec.structs.replace(record, attempts=(*record.attempts, *attempts))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Run the stage on the story's records with this `stop` and these compilers; and whether a proposer was asked."""
    asking: list[str] = []

    def ask(job: Any, lock: Any, iterations: Any) -> Any:
        asking.append(lock.proposer)
        return [DRY], NO_USAGE

    def run(stop: str, compilers: Compilers, prize: Prize, *last: Unusable) -> tuple[Any, bool]:
        records = {
            "lock": msgspec.structs.replace(TRIAL.lock, stop=stop),
            "qualify": msgspec.structs.replace(TRIAL.qualification, compilers=compilers),
        }
        loops = {"propose": "proposal", "build": "build", "validate": "validation", "time": "timing"}
        path = tmp_path / "results/t/prize.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
        monkeypatch.setattr(envelopes, "body", lambda type_, data, where: prize)
        monkeypatch.setattr(propose, "_asked", ask)
        job = SimpleNamespace(
            trial="t", root=tmp_path, objects=None, record=lambda stage, type_: records[stage],
            records=lambda stage, type_: [_ending(getattr(i, loops[stage]), last) for i in TRIAL.iterations],
        )  # fmt: skip
        return propose.run(job), bool(asking)  # type: ignore[arg-type]

    return run


@pytest.mark.parametrize(
    ("stop", "compilers", "ends"),
    [
        ("beats_compiler", compiled(0.76), True),
        ("beats_compiler", compiled(0.74), False),
        ("beats_compiler", Compilers(entries=(NoCompiler(name="torch_compile", why="no torch"),)), False),
        ("fixed", compiled(0.76), False),
    ],
)
def test_nothing_more_is_asked_for_once_the_compiler_is_beaten(asked, stop, compilers, ends):
    proposal, was_asked = asked(stop, compilers, TRIAL.prize)
    assert was_asked is not ends
    (attempt,) = proposal.attempts
    assert attempt.reason is (Reason.GOAL_REACHED if ends else Reason.SPACE_EXHAUSTED)
    assert proposal.usage == NO_USAGE
    reason = stop_reason(TRIAL.prize, [proposal])
    assert reason == ("beats_compiler" if ends else "space_exhausted")
    assert reason in STOPS  # what summary.json and the page say of it


def test_where_no_kernel_could_pay_back_none_is_asked_for(asked):
    assert isinstance(TRIAL.prize.prize, KnownPrize)
    small = msgspec.structs.replace(TRIAL.prize.prize, can_pay_back=False)
    proposal, was_asked = asked("fixed", compiled(0.76), msgspec.structs.replace(TRIAL.prize, prize=small))
    assert not was_asked
    assert proposal.attempts[0].reason is Reason.PRIZE_TOO_SMALL


def test_a_budget_that_was_spent_ends_the_proposing_for_good(asked):
    spent = Unusable(reason=Reason.BUDGET_SPENT, detail="2 of 2 calls were made")
    proposal, was_asked = asked("fixed", compiled(0.74), TRIAL.prize, spent)
    assert not was_asked
    assert (proposal.attempts, proposal.usage) == ((spent,), NO_USAGE)
    assert stop_reason(TRIAL.prize, [proposal]) == "budget"
