"""compute-sanitizer's four tools in the limited child: each finds what it is for, and honest twins pass all of them."""

import time

import pytest
from own_process import KERNELS, compile_cuda, numbers, simple_call

from kerneltrial.devices.cuda.sanitizer import Sanitizer, found
from kerneltrial.devices.device import Conditions
from kerneltrial.devices.preloading import preload
from kerneltrial.records.reason import Reason
from kerneltrial.records.sanitizer import TOOLS, Looked, NotLooked
from kerneltrial.sandbox.nursery import Nursery

pytestmark = pytest.mark.gpu
N = 1000  # the last block is not full
HONEST = ("reads_within", "waits", "reads_what_it_wrote", "meets_at_a_barrier", "warp_by_warp", "equal_stores")
IDIOMS = ("leaves_early", "named_barriers")


@pytest.fixture(scope="module")
def kernels(card):
    return compile_cuda((KERNELS / "sanitizer.cu").read_text(), card.device.arch)


@pytest.fixture(scope="module")
def look(card, kernels):
    """Four tools over calls of these entries; skips where the machine lets no tool look."""
    if not found():
        pytest.skip("compute-sanitizer is not installed")
    with Nursery(preload("cuda")) as nursery:
        asks = Sanitizer(nursery, card.device.arch, 60.0)

        def looked(*entries: str):
            request = asks.request(kernels, [(entry, simple_call(entry, N), {"x": numbers(N)}) for entry in entries])
            start = time.perf_counter()
            told = asks.look(request, entries).tools
            print(f"{', '.join(entries)}: {time.perf_counter() - start:.1f} s")
            for tool in told:
                print("  ", tool)
            return dict(zip(TOOLS, told, strict=True))

        first = looked("waits")
        absent = {tool.why for tool in first.values() if isinstance(tool, NotLooked)}
        if len(absent) == 1 and all(isinstance(tool, NotLooked) for tool in first.values()):
            pytest.skip(f"compute-sanitizer cannot look here: {absent}")
        yield looked


def test_hostile_kernels_give_the_right_answer_where_nothing_looks(card, kernels):
    """So that nothing but a tool is left to tell them from their twins."""
    loaded = card.load(kernels)
    for entry in ("reads_behind", "reads_its_output", "splits_at_a_barrier", *HONEST, *IDIOMS):
        run = loaded.run(simple_call(entry, N), {"x": numbers(N)}, Conditions(poison="huge"))
        assert run.completed, entry
        assert run.outputs["y"] == numbers(N).tobytes(), entry
        assert run.guards_intact, entry


@pytest.mark.parametrize(
    ("tool", "entry", "reason", "words"),
    [
        ("memcheck", "reads_behind", Reason.OUT_OF_BOUNDS, "x (4000 bytes)"),
        ("racecheck", "races", Reason.SHARED_RACE, "races"),
        ("initcheck", "reads_its_output", Reason.UNINITIALISED_READ, "in y at byte"),
        ("synccheck", "splits_at_a_barrier", Reason.BARRIER_DIVERGENCE, "splits_at_a_barrier"),
    ],
)
def test_a_tool_finds_what_it_is_for(look, tool, entry, reason, words):
    told = look(entry)[tool]
    assert isinstance(told, Looked), told
    assert [fault.reason for fault in told.findings] == [reason]
    assert words in told.findings[0].detail
    assert "0x7" not in told.findings[0].detail.replace("+0x7", "")  # no address of this run


def test_no_tool_finds_anything_in_honest_twins(look):
    for told in look(*HONEST).values():
        assert isinstance(told, Looked), told
        assert told.findings == ()
        assert told.cases == HONEST


@pytest.mark.parametrize("entry", IDIOMS)
def test_no_tool_but_racecheck_at_a_one_sided_barrier_takes_an_honest_idiom_for_a_fault(look, entry):
    """racecheck 2025.3.1 says that `named_barriers` races; `judge.sanitizing.doubted` is for that."""
    for tool, told in look(entry).items():
        assert isinstance(told, Looked), told
        assert told.findings == () or (tool, entry) == ("racecheck", "named_barriers")
