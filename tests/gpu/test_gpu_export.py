"""Exported packages on a card: right results by the winner and by the baseline, through cuda.core and through torch."""

import ctypes
import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
from own_process import compile_cuda

from kerneltrial.commands.exported_package import write_package
from kerneltrial.commands.loader_text import Part
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
    binaries = {
        "winner.cubin": compile_cuda(space.source(parameters).decode(), arch).cubin,
        "baseline.cubin": compile_cuda(baseline.read_text(), arch).cubin,
    }
    write_package(folder, "loader", (contract, "a test"), (parts, binaries))
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


def _torch_package(name: str, arch: str, folder: Path) -> None:
    """What `kerneltrial export torch` leaves, with the space's first seed as the winner."""
    contract = read_contract(CLONE / f"kernels/{name}/contract.yaml")
    space = read_space(CLONE / f"kernels/{name}/space.yaml")
    parameters = space.file.seeds[0].parameters
    baseline = CLONE / f"kernels/{name}/baseline.cu"
    parts = (
        Part("winner", space.plan(parameters), "pointer", arch),
        Part("baseline", read_plan(plan_path(baseline)), "pointer", arch),
    )
    folder.mkdir()
    binaries = {
        "winner.cubin": compile_cuda(space.source(parameters).decode(), arch).cubin,
        "baseline.cubin": compile_cuda(baseline.read_text(), arch).cubin,
    }
    write_package(folder, "torch", (contract, "a test"), (parts, binaries))


def test_operations_of_pytorch(card, tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    core = pytest.importorskip("cuda.core")
    torch.zeros(1, device="cuda")
    arch = f"sm_{core.Device().arch}"
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("scan_i32", "layernorm_residual_f32"):
        _torch_package(name, arch, tmp_path / f"{name}_torch_loader")
    scan = importlib.import_module("scan_i32_torch_loader")
    importlib.import_module("layernorm_residual_f32_torch_loader")
    for n in (5, 100_003, 100_003, 2**24 + 1):
        x = torch.randint(-100, 101, (n,), dtype=torch.int32, device="cuda")
        assert torch.equal(scan.scan_i32(x), torch.cumsum(x, 0, dtype=torch.int32))
    assert (scan.KERNEL.choice({"n": 5}), scan.KERNEL.choice({"n": 2**24 + 1})) == ("winner", "baseline")

    def right(x, residual, gamma, beta):
        return x + residual, torch.nn.functional.layer_norm(x + residual, (x.shape[1],), gamma, beta)

    operation = torch.ops.kerneltrial.layernorm_residual_f32
    for rows, cols in ((37, 103), (64, 1024), (3, 20_000)):
        given = [torch.randn(shape, device="cuda") for shape in ((rows, cols), (rows, cols), (cols,), (cols,))]
        for got, want in zip(operation(*given), right(*given), strict=True):
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
    strided = torch.randn((cols, rows), device="cuda").t()  # no rows one behind another: it is copied first
    torch.testing.assert_close(operation(strided, *given[1:])[1], right(strided, *given[1:])[1], rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match=r"residual is torch\.float64"):
        operation(given[0], given[1].double(), *given[2:])
    torch.library.opcheck(operation, tuple(given), test_utils=("test_schema", "test_faketensor"))
    graph = torch.cuda.CUDAGraph()
    n, held = 100_003, torch.ones(100_003, dtype=torch.int32, device="cuda")
    with torch.cuda.graph(graph):
        out = scan.scan_i32(held)
    for turn in (1, 2, 3):
        held.fill_(turn)
        graph.replay()
        torch.cuda.synchronize()
        assert int(out[-1]) == turn * n
    compiled = torch.compile(lambda *words: operation(*words)[1] * 2, fullgraph=True)
    torch.testing.assert_close(compiled(*given), right(*given)[1] * 2, rtol=1e-4, atol=1e-5)
    for module in [m for m in sys.modules if m.split(".")[0].endswith("_torch_loader")]:
        del sys.modules[module]
