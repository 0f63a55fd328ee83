"""`kerneltrial import torch` with torch itself, where it is installed: real problems in the confined child."""

from pathlib import Path

import pytest

from kerneltrial.__main__ import main
from kerneltrial.commands.importing import problem
from kerneltrial.commands.importing.conversing import nursery

pytest.importorskip("torch", reason="torch is not installed: pip install 'kerneltrial[torch]'")
PROBLEMS = Path(__file__).parents[2] / "import_problems"
HEAD = """import os
import torch
from torch import nn

WORD = os.urandom(4)[0] + 256 * os.urandom(1)[0]


class Model(nn.Module):
    def forward(self, x):
"""
TAIL = "\n\n\ndef get_inputs():\n    return [torch.rand(4, 8)]\n\n\ndef get_init_inputs():\n    return []\n"


@pytest.fixture(scope="module")
def clean():
    with nursery() as opened:
        yield opened


def test_a_folder_of_problems_becomes_trials_and_a_report(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "level1"
    folder.mkdir()
    for name in ("softmax", "sort"):
        (folder / f"{name}.py").write_text((PROBLEMS / f"level1/{name}.py").read_text())
    assert main(["import", "torch", "level1", "--out", "made"]) == 0
    told = capsys.readouterr().out
    assert "level1/softmax.py: softmax; 4 launches in the plain baseline; values signed, no bound" in told
    assert "sort.py: cannot be imported: the operation aten.sort.default is not known" in told
    assert "1 of 2 imported into made; next: cd made/softmax, put kernels into kernels/softmax/candidates" in told
    for path in ("config.yaml", "Snakefile", "problem.py", "kernels/softmax/contract.yaml", "cases/softmax/oracle.py"):
        assert (tmp_path / "made/softmax" / path).is_file()
    assert not (tmp_path / "made/sort").exists()
    assert main(["import", "report", "made"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["level1", "2", "1", "0", "0", "0", "-"]
    assert main(["import", "torch", "level1", "--out", "made"]) == 3
    assert "is there already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("        return open('/etc/passwd').read()", "PermissionError"),
        ("        import socket; return socket.create_connection(('127.0.0.1', 9), 1)", "Error"),
        ("        return x.sum().item()", "depends on values"),
        ("        return x if x.sum() > 0 else -x", "depends on values"),
        ("        return x.cuda()", "take .cuda() and device='cuda' out"),
        ("        import random; return x * random.random()", "two calls with the same values differ"),
        ("        x.add_(1); return x * 2", "it changes input 0 in place"),
        ("        raise SystemExit(0)", "ends the process"),
        ("        import os; os._exit(0)", "its process ended"),
        ("        raise KeyboardInterrupt", "it raises KeyboardInterrupt"),
        ("        open('/tmp/written', 'w')", "PermissionError"),
        ("        import tempfile; return tempfile.NamedTemporaryFile()", "No such file or directory"),
        ("        return x * 0 + 5", "the same whatever its inputs are"),
        ("        return x[:0] * 2", "without elements"),
        ("        return tuple(x + i for i in range(9))", "9 outputs"),
        ("        return x * WORD", "another function each time"),
        ("        return x + 1, (None, x)", "forward gives a NoneType"),
        ("        return x.exp(), torch.isnan(x)", "no case could fail a kernel that gives zeros for out1"),
    ],
)
def test_what_does_more_than_compute_is_no_problem_of_ours(clean, tmp_path, line, said):
    path = tmp_path / "hostile.py"
    path.write_text(HEAD + line + TAIL)
    one = problem.imported(clean, path, tmp_path / "out")
    assert isinstance(one, problem.NotImported)
    assert said in one.why
    assert not list((tmp_path / "out").glob("*"))


def test_chance_that_is_seeded_is_the_same_again(clean, tmp_path):
    path = tmp_path / "seeded.py"
    path.write_text(HEAD + "        return x * NUMBER" + TAIL + "\n\nimport random\nNUMBER = random.random()\n")
    assert isinstance(problem.imported(clean, path, tmp_path / "out"), problem.Imported)


@pytest.mark.parametrize("given", ["torch.rand(4, 8)", "1.5"])
def test_inputs_that_are_no_list_are_told(clean, tmp_path, given):
    path = tmp_path / "single.py"
    path.write_text(HEAD + "        return x * 2" + TAIL.replace("[torch.rand(4, 8)]", given))
    one = problem.imported(clean, path, tmp_path / "out")
    assert isinstance(one, problem.NotImported)
    assert "it has to give a list, such as [x]" in one.why


def test_names_that_are_missing_are_told(clean, tmp_path):
    path = tmp_path / "empty.py"
    path.write_text("x = 1\n")
    one = problem.imported(clean, path, tmp_path / "out")
    assert isinstance(one, problem.NotImported)
    assert one.why == "it defines no Model"
