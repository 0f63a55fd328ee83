"""Cooperative launches: blocks that meet in the middle of a launch, and those that wait in vain."""

from pathlib import Path

import msgspec
import numpy as np
import pytest
from ptx_runner import Argument, array, call_of, out, output, run, scratch
from ptx_sources import ptx_of

from kerneltrial.devices.cpu import cooperative
from kerneltrial.devices.cpu.device import open_cpu
from kerneltrial.devices.device import Binary, Conditions, Refused, Run
from kerneltrial.inputs.calls import Call
from kerneltrial.records.reason import Reason

SOURCE = (Path(__file__).parents[2] / "gpu" / "kernels" / "cooperative.cu").read_text()
Values = dict[str, np.ndarray]


def call(entry: str, blocks: int, threads: int, size: int, steps: int, together: bool = True) -> tuple[Call, Values]:
    start = np.random.default_rng(blocks).integers(-9, 9, blocks * threads).astype(np.float32)
    arguments: list[Argument | int | float] = [array("start", start), out("x", "float32", size)]
    if entry == "locked":
        arguments = [array("start", start), scratch("x", "float32", size, initial="zeroed"),
                     scratch("lock", "uint32", 1, initial="self_restoring")]  # fmt: skip
    made = call_of([*arguments, steps], (blocks,), (threads,), entry=entry)
    (launch,) = made.launches
    return msgspec.structs.replace(made, launches=(msgspec.structs.replace(launch, cooperative=together),)), {
        "start": start
    }


def done(entry: str, blocks: int, threads: int, size: int, steps: int, **conditions: object) -> Run:
    made, values = call(entry, blocks, threads, size, steps)
    loaded = open_cpu().load(Binary(ptx=ptx_of(SOURCE), cubin=b""))
    return loaded.run(made, values, Conditions(poison="nan", **conditions))  # type: ignore[arg-type]


@pytest.mark.parametrize("checks", ["all", "bounds"])
@pytest.mark.parametrize("order", ["forward", "backward"])
@pytest.mark.parametrize(("blocks", "threads"), [(1, 32), (2, 33), (7, 96), (20, 128)])
def test_a_grid_that_meets_often(checks: str, order: str, blocks: int, threads: int) -> None:
    n = blocks * threads
    result = done("rotate", blocks, threads, n, 5, checks=checks, order=order)
    assert result.completed, result.findings
    want = call("rotate", blocks, threads, n, 5)[1]["start"]
    for _ in range(5):
        want = np.roll(want, -33) + 1
    assert (output(result, "x", "float32") == want).all()


@pytest.mark.parametrize("order", ["forward", "backward"])
def test_shared_memory_is_each_block_s_own(order: str) -> None:
    blocks, threads, steps = 9, 128, 6
    result = done("total", blocks, threads, steps * (blocks + 1), steps, order=order)
    assert result.completed, result.findings
    start = call("total", blocks, threads, 1, 1)[1]["start"].reshape(blocks, threads)
    parts = np.stack([start.sum(1) * (k + 1) for k in range(steps)])
    got = output(result, "x", "float32")
    assert (got[: steps * blocks].reshape(steps, blocks) == parts).all()
    assert (got[steps * blocks :] == parts.sum(1)).all()


def test_a_lock_passes_from_block_to_block() -> None:
    result = done("locked", 12, 64, 1, 3)
    assert result.completed, result.findings
    assert result.scratch_restored


def test_a_block_that_never_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    result = done("one_missing", 4, 64, 256, 1, budget_instructions=3_000_000)
    assert [finding.reason for finding in result.findings] == [Reason.ENDLESS_LOOP]
    assert "source line" in result.findings[0].detail


def test_a_fault_behind_the_meeting_names_its_block() -> None:
    result = done("outside_at_last", 4, 64, 256, 1, checks="bounds")
    assert [finding.reason for finding in result.findings] == [Reason.OUT_OF_BOUNDS]
    assert "block (2,0,0)" in result.findings[0].detail


def test_without_a_cooperative_launch_the_barrier_traps_as_on_a_card() -> None:
    made, values = call("rotate", 4, 64, 256, 1, together=False)
    result = run(ptx_of(SOURCE), made, values)
    assert [finding.reason for finding in result.findings] == [Reason.TRAP]


def test_what_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cooperative, "MOST_BYTES", 1 << 16)
    with pytest.raises(Refused, match="cooperative launch"):
        done("rotate", 20, 128, 2560, 1)


def test_counts_are_the_same_again() -> None:
    made, values = call("rotate", 5, 64, 320, 2)
    loaded = open_cpu().load(Binary(ptx=ptx_of(SOURCE), cubin=b""))
    first, second = (loaded.count(made, values, Conditions(poison="nan")) for _ in range(2))
    assert first == second
    assert first.barriers == 5 * 2 * 2 * 2
