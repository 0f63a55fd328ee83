"""`kerneltrial export torch`: the package's text, what it reads off shapes, its operation where torch is there."""

import importlib
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from kerneltrial.commands.exported_package import write_package
from kerneltrial.commands.loader_text import Part
from kerneltrial.commands.torch_text import dimensions_told, tensors_text, torch_package_text
from kerneltrial.inputs.contracts import read_contract
from kerneltrial.inputs.plans import plan_path, read_plan
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.propose.search.space import read_space

CLONE = Path(__file__).resolve().parents[3]
FAMILIES = sorted(path.parent.name for path in (CLONE / "kernels").glob("*/contract.yaml"))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("matmul_f32", {"m": "a.shape[0]", "n": "b.shape[1]", "k": "a.shape[1]"}),
        ("deblock_u8", {"down": "picture.shape[0] // 8", "across": "picture.shape[1] // 8"}),
        ("spmv_csr_f32", {"rows": "(offsets.shape[0] - 1)", "cols": "x.shape[0]", "entries": "columns.shape[0]"}),
        ("sad_search_u8", {"down": "picture.shape[0] // 16", "across": "picture.shape[1] // 16"}),
    ],
)
def test_dimensions_are_read_off_shapes(name, told):
    assert dimensions_told(read_contract(CLONE / f"kernels/{name}/contract.yaml")) == told


@pytest.mark.parametrize("name", FAMILIES)
def test_the_text_of_every_family_is_python(name):
    text = torch_package_text(read_contract(CLONE / f"kernels/{name}/contract.yaml"), "a test", {})
    compile(text, "package", "exec")
    assert f"kerneltrial::{name}" in text
    assert "kerneltrial.commands" not in tensors_text()


def test_the_operation_can_be_traced_and_refuses_what_is_on_no_card(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    name = "layernorm_residual_f32"
    contract = read_contract(CLONE / f"kernels/{name}/contract.yaml")
    space = read_space(CLONE / f"kernels/{name}/space.yaml")
    winner = space.plan(space.file.seeds[0].parameters)
    parts = (
        Part("winner", winner, "pointer", "sm_90a"),
        Part("baseline", read_plan(plan_path(CLONE / f"kernels/{name}/baseline.cu")), "pointer", "sm_90a"),
    )
    folder = tmp_path / "traced_torch_loader"
    folder.mkdir()
    write_package(folder, "torch", (contract, "a test"), (parts, {}))
    monkeypatch.syspath_prepend(str(tmp_path))
    package = importlib.import_module("traced_torch_loader")
    try:
        on_meta = [torch.empty(shape, device="meta") for shape in ((3, 40), (3, 40), (40,), (40,))]
        total, norm = torch.ops.kerneltrial.layernorm_residual_f32(*on_meta)
        assert (total.shape, norm.shape, norm.dtype) == ((3, 40), (3, 40), torch.float32)
        with pytest.raises(NotImplementedError):
            torch.ops.kerneltrial.layernorm_residual_f32(*(torch.empty(one.shape) for one in on_meta))
        with pytest.raises(ValueError, match=r"x is torch\.float64 of"):
            package.KERNEL.ready("x", torch.empty(2, dtype=torch.float64), torch.float32, (2,))
        slanted = torch.empty(65)[1:]
        held = package.KERNEL.ready("x", slanted, torch.float32, (64,))
        assert held.data_ptr() % contract.alignment_bytes == 0 or held.data_ptr() != slanted.data_ptr()
        with pytest.raises(ValueError, match=r"x has the shape \[3\], the contract wants 2 axes"):
            torch.ops.kerneltrial.layernorm_residual_f32(torch.empty(3, device="meta"), *on_meta[1:])
        with pytest.raises(ValueError, match="must be on one CUDA card"):
            package.KERNEL.put({"x": torch.empty(2)}, {})
    finally:
        for module in [module for module in sys.modules if module.startswith("traced_torch_loader")]:
            del sys.modules[module]


def test_without_an_input_there_is_one_line():
    contract = read_contract(CLONE / "kernels/softmax_f32/contract.yaml")
    outputs = tuple(one for one in contract.arguments if getattr(one, "role", "output") == "output")
    with pytest.raises(InputProblem, match=r"has no input.*take `kerneltrial export loader`"):
        torch_package_text(replace(contract, arguments=outputs), "a test", {})
