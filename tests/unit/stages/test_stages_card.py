"""One timing alone on a card, or judgements side by side: over processes."""

import multiprocessing
import os
import time

import pytest

from kerneltrial.stages import card


def _enter(stage, folder):
    with card.held(stage, folder):
        (folder / stage).touch()
        while not (folder / "let go").exists():
            time.sleep(0.01)


class Stages:
    """Stages in processes of their own, that hold the card until they are let go or killed."""

    def __init__(self, folder):
        self.folder, self.children = folder, []

    def start(self, stage):
        child = multiprocessing.get_context("fork").Process(target=_enter, args=(stage, self.folder))
        child.start()
        self.children.append(child)
        return child

    def holds(self, stage, wait_s=20.0):
        """Whether it comes to hold the card within this time."""
        deadline = time.monotonic() + wait_s
        while not (self.folder / stage).exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        return (self.folder / stage).exists()

    def let_go(self):
        (self.folder / "let go").touch()


@pytest.fixture
def stages(tmp_path):
    found = Stages(tmp_path)
    yield found
    found.let_go()
    for child in found.children:
        child.join(20)


@pytest.mark.parametrize(("first", "second"), [("time", "validate"), ("holdout", "confirm"), ("time", "qualify")])
def test_a_timing_is_alone(stages, first, second):
    stages.start(first)
    assert stages.holds(first)
    stages.start(second)
    assert not stages.holds(second, wait_s=0.3)
    stages.let_go()
    assert stages.holds(second)


def test_judgements_run_side_by_side(stages):
    stages.start("validate")
    stages.start("holdout")
    assert stages.holds("validate")
    assert stages.holds("holdout")


def test_the_card_is_free_after_a_kill(stages):
    first = stages.start("time")
    assert stages.holds("time")
    stages.start("confirm")
    assert not stages.holds("confirm", wait_s=0.2)
    first.kill()
    assert stages.holds("confirm")


def test_cards_are_told_apart(stages, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    stages.start("time")
    assert stages.holds("time")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-1234/../../x,3")
    stages.start("confirm")
    assert stages.holds("confirm")


def test_a_link_in_the_place_of_the_lock_file_is_one_line(tmp_path, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    os.symlink(tmp_path / "elsewhere", tmp_path / "kerneltrial-card-0.lock")
    with pytest.raises(card.CardProblem, match="remove it"), card.held("time", tmp_path):
        pass
    assert not (tmp_path / "elsewhere").exists()
