"""The bench of bare copies: what its kernels copy, on `cpu`; what it reads, on a card whose truth is known."""

import ctypes
import sys
from pathlib import Path

import numpy as np
import pytest
from cuda import bindings as cuda_bindings
from fake_card import LAUNCH_GAP_US, FakeCard

from kerneltrial.build import nvrtc
from kerneltrial.devices.cpu.device import open_cpu
from kerneltrial.devices.device import Binary, Conditions
from kerneltrial.inputs.calls import Buffer, Call, Pointer, ResolvedLaunch, Scalar
from kerneltrial.records.device import Device

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
import copies_on_gpu
from copies_kernels import CHECKS
from families_bench import built

NBYTES = 1 << 16
H200 = {
    "multiprocessors": "132", "compute_capability": "9.0", "shared_bytes_per_block": "232448",
    "shared_bytes_per_multiprocessor": "233472",
}  # fmt: skip
PARAMETERS = {"number": 2, "differ": 4, "plain": 2, "staying": 3, "bulk": 3}


def card_of(**changed: str) -> Device:
    return Device(kind="cuda", arch="sm_90a", name="a card", fingerprint={**H200, **changed})


class CopyingCard(FakeCard):
    """Its kernels number, compare and copy; those in `forgetful` leave the last word as it was."""

    def __init__(self, forgetful: str = "") -> None:
        super().__init__({"number": 1.0, "differ": 1.0, "plain": 9.0, "staying": 8.0, "bulk": 7.0})

        def differ(cells: list[int]) -> None:
            x, y = (np.ctypeslib.as_array((ctypes.c_uint32 * (NBYTES // 4)).from_address(at)) for at in cells[:2])
            ctypes.c_uint32.from_address(cells[3]).value += int((x != y).sum())

        def number(cells: list[int]) -> None:
            ctypes.memmove(cells[0], np.arange(1, NBYTES // 4 + 1, dtype=np.uint32).ctypes.data, NBYTES)

        def copy(form: str) -> None:
            short = 4 if form == forgetful else 0
            self.effects[form] = lambda cells: ctypes.memmove(cells[1], cells[0], NBYTES - short)

        self.effects |= {"differ": differ, "number": number}
        for form in ("plain", "staying", "bulk"):
            copy(form)

    def cuLaunchKernelEx(self, configuration, function, parameters, extra):  # noqa: N802
        self.configurations.append(configuration)
        cells = (ctypes.c_void_p * PARAMETERS[function]).from_address(parameters)
        return self.kernel(function, [ctypes.c_uint64.from_address(cell).value for cell in cells])


def one_of_each_form() -> list[copies_on_gpu.Copy]:
    return list({copy.form: copy for copy in copies_on_gpu.copies(card_of(), NBYTES)}.values())


@pytest.mark.parametrize("forgetful", ["", "staying"])
def test_each_form_is_read_so_many_times_and_a_copy_that_leaves_a_word_out_is_told(monkeypatch, forgetful):
    card = CopyingCard(forgetful)
    monkeypatch.setattr(cuda_bindings, "driver", card)
    context, found = card.context(), one_of_each_form()
    copies_on_gpu.measured(context, found, dict.fromkeys([CHECKS, *(copy.source for copy in found)], b"x"), NBYTES, 3)
    assert [(copy.form, copy.us) for copy in found] == [
        (form, [pytest.approx(us + LAUNCH_GAP_US)] * 3) for form, us in (("plain", 9), ("staying", 8), ("bulk", 7))
    ]
    assert [copy.wrong for copy in found] == [int(copy.form == forgetful) for copy in found]
    assert card.launched.count("plain") == 4 * (2 + copies_on_gpu.LAUNCHES)
    assert [nbytes for _, _, nbytes in card.attributes] == [one_of_each_form()[-1].shared_bytes] * 4  # above 48 KiB
    lines = copies_on_gpu.table(found, NBYTES)
    assert "best bulk: 9.00 us, 65536 bytes, 3 stages, 1 blocks" in lines
    assert lines[-1] == f"{int(bool(forgetful))} of 3 configurations copied wrongly"
    assert sum("WRONG: 1 words differ" in line for line in lines) == int(bool(forgetful))


def test_the_table_shows_the_ten_best_and_the_ten_worst():
    found = [copies_on_gpu.Copy("plain", {"threads": n}, "", 1, 1, us=[float(n)] * 3) for n in range(100, 125)]
    lines = copies_on_gpu.table(found, NBYTES)
    shown = [int(line.split()[2]) for line in lines if line.endswith(" threads") and not line.startswith("best")]
    assert shown == [*range(100, 110), *range(115, 125)]
    assert any("5 between" in line for line in lines)
    few = copies_on_gpu.table(found[:12], NBYTES)
    assert sum(line.endswith(" threads") for line in few) == 12 + 1
    assert not any("between" in line for line in few)


def test_every_configuration_covers_the_bytes_and_fits_the_card():
    found = list(copies_on_gpu.copies(card_of(), copies_on_gpu.NBYTES))
    assert {copy.form for copy in found} == {"plain", "staying", "bulk"}
    assert len({(copy.form, copy.words) for copy in found}) == len(found)
    for copy in found:
        if copy.form == "bulk":
            assert copy.pieces * copy.sizes["bytes"] == copies_on_gpu.NBYTES
            assert (copy.shared_bytes + 8 * copy.sizes["stages"] + 1024) * copy.sizes["blocks"] <= 228 << 10
        else:
            piece = 4 * copy.sizes["threads"] * copy.sizes["floats"] * copy.sizes["loads"]
            assert (copy.pieces or copy.grid) * piece == copies_on_gpu.NBYTES
            assert copy.sizes.get("blocks", 1) * copy.threads <= 2048
    older = copies_on_gpu.copies(card_of(compute_capability="8.9"), copies_on_gpu.NBYTES)
    assert {copy.form for copy in older} == {"plain", "staying"}


def test_the_kernels_build_for_hopper():
    for source in (CHECKS, *(copy.source for copy in one_of_each_form())):
        assert built(source, "sm_90a", ())


@pytest.mark.parametrize(("form", "place"), [("plain", 0), ("plain", 9), ("staying", 0), ("staying", 9)])
def test_blocks_copy_every_word(form, place):
    device = card_of(multiprocessors="3")
    copy = [copy for copy in copies_on_gpu.copies(device, NBYTES) if copy.form == form][place]
    x = np.arange(1, NBYTES // 4 + 1, dtype=np.uint32).view(np.float32)
    counts = [] if copy.pieces is None else [Scalar(bytes=4, bits=copy.pieces)]
    launch = ResolvedLaunch(
        entry=form, grid=(copy.grid, 1, 1), block=(copy.threads, 1, 1), cluster=(1, 1, 1), cooperative=False,
        shared_bytes=0, parameters=(Pointer(buffer="x"), Pointer(buffer="y"), *counts),
    )  # fmt: skip
    buffers = tuple(
        Buffer(name=name, role=role, dtype="float32", shape=x.shape, initial=initial)
        for name, role, initial in (("x", "input", "given"), ("y", "output", "poisoned"))
    )
    loaded = open_cpu().load(Binary(ptx=ptx(copy.source), cubin=b""))
    done = loaded.run(Call(buffers=buffers, launches=(launch,)), {"x": x}, Conditions(poison="nan", checks="all"))
    assert done.completed, done.findings
    assert not done.findings
    assert done.outputs["y"] == x.tobytes()


def ptx(source: str) -> str:
    from cuda.bindings import nvrtc as compiler

    _, program = compiler.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], [])
    options = [b"--gpu-architecture=sm_80", b"--std=c++17"]
    assert int(compiler.nvrtcCompileProgram(program, len(options), options)[0]) == 0
    return nvrtc.received(program, compiler.nvrtcGetPTXSize, compiler.nvrtcGetPTX).rstrip(b"\0").decode()
