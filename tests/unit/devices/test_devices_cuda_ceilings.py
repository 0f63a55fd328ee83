"""The kernels that measure ceilings, on the cpu device and assembled for a card: they do the work that is counted."""

import numpy as np
import pytest

from kerneltrial.build.messages import Compiled
from kerneltrial.build.nvjitlink import assemble
from kerneltrial.devices.cpu.device import open_cpu
from kerneltrial.devices.cuda import ceilings_ptx, sweep
from kerneltrial.devices.cuda.ceilings import _steps
from kerneltrial.devices.device import Binary, Conditions
from kerneltrial.inputs.calls import Buffer, Call, Pointer, ResolvedLaunch, Scalar

BLOCKS, THREADS = 2, 256
TEXTS = {
    "read": ceilings_ptx.READ,
    "copy": ceilings_ptx.COPY,
    "f32": ceilings_ptx.multiply_add("f32"),
    "f64": ceilings_ptx.multiply_add("f64"),
    "empty": ceilings_ptx.EMPTY,
    "sweep": sweep.PTX,
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100"])
def test_they_assemble_without_spills(name, arch):
    made = assemble(TEXTS[name].encode(), arch)
    assert isinstance(made, Compiled), made
    assert made.cubin
    assert "0 bytes spill" in made.log or "spill" not in made.log


def buffer(name: str, role: str, elements: int, dtype: str = "uint32") -> Buffer:
    initial = "given" if role == "input" else "zeroed" if role == "scratch" else "poisoned"
    return Buffer(name=name, role=role, dtype=dtype, shape=(elements,), initial=initial)


def run(text: str, buffers: list[Buffer], parameters: list, values=None):
    launch = ResolvedLaunch(
        entry="main",
        grid=(BLOCKS, 1, 1),
        block=(THREADS, 1, 1),
        cluster=(1, 1, 1),
        cooperative=False,
        shared_bytes=0,
        parameters=tuple(Pointer(buffer=p) if isinstance(p, str) else Scalar(bytes=4, bits=p) for p in parameters),
    )
    loaded = open_cpu().load(Binary(ptx=text, cubin=b""))
    call = Call(buffers=tuple(buffers), launches=(launch,))
    return loaded, call, loaded.run(call, values or {}, Conditions(poison="nan", checks="bounds"))


def test_the_copy_copies_every_byte_that_is_counted():
    nbytes = 3 * ceilings_ptx.BYTES_A_STEP * BLOCKS * THREADS
    steps, moved = _steps(nbytes + 100, BLOCKS)
    assert (steps, moved) == (3, nbytes)
    words = np.arange(nbytes // 4, dtype=np.uint32)
    buffers = [buffer("x", "input", nbytes // 4), buffer("y", "output", nbytes // 4)]
    _, _, done = run(ceilings_ptx.COPY, buffers, ["x", "y", steps], {"x": words})
    assert done.completed
    assert done.outputs["y"] == words.tobytes()


def test_the_read_reads_every_byte_in_every_pass_and_writes_nothing():
    nbytes = 2 * ceilings_ptx.BYTES_A_STEP * BLOCKS * THREADS
    steps, _ = _steps(nbytes, BLOCKS)
    words = np.arange(nbytes // 4, dtype=np.uint32)
    buffers = [buffer("x", "input", nbytes // 4), buffer("end", "output", 1)]
    loaded, call, done = run(ceilings_ptx.READ, buffers, ["x", steps, 3, "end"], {"x": words})
    assert done.completed
    assert done.outputs["end"] == b"\xff" * 4
    counts = loaded.count(call, {"x": words}, Conditions(poison="nan", checks="bounds"))
    assert counts.global_transactions == 3 * nbytes // 32


@pytest.mark.parametrize(("kind", "counted"), [("f32", "fp32"), ("f64", "fp64")])
def test_multiply_adds_are_as_many_as_are_counted(kind, counted):
    buffers = [buffer("end", "output", 2)]
    counts = []
    for rounds in (1, 5):
        loaded, call, done = run(ceilings_ptx.multiply_add(kind), buffers, [rounds, "end"])
        assert done.completed
        assert done.outputs["end"] == b"\xff" * 8
        counts.append(loaded.count(call, {}, Conditions(poison="nan", checks="bounds")).instructions[counted])
    assert counts[1] - counts[0] == 4 * ceilings_ptx.OPERATIONS_A_ROUND * BLOCKS * THREADS
