"""The proposer `search`: order, determinism, learning, failures, exhaustion."""

import math
import random
import statistics
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from propose_doubles import DEVICE, failed, play, tried

from kerneltrial.inputs.problem import InputProblem
from kerneltrial.propose.history import History, Measured
from kerneltrial.propose.proposer import Draft, assemble
from kerneltrial.propose.search.card import card_of
from kerneltrial.propose.search.prior import log_cycles
from kerneltrial.propose.search.reasoning import Reasoning
from kerneltrial.propose.search.search import Search, open_search
from kerneltrial.propose.search.space import Space, read_space
from kerneltrial.records.case import Case, Cases
from kerneltrial.records.proposal import Unusable
from kerneltrial.records.reason import Reason
from kerneltrial.store.canonical import canonical
from kerneltrial.store.objects import Objects

NONE = History(0, 0, ())
KERNELS = Path(__file__).resolve().parents[3] / "kernels"


def _drafts(found: list[Draft | Unusable]) -> list[Draft]:
    return [d for d in found if isinstance(d, Draft)]


def _parameters(found: list[Draft | Unusable]) -> list[dict[str, int]]:
    return [d.origin.parameters for d in _drafts(found)]


def _ratio(parameters: Mapping[str, int]) -> float:
    """Best at TILE 32, DEPTH 4, SPLIT 2; every step away costs."""
    distance = sum(abs(math.log2(parameters[n] / best)) for n, best in (("TILE", 32), ("DEPTH", 4), ("SPLIT", 2)))
    return 2.0 * math.exp(-0.3 * distance)


def test_the_experts_seed_comes_first(search: Search) -> None:
    first = _drafts(search.propose(NONE, 3))[0]
    assert first.origin.parameters == {"TILE": 16, "DEPTH": 2, "SPLIT": 1}
    assert (first.origin.hypothesis, first.origin.pattern) == ("An expert likes it.", "algebra")


def test_a_draft_carries_source_and_plan_of_its_parameters(search: Search) -> None:
    for draft in _drafts(search.propose(NONE, 4)):
        assert draft.source == search.space.source(draft.origin.parameters)
        assert draft.plan == search.space.plan(draft.origin.parameters)


def test_the_same_history_gives_byte_equal_proposals(space: Space, tmp_path: Path) -> None:
    def proposals(folder: str) -> list[bytes]:
        search = Search(space, [{"n": 4096}], DEVICE, seed=7)
        histories = [play(search, _ratio, iterations, 4) for iterations in range(4)]
        objects = Objects(tmp_path / folder)
        return [canonical(assemble("search", search.propose(h, 4), h, objects)) for h in histories]

    assert proposals("one") == proposals("two")


def test_nothing_is_proposed_twice_and_all_is_proposed_before_the_space_is_exhausted(search: Search) -> None:
    history = play(search, _ratio, iterations=100, count=5)
    total = len(search.space.configurations)
    assert len(history.candidates) == len(history.tried) == total
    last = search.propose(history, 5)
    assert [d.reason for d in last if isinstance(d, Unusable)] == [Reason.SPACE_EXHAUSTED]
    assert len(last) == 1
    assert isinstance(last[0], Unusable)
    assert f"all {total} configurations" in last[0].detail


