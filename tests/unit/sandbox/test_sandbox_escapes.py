"""What a hostile child tries, and what comes of it."""

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kerneltrial.sandbox import landlock, means, seccomp
from kerneltrial.sandbox.conversation import Conversation
from kerneltrial.sandbox.limits import Limits, View
from kerneltrial.sandbox.nursery import Nursery

LIMITS = Limits(wall_s=20, cpu_s=10, memory_bytes=1 << 27, file_bytes=1 << 20)
REPORT = means.report()

needs_landlock = pytest.mark.skipif(REPORT["files"].startswith("none"), reason="this kernel has no Landlock")
needs_seccomp = pytest.mark.skipif(REPORT["system_calls"] == "none", reason="no filter for calls on this host")
needs_network_namespace = pytest.mark.skipif(
    "network" not in REPORT["namespaces"], reason="namespaces are not allowed here"
)


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    os.environ["KERNELTRIAL_TEST_TOKEN"] = "open sesame"
    with Nursery(["sandbox_children"]) as opened:
        yield opened
    del os.environ["KERNELTRIAL_TEST_TOKEN"]


@pytest.fixture
def visible(tmp_path: Path) -> Path:
    (tmp_path / "seen").mkdir()
    (tmp_path / "seen" / "header.h").write_text("a header")
    (tmp_path / "work").mkdir()
    (tmp_path / "secret.txt").write_text("the holdout's salt")
    (tmp_path / "seen" / "link").symlink_to(tmp_path / "secret.txt")
    return tmp_path


@pytest.fixture
def hostile(nursery: Nursery, visible: Path) -> Iterator[Conversation]:
    view = View(read=(str(visible / "seen"), "/no/such/path"), write=(str(visible / "work"),))
    with nursery.open("sandbox_children:attempt", b"", LIMITS, view) as conversation:
        yield conversation


def attempt(conversation: Conversation, what: str) -> str:
    answer = conversation.ask(what.encode(), 10)
    assert isinstance(answer, bytes), answer
    return answer.decode()


def test_the_parents_environment_stays_with_the_parent(hostile: Conversation) -> None:
    told = attempt(hostile, "environment")
    assert "open sesame" not in told
    assert "KERNELTRIAL_TEST_TOKEN" not in told
    assert "/nonexistent" in told


@needs_landlock
@pytest.mark.parametrize("process", ["self", "1", "the test's own"])
def test_no_environment_is_read_from_proc(hostile: Conversation, process: str) -> None:
    pid = str(os.getpid()) if process == "the test's own" else process
    assert "PermissionError" in attempt(hostile, f"read /proc/{pid}/environ")


@needs_landlock
@pytest.mark.parametrize(
    "path", ["/etc/passwd", "/etc/hostname", "{}/secret.txt", "{}/seen/link", "{}/seen/../secret.txt"]
)
def test_files_outside_the_view_are_not_read(hostile: Conversation, visible: Path, path: str) -> None:
    assert "PermissionError" in attempt(hostile, f"read {path.format(visible)}")


@needs_landlock
def test_the_view_is_read_and_only_its_write_part_is_written(hostile: Conversation, visible: Path) -> None:
    assert attempt(hostile, f"read {visible}/seen/header.h") == "a header"
    assert "PermissionError" in attempt(hostile, f"write {visible}/seen/header.h")
    assert "PermissionError" in attempt(hostile, f"write {visible}/new")
    assert attempt(hostile, f"write {visible}/work/new") == "written"
    assert (visible / "work" / "new").read_text() == "x" * 10


def test_files_are_bounded(hostile: Conversation, visible: Path) -> None:
    assert "File too large" in attempt(hostile, f"flood_file {visible}/work/flood")
    assert (visible / "work" / "flood").stat().st_size <= LIMITS.file_bytes


@needs_network_namespace
def test_no_network_even_to_this_host(hostile: Conversation) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        told = attempt(hostile, f"connect {server.getsockname()[1]}")
    assert "Error" in told


