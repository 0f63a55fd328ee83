"""What a child left in its folder is removed, however deep, odd or forbidden it is, and nothing outside of it."""

import os
from contextlib import nullcontext
from functools import partial
from operator import attrgetter
from pathlib import Path

import pytest

from kerneltrial.sandbox.scratch import remove, scratch_folder


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/file").write_text("x")
    return tmp_path / "kept"


def test_a_folder_is_there_and_then_gone_also_after_an_exception() -> None:
    with scratch_folder() as folder:
        (folder / "a").write_text("x")
    assert not folder.exists()
    with pytest.raises(ValueError, match="x"), scratch_folder() as folder:
        raise ValueError("x")
    assert not folder.exists()


def test_folders_deeper_than_paths_are_long_and_recursion_goes_are_removed(tmp_path: Path) -> None:
    top = tmp_path / "scratch"
    top.mkdir()
    inner = os.open(top, os.O_RDONLY)
    for _ in range(2500):
        os.mkdir("d" * 100, dir_fd=inner)
        outer, inner = inner, os.open("d" * 100, os.O_RDONLY, dir_fd=inner)
        os.close(outer)
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=inner))
    os.close(inner)
    remove(top)
    assert not top.exists()


def test_links_pipes_odd_names_and_forbidden_folders_are_removed_and_nothing_that_they_lead_to(
    tmp_path: Path, kept: Path
) -> None:
    top = tmp_path / "scratch"
    (top / "a/b").mkdir(parents=True)
    (top / "a/b/link").symlink_to(kept)
    (top / "to-itself").symlink_to("to-itself")
    os.mkfifo(top / "a/pipe")
    (top / os.fsdecode(b"\xff\n")).write_text("")
    for folder in (top / "a/b", top / "a", top):
        folder.chmod(0)
    remove(top)
    assert not top.exists()
    assert (kept / "file").read_text() == "x"


@pytest.mark.parametrize("order", [sorted, partial(sorted, reverse=True)])
def test_what_holds_the_names_of_an_earlier_removal_is_removed_in_every_order(tmp_path, monkeypatch, order) -> None:
    """Folders are moved up under other names, of which none may be taken by a folder that is full."""
    given: list[str] = []
    rename, scan = os.rename, os.scandir
    monkeypatch.setattr(os, "rename", lambda old, new, **at: (given.append(new), rename(old, new, **at))[1])
    monkeypatch.setattr(os, "scandir", lambda at: nullcontext(order(scan(at), key=attrgetter("name"))))
    for _ in range(2):
        top = tmp_path / "scratch"
        for name in ["a", "b", *given]:
            (top / name).mkdir(parents=True)
            (top / name / "full").write_text("x")
        remove(top)
        assert not top.exists()
    assert len(set(given)) == 6


def test_a_link_in_the_place_of_the_folder_is_not_followed(tmp_path: Path, kept: Path) -> None:
    (tmp_path / "scratch").symlink_to(kept)
    kept.chmod(0o755)
    remove(tmp_path / "scratch")
    assert kept.stat().st_mode & 0o777 == 0o755
    assert (kept / "file").read_text() == "x"