def test_the_end_of_the_space_shows_within_a_batch(search: Search) -> None:
    total = len(search.space.configurations)
    history = play(search, _ratio, iterations=total // 5, count=5)
    found = search.propose(history, total)
    assert len(found) == total - 5 * (total // 5) + 1
    assert isinstance(found[-1], Unusable)


def test_the_search_finds_the_best_of_a_smooth_space_faster_than_chance(search: Search) -> None:
    def best(history: History) -> float:
        assert history.best is not None
        assert isinstance(history.best.fate, Measured)
        return history.best.fate.ratio

    found = best(play(search, _ratio, iterations=4, count=4))
    draws = [random.Random(n).sample(search.space.configurations, 16) for n in range(200)]
    chance = statistics.mean(max(map(_ratio, draw)) for draw in draws)
    assert found == max(map(_ratio, search.space.configurations))
    assert chance < found


def test_results_overrule_the_prior(search: Search) -> None:
    """Where results contradict the prior's order, later proposals follow the results."""

    def against(parameters: Mapping[str, int]) -> float:
        return 1.0 / parameters["DEPTH"]

    history = play(search, against, iterations=3, count=4)
    later = _parameters(search.propose(history, 3))[:2]
    assert all(p["DEPTH"] <= 2 for p in later)


def test_the_neighbourhood_of_failures_is_avoided(search: Search) -> None:
    def wrong_when_split(parameters: Mapping[str, int]) -> float:
        return 0.0 if parameters["SPLIT"] == 4 else 1.0

    history = play(search, wrong_when_split, iterations=3, count=4)
    assert any(not isinstance(t.fate, Measured) for t in history.tried)
    later = _parameters(search.propose(history, 5))[:4]
    assert all(p["SPLIT"] < 4 for p in later)


def test_what_is_unknown_counts_neither_for_nor_against(search: Search) -> None:
    drafts = _drafts(search.propose(NONE, 3))
    measured = [tried(d, Measured(ratio=1.0)) for d in drafts]
    unknown = play(search, lambda _: -1.0, iterations=1, count=3)
    only_first = History(1, 3, (measured[0],))
    with_unknown = History(1, 3, (measured[0], *unknown.tried[1:]))
    names = [p for p in _parameters(search.propose(only_first, 12)) if p not in _parameters(list(drafts))]
    assert _parameters(search.propose(with_unknown, 1))[0] in names


def test_failures_alone_are_no_obstacle(search: Search) -> None:
    first = _drafts(search.propose(NONE, 2))
    history = History(1, 2, tuple(tried(d, failed()) for d in first))
    assert len(_drafts(search.propose(history, 4))) == 4


def test_the_last_of_a_batch_is_structurally_different(search: Search) -> None:
    history = play(search, _ratio, iterations=2, count=4)
    batch = _drafts(search.propose(history, 4))
    assert "tructurally different" in batch[-1].origin.hypothesis
    assert all("tructurally different" not in d.origin.hypothesis for d in batch[:-1])


def test_the_last_of_a_batch_goes_to_the_largest_part_that_nothing_was_tried_of(search: Search) -> None:
    """Where the prior is wrong about a value, only this lets results correct it."""
    history = History(0, 0, ())
    for number in range(1, 7):
        before = [t.origin.parameters for t in history.tried]
        batch = _parameters(search.propose(history, 4))
        table, last = search.space.table, batch[-1]
        seen = [*before, *batch[:-1]]
        parts = {
            (name, value): int((table[name] == value).sum())
            for name, values in search.space.file.parameters.items()
            for value in values
            if value not in {one[name] for one in seen}
        }
        if not parts:
            break
        assert any(last[name] == value for (name, value), size in parts.items() if size == max(parts.values()))
        history = play(search, lambda p: 1.0 / p["TILE"], number, 4)
    assert number > 1


def test_in_batches_of_one_each_fourth_is_structurally_different(search: Search) -> None:
    history = play(search, _ratio, iterations=8, count=1)
    words = ["tructurally different" in t.origin.hypothesis for t in history.tried]
    assert words == [False, False, False, True] * 2


def test_a_hypothesis_is_one_sentence_that_names_the_change_from_its_parent(search: Search) -> None:
    history = play(search, _ratio, iterations=2, count=4)
    assert history.best is not None
    draft = _drafts(search.propose(history, 2))[0]
    before, after = history.best.origin.parameters, draft.origin.parameters
    assert draft.origin.parents == (history.best.candidate,)
    for name in after:
        changed = f"{name} {before[name]} to {after[name]}"
        assert (changed in draft.origin.hypothesis) == (before[name] != after[name])
    assert draft.origin.hypothesis.endswith(".")
    assert "{" not in draft.origin.hypothesis


def test_the_seed_of_the_trial_only_breaks_ties(space: Space) -> None:
    first = [_parameters(Search(space, [{"n": 4096}], DEVICE, seed).propose(NONE, 1)) for seed in (1, 2)]
    assert first[0] == first[1]


def test_candidates_of_another_proposer_do_not_disturb(search: Search) -> None:
    draft = _drafts(search.propose(NONE, 1))[0]
    origin = type(draft.origin)(hypothesis="h", pattern="none", parents=(), parameters={"OTHER": 3})
    foreign = tried(Draft(language="cuda_cpp", source=b"x", plan=draft.plan, origin=origin), Measured(ratio=9.0))
    found = _drafts(search.propose(History(1, 1, (foreign,)), 2))
    assert found[0].origin.parameters == draft.origin.parameters
    assert all(d.origin.parents == () for d in found)


def test_without_a_performance_case_there_is_nothing_to_rank_by(write_space: Callable[..., Path]) -> None:
    cases = Cases(cases=(Case(name="c", kind="correctness", dimensions={"n": 8}),))
    with pytest.raises(InputProblem, match="no performance case"):
        open_search(write_space(), cases, DEVICE, 0)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("{SPLIT} gives {blocks}", "{SPLIT} gives {bloks}", "reasons.SPLIT: 'bloks' is not known"),
        ("ceil_div(n, DEPTH)", "ceil_div(m, DEPTH)", "'m' is not known"),
        ("    - launches: [{entry", "    - when: n < 0\n      launches: [{entry", "no launch for n=4095"),
        (
            "instructions: ",
            "instructions: -5000000 + ",
            "prior.instructions: .* is -[0-9]+ at .*; it must be at least 0",
        ),
        ("{SPLIT} gives {blocks}", "{SPLIT // (SPLIT - SPLIT)} gives {blocks}", "reasons, .* divides by zero"),
        ('"{TILE * SPLIT} * n"', '"{TILE // (SPLIT - SPLIT)} * n"', "plan of .* divides by zero"),
    ],
)
def test_what_only_shows_with_the_cases_is_one_line_too(
    write_space: Callable[..., Path], old: str, new: str, says: str
) -> None:
    path = write_space({old: new})
    with pytest.raises(InputProblem, match=says) as caught:
        play(Search(read_space(path), [{"n": 4095}], DEVICE, 0), lambda _: 1.0, iterations=2, count=4)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_costs_beyond_64_bits_rank_and_do_not_wrap_round(write_space: Callable[..., Path]) -> None:
    """A thousand times the work takes a thousand times as long, whatever the number of bits."""
    logs = []
    for factor in (10**12, 10**15):
        work = {"instructions: ": f"instructions: {factor} * ", "THREADS: TILE * 4": "THREADS: TILE * 16"}
        space = read_space(write_space(work))
        logs.append(log_cycles(space.file, space.table, [{"n": 4095}], card_of(DEVICE)))
    assert logs[1] - logs[0] == pytest.approx(math.log(1000), abs=1e-3)