@needs_network_namespace
def test_a_driver_child_has_no_network_either(nursery: Nursery) -> None:
    limits = Limits(wall_s=20, cpu_s=10, memory_bytes=0)
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        nursery.open("sandbox_children:attempt", b"", limits, View(driver=True)) as conversation,
    ):
        assert "Error" in attempt(conversation, f"connect {server.getsockname()[1]}")
        assert "root" in attempt(conversation, "read /etc/passwd")
        assert attempt(conversation, "thread") == "thread ran"
        assert "open sesame" not in attempt(conversation, "read /proc/self/environ")


@needs_seccomp
def test_sockets_of_the_file_system_are_out_of_reach(hostile: Conversation, visible: Path) -> None:
    path = visible / "seen" / "s"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        assert "PermissionError" in attempt(hostile, f"unix {path}")


@needs_seccomp
@pytest.mark.parametrize("what", ["fork", "run_program", "execute", "new_namespace", f"trace {os.getppid()}"])
def test_calls_that_no_compiler_needs_are_refused(hostile: Conversation, what: str) -> None:
    assert "PermissionError" in attempt(hostile, what)


def test_other_processes_get_no_signals(hostile: Conversation) -> None:
    assert "Error" in attempt(hostile, f"signal_process {os.getpid()}")


def test_limits_cannot_be_raised(hostile: Conversation) -> None:
    assert "not allowed" in attempt(hostile, "raise_limit")


def test_only_the_conversation_is_inherited(hostile: Conversation) -> None:
    assert attempt(hostile, "descriptors") == "[0, 1, 2, 3]"


def test_what_honest_code_needs_still_works(hostile: Conversation) -> None:
    assert attempt(hostile, "thread") == "thread ran"
    assert attempt(hostile, "callback") == "42"


@needs_seccomp
def test_a_fork_bomb_makes_nothing(nursery: Nursery) -> None:
    with nursery.open("sandbox_children:fork_bomb", b"", LIMITS, View()) as conversation:
        assert conversation.ask(b"go", 10) == b"0"


def test_processes_left_behind_die_with_the_child(nursery: Nursery) -> None:
    limits = Limits(wall_s=20, cpu_s=10, memory_bytes=0, processes=64)
    before = _descendants()
    with nursery.open("sandbox_children:attempt", b"", limits, View(driver=True)) as conversation:
        assert attempt(conversation, "fork") == "forked"
        assert len(_descendants()) > len(before)
    assert not _left(before)  # what was forked sleeps for a minute: it was ended, it did not end


def test_the_filter_is_made_for_both_architectures() -> None:
    for machine in ("x86_64", "aarch64"):
        strict = seccomp.program(machine, driver=False, threads_only=True)
        loose = seccomp.program(machine, driver=True, threads_only=False)
        assert len(strict) > len(loose) > 0
        assert len(strict) % 8 == 0


def test_rights_grow_with_the_landlock_version() -> None:
    assert landlock.handled(1) == 0x1FFF
    assert landlock.handled(3) == 0x7FFF
    assert landlock.handled(7) == 0xFFFF


def test_the_report_names_every_means() -> None:
    assert set(REPORT) == {"namespaces", "namespaces_gpu", "files", "system_calls", "limits"}


def _left(before: set[str]) -> set[str]:
    """Process ids below this test's process that were not there `before`, less the supervisor, which is given ten
    seconds: it tells how its child ended, and leaves after that.
    """
    deadline = time.monotonic() + 10
    while (left := _descendants() - before) and time.monotonic() < deadline:
        time.sleep(0.01)
    return left


def _descendants() -> set[str]:
    """Process ids below this test's process."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if words[0] != "Z":
                parents[entry.name] = words[1]
    found: set[str] = set()
    new = {str(os.getpid())}
    while new:
        new = {pid for pid, parent in parents.items() if parent in new} - found
        found |= new
    return found
