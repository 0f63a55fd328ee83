"""The exported loader on a card: right results by the winner and by the baseline, through cuda.core alone."""

import ctypes
import importlib
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from own_process import compile_cuda

from kerneltrial.commands import loader_runtime
from kerneltrial.commands.loader_text import Part, package_text, plans_text
from kerneltrial.inputs.contracts import read_contract
from kerneltrial.inputs.plans import plan_path, read_plan
from kerneltrial.propose.search.space import read_space

pytestmark = pytest.mark.gpu
CLONE = Path(__file__).resolve().parents[2]


def test_a_scan_by_the_winner_and_by_the_baseline(card, tmp_path, monkeypatch):
    core = pytest.importorskip("cuda.core")
    device = core.Device()
    device.set_current()
    arch = f"sm_{device.arch}"
    contract = read_contract(CLONE / "kernels/scan_i32/contract.yaml")
    space = read_space(CLONE / "kernels/scan_i32/space.yaml")
    parameters = space.file.seeds[0].parameters
    baseline = CLONE / "kernels/scan_i32/baseline.cu"
    folder = tmp_path / "scan_loader"
    folder.mkdir()
    parts = (
        Part("winner", space.plan(parameters), "pointer", arch),
        Part("baseline", read_plan(plan_path(baseline)), "pointer", arch),
    )
    (folder / "__init__.py").write_text(package_text(contract, "a test"))
    (folder / "plans.py").write_text(plans_text(contract, parts))
    shutil.copy(loader_runtime.__file__, folder / "runtime.py")
    (folder / "winner.cubin").write_bytes(compile_cuda(space.source(parameters).decode(), arch).cubin)
    (folder / "baseline.cubin").write_bytes(compile_cuda(baseline.read_text(), arch).cubin)
    monkeypatch.syspath_prepend(str(tmp_path))
    package = importlib.import_module("scan_loader")
    stream = device.create_stream()
    host = core.LegacyPinnedMemoryResource()
    for n, chosen in ((5, "winner"), (100_003, "winner"), (100_003, "winner"), (2**24 + 1, "baseline")):
        x, y = (device.allocate(4 * n, stream=stream) for _ in range(2))
        staged = host.allocate(4 * n, stream=stream)
        values = np.ctypeslib.as_array((ctypes.c_int32 * n).from_address(int(staged.handle)))
        values[:] = np.random.default_rng(n).integers(-100, 100, n)
        want = np.cumsum(values, dtype=np.int64)
        staged.copy_to(x, stream=stream)
        assert package.scan_i32(stream, x=x, y=y, n=n) == chosen
        y.copy_to(staged, stream=stream)
        stream.sync()
        assert (values == want).all()
    del sys.modules["scan_loader"]
