"""What the compiler reports of what a search is about to propose, and what the search makes of it."""

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from propose_doubles import DEVICE, play

from kerneltrial.propose.history import History, Resources
from kerneltrial.propose.proposer import Draft, assemble
from kerneltrial.propose.search.reports import Compiles, DoesNot, Refined, Report, Silent
from kerneltrial.propose.search.search import COMPILED, Search
from kerneltrial.propose.search.space import Space
from kerneltrial.records.proposal import Unusable
from kerneltrial.records.reason import Reason
from kerneltrial.store.canonical import canonical
from kerneltrial.store.objects import Objects

NONE = History(0, 0, ())
LEAN = Compiles(registers=24, shared_bytes=0, spilled_bytes=0)
BROKEN = DoesNot(reason=Reason.DOES_NOT_COMPILE, detail="error")


class Compiler:
    """Answers by a rule, and remembers what it was asked."""

    def __init__(self, rule: Callable[[dict[str, int]], Report]) -> None:
        self.rule = rule
        self.asked: list[list[dict[str, int]]] = []

    def __call__(self, drafts: Sequence[Draft]) -> list[Report]:
        self.asked.append([draft.origin.parameters for draft in drafts])
        return [self.rule(draft.origin.parameters) for draft in drafts]


def made(space: Space, compiler: Compiler | None) -> Search:
    return Search(space, [{"n": 4096}], DEVICE, seed=7, compile=compiler)


def parameters(found: Sequence[Draft | Unusable]) -> list[dict[str, int]]:
    return [draft.origin.parameters for draft in found if isinstance(draft, Draft)]


def test_what_is_proposed_was_compiled_all_at_once(space: Space) -> None:
    compiler = Compiler(lambda _: LEAN)
    proposed = parameters(made(space, compiler).propose(NONE, 4))
    asked = [one for batch in compiler.asked for one in batch]
    assert all(one in asked for one in proposed)
    assert len(asked) <= COMPILED * 4
    assert len(compiler.asked) == 1  # the expert's seed and what the last slot takes among them
    assert len({tuple(one.values()) for one in asked}) == len(asked)


def test_what_does_not_compile_is_not_proposed_and_its_neighbours_are_avoided(space: Space) -> None:
    def split_is_broken(found: dict[str, int]) -> Report:
        return BROKEN if found["SPLIT"] == 4 else LEAN

    search = made(space, Compiler(split_is_broken))
    history = play(search, lambda _: 1.0, iterations=3, count=4)
    compiled = [one for batch in search.compile.asked for one in batch]
    assert any(one["SPLIT"] == 4 for one in compiled)
    tried = [one.origin.parameters for one in history.tried]
    assert not [one for one in tried if one["SPLIT"] == 4 and one in compiled]
    late = [one for batch in search.compile.asked[-3:] for one in batch]
    assert len([one for one in late if one["SPLIT"] == 4]) < len(late)


def test_registers_and_spills_of_the_compiler_overrule_the_guess_of_the_space(space: Space) -> None:
    plain = parameters(made(space, None).propose(NONE, 4))
    first = plain[1]  # after the seed

    def heavy(found: dict[str, int]) -> Report:
        return Compiles(registers=255, shared_bytes=200_000, spilled_bytes=4000) if found == first else LEAN

    assert first not in parameters(made(space, Compiler(heavy)).propose(NONE, 4))[:3]
    assert first in parameters(made(space, Compiler(lambda _: LEAN)).propose(NONE, 4))[:3]


def test_a_compiler_that_says_nothing_changes_nothing(space: Space) -> None:
    plain = parameters(made(space, None).propose(NONE, 4))
    assert parameters(made(space, Compiler(lambda _: Silent())).propose(NONE, 4)) == plain


def test_resources_of_earlier_builds_count_where_reports_do(space: Space) -> None:
    """On `cpu` they do not: counts know no registers."""

    def with_resources(history: History) -> History:
        heavy = [
            msgspec.structs.replace(
                one, resources=Resources(registers=255 - index, shared_bytes=200_000, spilled_bytes=900 * index)
            )
            for index, one in enumerate(history.tried)
        ]
        return History(history.iterations, history.attempts, tuple(heavy))

    search = made(space, None)
    history = play(search, lambda found: 1.0 / found["DEPTH"], iterations=2, count=4)
    assert parameters(search.propose(with_resources(history), 4)) == parameters(search.propose(history, 4))
    silent = made(space, Compiler(lambda _: Silent()))
    assert parameters(silent.propose(with_resources(history), 4)) != parameters(silent.propose(history, 4))


def test_more_registers_spills_and_shared_memory_never_look_faster(space: Space) -> None:
    search = made(space, None)

    def guess(registers: int, shared: int, spilled: int) -> float:
        refined = Refined(search.terms, search.points.guess)
        refined.add(0, Compiles(registers=registers, shared_bytes=shared, spilled_bytes=spilled))
        return float(refined.guess[0])

    assert guess(32, 0, 0) >= guess(128, 0, 0) >= guess(255, 0, 0)
    assert guess(32, 0, 0) >= guess(32, 100_000, 0)
    assert guess(32, 0, 0) > guess(32, 0, 64) > guess(32, 0, 512)


def test_what_has_no_report_gets_the_usual_correction(space: Space) -> None:
    """Else whatever was compiled would fall behind what was not."""
    search = made(space, None)
    refined = Refined(search.terms, search.points.guess)
    for row in range(3):
        refined.add(row, Compiles(registers=255, shared_bytes=0, spilled_bytes=800))
    shift = refined.guess - search.points.guess
    assert shift[5] == np.median(shift[:3]) < 0


def test_equal_reports_give_byte_equal_proposals(space: Space, tmp_path) -> None:
    def proposals(folder: str) -> list[bytes]:
        search = made(
            space, Compiler(lambda found: Compiles(registers=20 + found["TILE"], shared_bytes=0, spilled_bytes=0))
        )
        histories = [play(search, lambda found: 1 / found["DEPTH"], n, 4) for n in range(3)]
        return [canonical(assemble("search", search.propose(h, 4), h, Objects(tmp_path / folder))) for h in histories]

    assert proposals("one") == proposals("two")


def test_a_space_of_which_nothing_compiles_is_exhausted(space: Space) -> None:
    found = made(space, Compiler(lambda _: BROKEN)).propose(NONE, 60)
    assert isinstance(found[-1], Unusable)
    assert found[-1].reason is Reason.SPACE_EXHAUSTED
    assert "do not compile" in found[-1].detail


def test_an_experts_seed_that_does_not_compile_is_proposed_all_the_same(space: Space) -> None:
    seed = parameters(made(space, Compiler(lambda _: LEAN)).propose(NONE, 4))[0]
    compiler = Compiler(lambda one: DoesNot(reason=Reason.DOES_NOT_COMPILE, detail="no") if one == seed else LEAN)
    proposed = parameters(made(space, compiler).propose(NONE, 4))
    assert proposed[0] == seed
    assert len(proposed) == 4
