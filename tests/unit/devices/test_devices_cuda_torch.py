"""torch beside the baseline: what its child computes and times, and every reason why there is no figure."""

import importlib.util
import os
import subprocess
from pathlib import Path

import msgspec
import numpy as np
import pytest
from fake_torch import FakeTorch

from kerneltrial.devices.cuda import torch_baselines
from kerneltrial.devices.cuda.torch_child import TorchFailed, TorchTimed, answered
from kerneltrial.inputs.contracts import read_contract
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.inputs.torch_expressions import function_of
from kerneltrial.records.contract import Contract

ROOT = Path(__file__).parents[3]
SIZES = {"m": 4, "n": 3, "k": 5}


@pytest.fixture
def contract() -> Contract:
    return read_contract(ROOT / "kernels/matmul_f32/contract.yaml")


def cases(sets: int = 2):
    random = np.random.default_rng(1)
    values = [{"a": random.random((4, 5), np.float32), "b": random.random((5, 3), np.float32)} for _ in range(sets)]
    return [("small", SIZES, values)]


def measured(contract: Contract, limit_s: float = 60):
    with torch_baselines.Torch(contract, limit_s) as torch:
        return torch.measured(cases())


def reply(contract: Contract, torch: FakeTorch):
    return answered(torch, torch_baselines._request(contract, cases()))


def test_eager_and_compiled_are_timed_by_graph_and_their_results_come_back(contract):
    torch = FakeTorch(call_us=8.0, compiled_us=4.0)
    found = reply(contract, torch)
    assert {name: entry.latency_us["small"] for name, entry in found.items()} == {
        "torch_eager": pytest.approx(8.0),
        "torch_compile": pytest.approx(4.0),
    }
    ((_, _, values),) = cases()
    for entry in found.values():
        assert entry.version == "2.99 fake"
        for left, one in zip(entry.outputs["small"], values, strict=True):
            got = np.frombuffer(left["c"], np.float32).reshape(4, 3)
            np.testing.assert_allclose(got, one["a"] @ one["b"], rtol=1e-6)


@pytest.mark.parametrize("tf32", [False, True])
def test_tf32_is_what_the_contract_says(contract, tf32):
    torch = FakeTorch()
    reply(msgspec.structs.replace(contract, tf32=tf32), torch)
    assert torch.backends.cuda.matmul.allow_tf32 is tf32
    assert torch.backends.cudnn.allow_tf32 is tf32


def test_a_compiler_that_fails_is_absent_alone(contract, monkeypatch):
    torch = FakeTorch()

    def broken(function):
        raise RuntimeError("no compiler found\nand a long story")

    monkeypatch.setattr(torch, "compile", broken)
    found = reply(contract, torch)
    assert isinstance(found["torch_eager"], TorchTimed)
    assert found["torch_compile"] == TorchFailed(why="RuntimeError: no compiler found")


@pytest.mark.parametrize(
    ("expression", "why"),
    [("(torch.matmul(a, b), a)", "2 results, the contract has 1"), ("torch.nonsense(a)", "nonsense")],
)
def test_an_expression_that_does_not_give_the_outputs_is_absent(contract, expression, why):
    found = reply(msgspec.structs.replace(contract, torch=expression), FakeTorch())
    assert all(isinstance(entry, TorchFailed) and why in entry.why for entry in found.values())


@pytest.mark.parametrize(
    "expression",
    [
        "torch.matmul(a, b)",
        "a @ b.T + 2 * n",
        "torch.nn.functional.layer_norm(a + b, (a.shape[1],), a[0], None)",
        "torch.cumsum(a, dim=0, dtype=torch.int32)[:, 1:-1]",
        "(a > 0, -a)",
        "(total := a + b, total * 2)",
    ],
)
def test_what_computes_is_allowed(expression):
    assert callable(function_of(expression, ("a", "b", "n"))(FakeTorch()))


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("__import__('os')", "'__import__' is unknown"),
        ("a.__class__", r"\.__class__ is not allowed"),
        ("torch.hub.load('x', 'y')", r"is not allowed"),
        ("torch.load('/etc/passwd')", r"\.load is not allowed"),
        ("(lambda: a)()", "a Lambda is not allowed"),
        ("[x for x in a]", "a ListComp is not allowed"),
        ("f'{a}'", "a JoinedStr is not allowed"),
        ("a)\nimport os\n(b", "is no expression"),
        ("a if b else a", "a IfExp is not allowed"),
        ("z + a", "'z' is unknown"),
        ("(a := b + 1, a)", "a is given a value"),
        ("(torch := b, torch.add(a, b))", "torch is given a value"),
        ("", "is no expression"),
        ("a" + " + a" * 1000, "longer than"),
    ],
)
def test_what_does_more_than_compute_is_not(expression, said):
    with pytest.raises(InputProblem, match=said):
        function_of(expression, ("a", "b"))


def test_the_shipped_contracts_name_expressions_that_are_allowed():
    seen = 0
    for path in sorted((ROOT / "kernels").glob("*/contract.yaml")):
        contract = read_contract(path)
        if contract.torch:
            names = [*(a.name for a in contract.arguments), *contract.dimensions]
            function_of(contract.torch, list(dict.fromkeys(names)))
            seen += 1
    assert seen >= 2


def test_without_torch_both_are_absent_and_say_what_to_install(contract, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    found = measured(contract)
    assert found == dict.fromkeys(
        ("torch_eager", "torch_compile"), TorchFailed(why="torch is not installed: the extra torch brings it")
    )


def test_an_expression_that_is_not_allowed_starts_no_process(contract, monkeypatch):
    monkeypatch.setattr(torch_baselines, "_absent", lambda contract: "")
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("a process was started"))
    found = measured(msgspec.structs.replace(contract, torch="torch.load('x')"))
    assert all(".load is not allowed" in entry.why for entry in found.values())


@pytest.mark.parametrize(
    ("module", "limit_s", "why"),
    [
        ("raise RuntimeError('CUDA out of memory')", 30, "ended with 1: RuntimeError: CUDA out of memory"),
        ("import time; time.sleep(60)", 1.5, "took longer than 1.5 s"),
        ("import os; os._exit(0)", 30, "ended with 0"),
    ],
)
def test_a_process_of_torch_that_dies_or_hangs_is_a_reason(contract, monkeypatch, tmp_path, module, limit_s, why):
    """The child is real, its torch is not."""
    (tmp_path / "torch.py").write_text(module)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ROOT / 'workflow'}")
    monkeypatch.setattr(torch_baselines, "_absent", lambda contract: "")
    found = measured(contract, limit_s)
    assert all(why in entry.why for entry in found.values()), found


def test_a_process_of_torch_answers_through_its_files(contract, monkeypatch, tmp_path):
    (tmp_path / "torch.py").write_text(
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from fake_torch import FakeTorch\nfake = FakeTorch()\nprint('torch says hello')\n"
        "for name in dir(fake):\n    globals()[name] = getattr(fake, name)\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ROOT / 'workflow'}")
    monkeypatch.setattr(torch_baselines, "_absent", lambda contract: "")
    found = measured(contract)
    assert found["torch_compile"].latency_us == {"small": pytest.approx(4.0)}


def test_a_process_of_torch_that_is_never_asked_ends_with_the_stage(contract, monkeypatch, tmp_path):
    (tmp_path / "torch.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ROOT / 'workflow'}")
    monkeypatch.setattr(torch_baselines, "_absent", lambda contract: "")
    with torch_baselines.Torch(contract) as torch:
        process = torch._process
        assert process is not None
        assert process.poll() is None
    assert process.poll() is not None
