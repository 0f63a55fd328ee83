"""Children of a nursery: they answer, they are bounded, and how they end is told."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from kerneltrial.sandbox import kept, libc
from kerneltrial.sandbox.conversation import Conversation, Ended
from kerneltrial.sandbox.limits import Limits, View
from kerneltrial.sandbox.nursery import Nursery
from kerneltrial.sandbox.problem import SandboxProblem

LIMITS = Limits(wall_s=20, cpu_s=10, memory_bytes=1 << 27)


@pytest.fixture(scope="module", params=["own", "kept"])
def nursery(request: pytest.FixtureRequest) -> Iterator[Nursery]:
    """One with a clean process of its own, and one whose process was forked from a kept one."""
    if request.param == "own":
        with Nursery(["sandbox_children"]) as opened:
            yield opened
        return
    names = ("sandbox_children", "json")
    kept.keep(names)
    with Nursery(["sandbox_children"]) as opened:
        assert opened._server is None, "it started a process of its own"
        yield opened
    kept._kept.pop(names).close()  # the kept process ends then


def child(nursery: Nursery, function: str, limits: Limits = LIMITS, longest: int = 1 << 20) -> Conversation:
    return nursery.open(f"sandbox_children:{function}", b"", limits, View(), longest)


def ending(nursery: Nursery, function: str, limits: Limits = LIMITS, wall_s: float = 10.0) -> Ended:
    with child(nursery, function, limits, longest=1 << 19) as conversation:
        answer = conversation.ask(b"go", wall_s)
    assert isinstance(answer, Ended), answer
    return answer


def test_a_child_gets_its_argument_and_answers_each_request(nursery: Nursery) -> None:
    with nursery.open("sandbox_children:echo", b"arg ", LIMITS, View()) as conversation:
        assert [conversation.ask(word, 5) for word in (b"one", b"", b"x" * 300_000)] == [
            b"arg one",
            b"arg ",
            b"arg " + b"x" * 300_000,
        ]


def test_many_children_are_led_from_many_threads(nursery: Nursery) -> None:
    def talk(number: int) -> list[bytes | Ended]:
        with nursery.open("sandbox_children:echo", f"{number} ".encode(), LIMITS, View()) as conversation:
            return [conversation.ask(str(turn).encode(), 10) for turn in range(3)]

    with ThreadPoolExecutor(8) as workers:
        found = list(workers.map(talk, range(24)))
    assert found == [[f"{number} {turn}".encode() for turn in range(3)] for number in range(24)]


def test_children_share_no_state(nursery: Nursery) -> None:
    for _ in range(2):
        with child(nursery, "attempt") as conversation:
            assert [conversation.ask(b"remember", 5) for _ in range(2)] == [b"1", b"2"]


def test_an_exit_status_is_told(nursery: Nursery) -> None:
    assert ending(nursery, "leave") == Ended(how="exit", detail="exit status 7")


def test_a_crash_is_a_signal(nursery: Nursery) -> None:
    assert ending(nursery, "crash").how == "signal"
    assert "SIGSEGV" in ending(nursery, "crash").detail


def test_an_unknown_function_is_told(nursery: Nursery) -> None:
    ended = ending(nursery, "nonsense")
    assert ended.how == "exit"
    assert "nonsense" in ended.detail


def test_the_watchdog_ends_a_child_that_sleeps(nursery: Nursery) -> None:
    start = time.monotonic()
    ended = ending(nursery, "sleep", wall_s=0.5)
    assert ended == Ended(how="wall", detail="no reply within 0.5 s")
    assert time.monotonic() - start < 3


def test_a_life_has_an_end_that_the_parent_need_not_watch(nursery: Nursery) -> None:
    ended = ending(nursery, "sleep", Limits(wall_s=0.5, cpu_s=5, memory_bytes=1 << 27), wall_s=10)
    assert ended.how == "wall"


def test_processor_time_is_bounded(nursery: Nursery) -> None:
    with child(nursery, "endless_loop", Limits(wall_s=20, cpu_s=1, memory_bytes=1 << 27)) as conversation:
        ended = conversation.ask(b"go", 15)
        assert isinstance(ended, Ended)
        assert ended.how == "cpu"
        assert 0.9 < conversation.close().cpu_s < 3


@pytest.mark.parametrize("bomb", ["memory_bomb", "native_memory_bomb"])
def test_memory_is_bounded(nursery: Nursery, bomb: str) -> None:
    with child(nursery, bomb) as conversation:
        ended = conversation.ask(b"go", 15)
        assert isinstance(ended, Ended)
        assert ended.how == "memory"
        assert conversation.close().max_rss_bytes < 1 << 28


def test_a_flood_of_output_is_read_and_its_end_kept(nursery: Nursery) -> None:
    ended = ending(nursery, "flood")
    assert ended.how == "exit"
    assert ended.detail.endswith("ValueError: the last word")
    assert len(ended.detail) < 10_000


@pytest.mark.parametrize("function", ["too_long", "lie_about_length"])
def test_a_reply_beyond_the_bound_ends_the_child(nursery: Nursery, function: str) -> None:
    ended = ending(nursery, function)
    assert ended.how == "exit"
    assert "524288 are allowed" in ended.detail


def test_after_an_end_every_ask_tells_the_same(nursery: Nursery) -> None:
    with child(nursery, "leave") as conversation:
        assert conversation.ask(b"go", 5) == conversation.ask(b"again", 5)


def test_close_asks_first_and_kills_later(nursery: Nursery) -> None:
    conversation = child(nursery, "sleep")
    conversation.ask(b"go", 0.2)
    start = time.monotonic()
    conversation.close()
    assert time.monotonic() - start < 2
    willing = child(nursery, "echo")
    assert willing.ask(b"x", 5) == b"x"
    usage = willing.close()
    assert usage.wall_s > 0
    assert usage.max_rss_bytes > 1 << 20


def test_a_nursery_that_cannot_import_says_so() -> None:
    with Nursery(["no_such_module"]) as broken, pytest.raises(SandboxProblem, match="no_such_module"):
        broken.open("sandbox_children:echo", b"", LIMITS, View())


def test_a_nursery_must_be_entered() -> None:
    with pytest.raises(SandboxProblem, match="context manager"):
        Nursery().open("sandbox_children:echo", b"", LIMITS, View())


def test_opening_a_child_is_quick(nursery: Nursery) -> None:
    took = []
    for _ in range(5):
        start = time.monotonic()
        with child(nursery, "echo") as conversation:
            conversation.ask(b"x", 5)
        took.append(time.monotonic() - start)
    assert min(took) < 0.15


@pytest.mark.parametrize("fixed", [True, False])
def test_children_get_the_same_addresses_each_time_unless_that_is_not_wanted(fixed: bool) -> None:
    """Three clean processes show whether addresses move; a host that refuses to fix them says so."""
    with libc.fixed_addresses() as can_be_fixed:
        pass
    seen = set()
    for _ in range(3):
        with Nursery(["sandbox_children"], fixed=fixed) as moved, child(moved, "attempt") as conversation:
            seen.add(conversation.ask(b"address", 10))
    assert (len(seen) == 1) == (fixed and can_be_fixed)
