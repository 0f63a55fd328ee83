"""Files are whole or absent, objects are what their digest says, measurements are drawn once."""

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kerneltrial.records.record import Interval
from kerneltrial.store import files, journal
from kerneltrial.store.canonical import digest
from kerneltrial.store.measurements import Measurements
from kerneltrial.store.objects import Objects
from kerneltrial.store.problem import StoreProblem

ONE = Interval(low=1.0, middle=2.0, high=3.0, confidence=0.95)
OTHER = Interval(low=0.0, middle=0.5, high=1.0, confidence=0.95)


def test_a_full_disk_leaves_the_old_file_and_one_line(tmp_path, monkeypatch):
    target = tmp_path / "record.json"
    files.write_atomic(target, b"old")

    def full(_descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreProblem, match=r"record\.json: the disk is full"):
        files.write_atomic(target, b"new")
    assert target.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["record.json"]


def test_an_object_is_found_by_its_digest_and_cannot_be_written_to(tmp_path):
    store = Objects(tmp_path)
    name = store.put(b"kernel")
    assert name == digest(b"kernel")
    assert store.put(b"kernel") == name
    assert store.get(name) == b"kernel"
    assert not store.path(name).stat().st_mode & 0o222
    assert store.names() == [name]


def test_a_changed_object_is_refused_and_named(tmp_path):
    store = Objects(tmp_path)
    name = store.put(b"kernel")
    store.path(name).chmod(0o644)
    store.path(name).write_bytes(b"kernem")
    with pytest.raises(StoreProblem, match=name):
        store.get(name)
    store.path(name).unlink()
    with pytest.raises(StoreProblem, match="missing"):
        store.get(name)


def test_a_measurement_is_drawn_once_also_by_rivals(tmp_path):
    store = Measurements(tmp_path)
    draws = []
    barrier = threading.Barrier(4)

    def draw(i):
        draws.append(i)
        return Interval(low=float(i), middle=float(i), high=float(i), confidence=0.9)

    got = []

    def rival(i):
        barrier.wait()
        got.append(store.once({"binary": "x"}, lambda: draw(i), Interval))

    threads = [threading.Thread(target=rival, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len({g.digest for g in got}) == 1
    count = len(draws)
    assert store.once({"binary": "x"}, lambda: draw(99), Interval) == got[0]
    assert len(draws) == count
    assert store.once({"binary": "y"}, lambda: OTHER, Interval).value == OTHER


def test_a_measurement_under_another_name_is_refused(tmp_path):
    store = Measurements(tmp_path)
    store.once({"binary": "x"}, lambda: ONE, Interval)
    os.rename(store.path({"binary": "x"}), store.path({"binary": "y"}))
    with pytest.raises(StoreProblem, match="another key"):
        store.once({"binary": "y"}, lambda: OTHER, Interval)


def test_a_journal_line_that_was_changed_or_removed_breaks_the_chain(tmp_path):
    path = tmp_path / "validate-0001.jsonl"
    for i in range(3):
        journal.append(path, {"stage": "validate", "n": i})
    lines = path.read_bytes().splitlines(keepends=True)
    assert [x.event["n"] for x in journal.read(path)] == [0, 1, 2]
    path.write_bytes(lines[0] + lines[2])
    with pytest.raises(StoreProblem, match="line 2"):
        journal.read(path)
    path.write_bytes(lines[0].replace(b'"n":0', b'"n":7') + lines[1] + lines[2])
    with pytest.raises(StoreProblem, match="line 2"):
        journal.read(path)


def refusing(*_):
    raise PermissionError(errno.EACCES, "Permission denied", "a", None, "b")


@pytest.mark.parametrize("operation", ["replace", "open"])
def test_what_the_file_system_refuses_is_one_line_and_leaves_no_temporary_file(tmp_path, monkeypatch, operation):
    monkeypatch.setattr(os, operation, refusing)
    with pytest.raises(StoreProblem, match=r"record\.json: cannot be written \(Permission denied\)"):
        files.write_atomic(tmp_path / "record.json", b"new")
    monkeypatch.undo()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (PermissionError(errno.EACCES, "Permission denied", "here/x"), "here/x: cannot be read or written"),
        (OSError(errno.EXDEV, "Invalid cross-device link", "a", None, "b"), None),
        (OSError(errno.EIO, "Input/output error", b"a\xff"), "cannot be read or written (Input/output error)"),
        (OSError(errno.ENOSPC, "No space left on device"), "a file: the disk is full"),
        (IsADirectoryError(errno.EISDIR, "Is a directory", 7), None),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "x"), None),
    ],
)
def test_what_lies_outside_of_this_program_is_a_problem_and_what_may_be_ours_is_none(error, told):
    problem = files.refused(error)
    assert (problem is None) == (told is None)
    assert problem is None or told in str(problem)


@pytest.mark.parametrize("end", [b"\r\n", b" \n", b"\n\n", b"\r", b""])
def test_a_line_in_other_bytes_than_were_written_is_named(tmp_path, end):
    path = tmp_path / "lock.jsonl"
    for at in ("1", "2"):
        journal.append(path, {"at": at})
    assert len(journal.read(path)) == 2
    path.write_bytes(path.read_bytes().removesuffix(b"\n") + end)
    with pytest.raises(StoreProblem, match=r"lock\.jsonl: is not the journal that was written"):
        journal.read(path)


def test_a_pipe_or_a_device_is_no_file_to_be_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StoreProblem, match=r"pipe: is a pipe where a file belongs"):
        files.write_atomic(tmp_path / "pipe", b"new")
    with pytest.raises(StoreProblem, match=r"/dev/null: is a device where a file belongs"):
        files.require_replaceable(Path("/dev/null"))
    assert [p.name for p in tmp_path.iterdir()] == ["pipe"]
    (tmp_path / "link").symlink_to("nowhere")
    files.write_atomic(tmp_path / "link", b"new")
    assert (tmp_path / "link").read_bytes() == b"new"


def test_a_folder_is_whole_or_absent(tmp_path):
    with files.whole_folder(tmp_path / "deep/folder") as made:
        (made / "a").write_text("a")
        assert not (tmp_path / "deep/folder").exists()
    assert [p.name for p in (tmp_path / "deep/folder").iterdir()] == ["a"]
    full = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(StoreProblem, match="other: the disk is full"), files.whole_folder(tmp_path / "other"):
        raise full
    assert [p.name for p in tmp_path.iterdir()] == ["deep"]


@pytest.mark.parametrize("content", [b"", b"x", b"null", b"\xff", b'{"key":"k","value":2}', b'{"key":"k","value":{}}'])
def test_a_measurement_that_was_torn_or_edited_is_one_line_and_is_not_made_again(tmp_path, content):
    store = Measurements(tmp_path)
    store.once("k", lambda: ONE, Interval)
    store.path("k").unlink()
    store.path("k").write_bytes(content)
    for read in (lambda: store.once("k", lambda: OTHER, Interval), lambda: store.all(Interval)):
        with pytest.raises(StoreProblem, match=r"json: is not what was measured \(.*remove it to measure anew"):
            read()
    assert store.path("k").read_bytes() == content


def test_a_limit_on_what_a_process_may_write_is_said_to_be_one(tmp_path):
    program = (
        "import resource, signal, sys, pathlib\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "from kerneltrial.store.files import write_atomic\n"
        "write_atomic(pathlib.Path('record.json'), b'x' * 1000)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert "record.json: is larger than this process may write; raise the limit (`ulimit -f`)" in done.stderr
    assert not list(tmp_path.iterdir())
