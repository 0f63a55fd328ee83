"""The holdout: one verdict, and nothing of the sealed cases anywhere else."""

import traceback
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from judge_doubles import FakeRunner, binary, built, cases, multiply, plan, setup

from kerneltrial.inputs.holdout import draw_holdout
from kerneltrial.judge.holdout import judge_holdout
from kerneltrial.judge.setup import JudgeProblem
from kerneltrial.records.case import HoldoutDomain
from kerneltrial.records.contract import Range
from kerneltrial.records.reason import Finding, Reason

SALT = b"0123456789abcdef0123456789abcdef"
DOMAIN = HoldoutDomain(dimensions={name: Range(minimum=20, maximum=60) for name in "mnk"}, count=3)


def held(folder: Path, runner: FakeRunner, **changes: Any) -> Any:
    return judge_holdout(setup(folder, **changes), DOMAIN, SALT, (built(), binary(), plan()), runner)


def test_an_honest_kernel_holds(tmp_path: Path) -> None:
    verdict = held(tmp_path, FakeRunner())
    assert (verdict.verdict, verdict.cases) == ("held", 3 + 3)  # drawn shapes, and each dimension far out


def test_a_kernel_that_knows_the_cases_in_view_fails(tmp_path: Path) -> None:
    shapes = {(8, 9), (16, 16)}

    def by_heart(inputs: Any, buffers: Any, state: Any) -> None:
        multiply(inputs, buffers, state)
        if inputs["A"].shape not in shapes:
            buffers["C"][0] = 0

    verdict = held(tmp_path, FakeRunner(by_heart))
    assert verdict.verdict == "failed"
    told = msgspec.json.encode(verdict).decode()
    assert set(msgspec.json.decode(told)) == {"state", "candidate", "verdict", "cases"}


def test_what_cannot_be_judged_is_unchecked(tmp_path: Path) -> None:
    refusing = FakeRunner(refuses=Finding(reason=Reason.UNSUPPORTED_INSTRUCTION, detail="x"))
    assert held(tmp_path, refusing).verdict == "unchecked"


def test_the_cases_are_not_those_in_view(tmp_path: Path) -> None:
    seen: list[tuple[int, ...]] = []

    def notes(inputs: Any, buffers: Any, state: Any) -> None:
        seen.append(inputs["A"].shape)
        multiply(inputs, buffers, state)

    held(tmp_path, FakeRunner(notes))
    drawn = {shape for shape in seen if max(shape) <= 60 and min(shape) >= 20}
    far = set(seen) - drawn
    assert len(drawn) == 3
    assert all(min(shape) < 10 for shape in far)


def test_a_kernel_that_is_wrong_for_long_sums_only_fails(tmp_path: Path) -> None:
    def short(inputs: Any, buffers: Any, state: Any) -> None:
        multiply(inputs, buffers, state)
        if inputs["A"].shape[1] > 60:  # beyond the sealed domain, and within the contract's 512
            buffers["C"][:] = 0

    longer = cases((8, 7, 9), (16, 16, 60))
    assert held(tmp_path, FakeRunner(short), cases=longer).verdict == "failed"


def test_a_breakdown_tells_nothing_of_the_cases(tmp_path: Path) -> None:
    sealed = draw_holdout(DOMAIN, setup(tmp_path).contract, SALT, built().candidate)
    secrets = [str(case.seed) for case in sealed]

    def breaks(inputs: Any, buffers: Any, state: Any) -> None:
        raise RuntimeError(f"shape {inputs['A'].shape} and {secrets} and {np.sum(inputs['A'])}")

    with pytest.raises(JudgeProblem) as caught:
        held(tmp_path, FakeRunner(breaks))
    printed = "".join(traceback.format_exception(caught.value))
    chain: BaseException | None = caught.value
    while chain is not None:
        printed += repr(chain.args)
        chain = chain.__cause__ or chain.__context__
    assert "shape (" not in printed
    assert not any(secret in printed for secret in secrets)
    assert built().candidate[:12] in str(caught.value)
