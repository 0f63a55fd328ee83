"""The proposer `files`."""

from pathlib import Path

import pytest

from kerneltrial.inputs.problem import InputProblem
from kerneltrial.propose.files import Files
from kerneltrial.propose.history import History
from kerneltrial.propose.proposer import Draft
from kerneltrial.records.proposal import Unusable
from kerneltrial.records.reason import Reason

PLAN = "variants: [{launches: [{entry: f, grid: [n, 1, 1], block: [32, 1, 1], args: [x, n]}]}]\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.cu", "a.py", "c.cu"):
        (tmp_path / name).write_text(f"source of {name}\n")
        (tmp_path / name).with_suffix(".plan.yaml").write_text(PLAN)
    (tmp_path / "README.md").write_text("not a kernel\n")
    return tmp_path


def _at(attempts: int) -> History:
    return History(1, attempts, ())


def _names(drafts: list[Draft | Unusable]) -> list[str]:
    return [d.source.decode().split()[-1] if isinstance(d, Draft) else d.reason.value for d in drafts]


def test_files_come_in_order_of_name_with_their_language(folder: Path) -> None:
    drafts = Files(folder).propose(_at(0), 2)
    assert _names(drafts) == ["a.py", "b.cu"]
    assert [d.language for d in drafts if isinstance(d, Draft)] == ["numba_cuda", "cuda_cpp"]


def test_the_history_alone_says_which_comes_next(folder: Path) -> None:
    assert _names(Files(folder).propose(_at(2), 2)) == ["c.cu", "space_exhausted"]
    assert _names(Files(folder).propose(_at(3), 2)) == ["space_exhausted"]
    assert _names(Files(folder).propose(_at(4), 2)) == ["space_exhausted"]


@pytest.mark.parametrize("text", [None, "variants: []\n", "variants: [", "varients: []\n"])
def test_a_broken_plan_uses_its_attempt_and_tells_no_path(folder: Path, text: str | None) -> None:
    plan = folder / "b.plan.yaml"
    plan.unlink() if text is None else plan.write_text(text)
    drafts = Files(folder).propose(_at(0), 3)
    assert _names(drafts) == ["a.py", "bad_plan", "c.cu"]
    broken = drafts[1]
    assert isinstance(broken, Unusable)
    assert broken.reason is Reason.BAD_PLAN
    assert broken.detail.startswith("b.plan.yaml: ")
    assert str(folder) not in broken.detail


def test_a_folder_without_kernels_or_none_at_all_is_a_problem_of_the_inputs(tmp_path: Path) -> None:
    with pytest.raises(InputProblem, match="holds no"):
        Files(tmp_path)
    with pytest.raises(InputProblem, match="cannot be listed"):
        Files(tmp_path / "absent")
