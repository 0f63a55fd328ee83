"""`kerneltrial compare`: rows that differ look different, and a trial without a decision is said not to be finished."""

import pytest

from kerneltrial.commands import compare
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.records.envelope import MadeFrom
from kerneltrial.records.proposal import ModelUsage, Proposal, Unusable
from kerneltrial.records.reason import Reason
from kerneltrial.store import envelopes


@pytest.mark.parametrize("at", [0, 10, 38, 39, 40, 41, 79, 99])
def test_long_values_are_cut_where_they_still_differ(at: int) -> None:
    one = "kernels/layernorm_residual_f32/" + "a" * 69
    other = f"{one[:at]}#{one[at + 1 :]}"
    row = compare.table(
        ("", "A", "B"), [("lock.files.kernels/a_rather_long_folder/and_a_long_name.plan.yaml", one, other)]
    )
    name, first, second = row.splitlines()[1].split()
    assert name.endswith("and_a_long_name.plan.yaml")
    assert first != second
    assert max(len(first), len(second)) <= 40


def test_of_two_where_one_ends_sooner_the_end_is_seen() -> None:
    assert len(set(compare._cut("x" * 50, "x" * 60))) == 2


def test_heads_of_long_names_stay_apart() -> None:
    heads = ("", f"{'trial_' * 9}one", f"{'trial_' * 9}two")
    assert len(set(compare.table(heads, []).split())) == 2


def test_a_trial_without_a_decision_is_not_finished(tmp_path) -> None:
    told = dict(zip(compare._NAMES, compare._figures(tmp_path, 3), strict=True))
    assert told["outcome"] == told["best"] == told["stopped by"] == "not finished"
    assert told["attempts"] == "0"


def test_iterations_that_are_left_over_are_not_counted(tmp_path) -> None:
    for number in (1, 2, 3):
        body = Proposal("files", (Unusable(Reason.UNUSABLE_REPLY, "no"),), ModelUsage((), (), 0, 0, 0, 0))
        envelope = envelopes.seal("propose", number, MadeFrom(code="0" * 64, config={}, inputs={}), body)
        envelopes.write(tmp_path / f"iterations/{number:04d}/proposal.json", envelope)
    attempts = compare._NAMES.index("attempts")
    assert compare._figures(tmp_path, 2)[attempts] == "2"
    assert compare._figures(tmp_path, 7)[attempts] == "3"


def test_of_two_cards_the_names_are_said_and_of_one_card_what_changed() -> None:
    def lock(name: str, **fingerprint: str) -> dict[str, object]:
        device = {"kind": "cuda", "name": name, "arch": "sm_90a", "fingerprint": fingerprint}
        return {"trial": "t", "asked": {"seed": 1, "application": ""}, "seed": 1, "device": device}

    told = compare._of_locks
    assert told(lock("A", driver="1", ecc="0"), lock("B", driver="2", ecc="1")) == [
        ("lock.device.name", "A (cuda, sm_90a)", "B (cuda, sm_90a)")
    ]
    assert told(lock("A", driver="1"), lock("A", driver="2")) == [("lock.device.fingerprint.driver", "1", "2")]
    other = {**lock("A"), "seed": 2, "asked": {"seed": 2, "application": "app"}}
    assert told(lock("A"), other) == [("lock.asked.application", "none", "app"), ("lock.seed", "1", "2")]


def test_a_trial_is_found_by_the_folder_that_holds_it_alone(tmp_path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"a/results/{name}").mkdir(parents=True)
    (tmp_path / "a/results/one/lock.json").touch()
    assert compare._folder("a", tmp_path) == tmp_path / "a/results/one"
    (tmp_path / "a/results/two/lock.json").touch()
    with pytest.raises(InputProblem, match="a holds 2 trials; name one of a/results/one, a/results/two"):
        compare._folder("a", tmp_path)
    (tmp_path / "b.tar").touch()
    with pytest.raises(InputProblem, match=r"b.tar is no trial .* a bundle is unpacked first"):
        compare._folder("b.tar", tmp_path)


def test_many_files_that_one_of_the_two_alone_has_are_one_row() -> None:
    """A replay's lock holds every reply; sixty rows of digests would hide the one variable that was changed."""

    def lock(files: dict[str, str]) -> dict[str, object]:
        device = {"kind": "cpu", "name": "cpu", "arch": "sm_90", "fingerprint": {}}
        return {"trial": "t", "asked": {}, "device": device, "files": {"oracle.py": "1", "r/kept.json": "1", **files}}

    replies = {f"r/{number}.json": "1" for number in range(28)}
    told = compare._of_locks(lock({}), lock({**replies, "r/kept.json": "2", "one/a.cu": "1"}))
    assert told == [
        ("lock.files.one/a.cu", "absent", "1"),
        ("lock.files.r/*", "absent", "28 files"),
        ("lock.files.r/kept.json", "1", "2"),
    ]
    both = compare._of_locks(
        lock(dict(list(replies.items())[:3])), lock({f"r/x{number}.json": "1" for number in range(5)})
    )
    assert both == [
        *((f"lock.files.r/{number}.json", "1", "absent") for number in range(3)),
        ("lock.files.r/*", "absent", "5 files"),
    ]
