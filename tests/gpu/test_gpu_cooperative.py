"""Cooperative launches on a card and on the `cpu` device: the same PTX, the same bytes."""

import sys
from pathlib import Path

import numpy as np
import pytest
from own_process import KERNELS, buffer, integer, launch, numbers

from kerneltrial.devices.device import Binary, Conditions
from kerneltrial.inputs.calls import Call

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "corpus"), str(HERE.parent / "unit" / "devices_cpu")]
pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("checks", ["all", "bounds"])
@pytest.mark.parametrize(("entry", "blocks", "threads"), [("rotate", 1, 32), ("rotate", 20, 96), ("total", 9, 128)])
def test_as_on_the_cpu_device(card, entry: str, blocks: int, threads: int, checks: str) -> None:
    from corpus_build import cubin_of
    from ptx_sources import ptx_of

    from kerneltrial.devices.cpu.device import open_cpu

    ptx, steps, n = ptx_of((KERNELS / "cooperative.cu").read_text()), 5, blocks * threads
    size = n if entry == "rotate" else steps * (blocks + 1)
    one = launch(entry, (blocks,), (threads,), ["start", "x", integer(steps)], cooperative=True)
    call = Call(buffers=(buffer("start", "input", n), buffer("x", "output", size)), launches=(one,))
    values = {"start": numbers(n)}
    on_card = card.load(Binary(ptx="", cubin=cubin_of(ptx, card.device.arch))).run(
        call, values, Conditions(poison="nan")
    )
    on_cpu = open_cpu().load(Binary(ptx=ptx, cubin=b"")).run(call, values, Conditions(poison="nan", checks=checks))
    assert on_card.completed, on_card.findings
    assert on_cpu.completed, on_cpu.findings
    assert np.isfinite(np.frombuffer(on_card.outputs["x"], np.float32)).all()
    assert on_cpu.outputs == on_card.outputs
