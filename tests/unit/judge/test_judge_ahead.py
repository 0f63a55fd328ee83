"""Answers are worked out while a device opens: the same ones, as far as they are kept, and no longer than is waited."""

import threading

import pytest
from judge_doubles import FakeRunner, binary, built, oracle, plan, setup

from kerneltrial.inputs.problem import InputProblem
from kerneltrial.judge.answers import Answers
from kerneltrial.judge.validation import Judge, Validated

BROKEN = "def oracle(inputs, dims):\n    raise ValueError('no answer')\n"


class Opening(FakeRunner):
    """A runner whose device opens when everything has been worked out."""

    def __init__(self, judge: Judge) -> None:
        super().__init__()
        self.judge, self.all_there = judge, False

    def load(self, binary_: object) -> None:
        wanted = sum(map(self.judge.draws, self.judge.cases))
        deadline = threading.Event()
        for _ in range(6000):
            if self.all_there or len(self.judge.answers._drawn) == wanted:
                self.all_there = True
                return
            deadline.wait(0.01)
        raise AssertionError("nobody worked ahead")


def test_a_candidate_whose_device_opens_late_finds_all_answers_there(tmp_path) -> None:
    judge = Judge(setup(tmp_path))
    runner = Opening(judge)
    with judge.drawing_ahead():
        outcome = judge.judge_candidate(built(), binary(), plan(), runner)
    assert isinstance(outcome, Validated)
    assert runner.all_there
    plain = Judge(setup(tmp_path)).judge_candidate(built(), binary(), plan(), FakeRunner())
    assert outcome == plain


def test_it_ends_when_nobody_waits_any_more(tmp_path) -> None:
    judge = Judge(setup(tmp_path))
    over = threading.Event()
    over.set()
    judge.answers.draw_ahead([(case, 0) for case in judge.cases], over)
    assert not judge.answers._drawn


def test_no_more_is_worked_out_than_is_kept(tmp_path) -> None:
    judge = Judge(setup(tmp_path))
    answers = Answers(setup(tmp_path), cache_bytes=8000)
    answers.draw_ahead([(case, draw) for case in judge.cases for draw in range(5)], threading.Event())
    assert 0 < answers._held_bytes < 16000
    assert len(answers._drawn) < 5 * len(judge.cases)


def test_what_the_oracle_fails_at_is_told_to_who_asks(tmp_path) -> None:
    judge = Judge(setup(tmp_path, oracle=oracle(tmp_path, BROKEN)))
    with judge.drawing_ahead():
        pass
    with pytest.raises(InputProblem, match="no answer"):
        judge.answers.drawn(judge.cases[0], 0)


def test_inputs_alone_are_those_of_the_answers_and_ask_no_oracle(tmp_path) -> None:
    judge = Judge(setup(tmp_path))
    case = judge.cases[0]
    before = judge.answers.values(case, 1)
    assert not judge.answers._drawn
    held = judge.answers.drawn(case, 1).values
    assert judge.answers.values(case, 1) is held
    assert {name: array.tobytes() for name, array in before.items()} == {n: a.tobytes() for n, a in held.items()}