RESULTS: dict[str, Callable[[Mapping[str, int]], float]] = {
    "all are equal": lambda _: 1.0,
    "all are wrong": lambda _: 0.0,
    "none can be judged": lambda _: -1.0,
    "by orders of magnitude": lambda found: 10.0 ** (found["TILE"] % 7 - 12),
    "most are wrong": lambda found: 1.5 if found["SPLIT"] == 2 and found["DEPTH"] == 4 else 0.0,
}


@pytest.mark.parametrize("spaces", [{}, {"[8, 16, 32, 64]": "[16]", "[1, 2, 4]": "[1]"}])
@pytest.mark.parametrize("name", RESULTS)
def test_whatever_comes_out_everything_is_proposed_once_and_then_the_space_is_said_to_be_empty(
    write_space: Callable[..., Path], name: str, spaces: Mapping[str, str]
) -> None:
    search = Search(read_space(write_space(spaces)), [{"n": 4096}], DEVICE, seed=7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        history = play(search, RESULTS[name], iterations=20, count=4)
        last = search.propose(history, 4)
    everything = [tuple(one.values()) for one in search.space.configurations]
    assert sorted(tuple(t.origin.parameters.values()) for t in history.tried) == sorted(everything)
    (ended,) = last
    assert isinstance(ended, Unusable)
    assert f"all {len(everything)} configurations of space.yaml were tried" in ended.detail


def test_a_card_with_few_multiprocessors_is_ranked_by_its_own_number(space: Space) -> None:
    few = type(DEVICE)(kind="cuda", arch="sm_90a", name="x", fingerprint={"multiprocessors": "4"})
    guesses = [Search(space, [{"n": 4096}], device, 0).points.guess.tolist() for device in (few, DEVICE)]
    assert guesses[0] != guesses[1]


@pytest.mark.parametrize(("told", "said"), [({}, True), ({"multiprocessors": "132"}, False)])
def test_a_reason_that_counts_multiprocessors_says_whose_they_are(
    space: Space, told: dict[str, str], said: bool
) -> None:
    device = type(DEVICE)(kind="cpu", arch="sm_80", name="x", fingerprint=told)
    card = card_of(device)
    assert card.multiprocessors == 132
    reasoning = Reasoning(space, {"n": 4096}, card)
    because = space.file.reasons["SPLIT"]
    parameters = _drafts(Search(space, [{"n": 4096}], device, 0).propose(NONE, 1))[0].origin.parameters
    sentence = reasoning._join("Lead", because, parameters)
    assert "132 SMs at" in sentence
    assert ("the Hopper card that the search's model assumes here" in sentence) is said
