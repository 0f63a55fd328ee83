"""The process between the nursery and one child: it confines, watches, kills, and tells how the child ended.

It is forked from the clean server and runs no candidate's code. When the server or the parent goes, it ends the child
with all that the child made; when it is killed itself, the kernel kills the child.
"""

import contextlib
import os
import resource
import select
import signal
import socket
import sys
import time
import traceback
from typing import NoReturn

import msgspec

from kerneltrial.records.record import Record
from kerneltrial.sandbox import child, framing, libc, namespaces
from kerneltrial.sandbox.confine import confine
from kerneltrial.sandbox.endings import Ended, Report, Seen, Usage, classify
from kerneltrial.sandbox.limits import Limits, View
from kerneltrial.sandbox.means import Means

_TAIL = 8192
_TALK = 3  # the child's descriptor of the conversation, after its standard three
_HANDSHAKE_S = 30.0
_HANDSHAKE_BYTES = 1 << 20


Orders = tuple[int, int]  # descriptors that say "end it" when they can be read: the parent's, and the server's life


class Opening(Record):
    """What the parent wants: a function `package.module:name`, under these limits."""

    function: str
    limits: Limits
    view: View


def supervise(talk: socket.socket, status: socket.socket, life: int, means: Means) -> None:
    """Serve one child from its birth to its end. `talk` goes to the child, `status` stays here.

    `life` is a descriptor that can be read when the server ends.
    """
    request = framing.receive(status, _HANDSHAKE_BYTES, time.monotonic() + _HANDSHAKE_S)
    opening = msgspec.msgpack.decode(request, type=Opening)
    libc.prctl(libc.PR_SET_CHILD_SUBREAPER, 1)
    try:
        namespaces.enter(means.driver_namespaces if opening.view.driver else means.namespaces)
        report = _watch(talk, (status.fileno(), life), opening, means)
    except OSError as problem:  # the host took back what the probe had found
        report = Report(ended=Ended(how="exit", detail=f"sandbox: {problem}"), usage=_usage(0.0))
    with contextlib.suppress(framing.Closed, TimeoutError):
        framing.send(status, msgspec.msgpack.encode(report), time.monotonic() + _HANDSHAKE_S)


def _watch(talk: socket.socket, orders: Orders, opening: Opening, means: Means) -> Report:
    born = time.monotonic()
    output, written = os.pipe()
    born_child = os.fork()
    if born_child == 0:
        _become_child(talk, written, opening, means)
    os.close(written)
    talk.close()
    handle = os.pidfd_open(born_child)
    tail, killed = _wait(handle, output, orders, born + opening.limits.wall_s)
    _kill(born_child)
    code = os.waitpid(born_child, 0)[1]
    _reap_orphans()
    tail = (tail + _drain(output))[-_TAIL:]
    usage = _usage(time.monotonic() - born)
    inherited = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    seen = Seen(code, killed, tail.decode(errors="replace"), usage.max_rss_bytes - inherited)
    return Report(ended=classify(seen, usage, opening.limits), usage=usage)


def _wait(handle: int, output: int, orders: Orders, deadline: float) -> tuple[bytes, bool]:
    """Wait until the child ends, its time is up, or parent or server ask or die; return its output's end."""
    waiting = select.poll()
    for descriptor in (handle, output, *orders):
        waiting.register(descriptor, select.POLLIN)
    tail = b""
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            return tail, True
        ready = {descriptor for descriptor, _ in waiting.poll(left * 1000 + 1)}
        if output in ready:
            part = os.read(output, 1 << 16)
            if not part:
                waiting.unregister(output)
            tail = (tail + part)[-_TAIL:]
        if handle in ready:
            return tail, False
        if not ready.isdisjoint(orders):
            return tail, True


def _drain(output: int) -> bytes:
    os.set_blocking(output, False)
    tail = b""
    with contextlib.suppress(BlockingIOError):
        while part := os.read(output, 1 << 16):
            tail = (tail + part)[-_TAIL:]
    return tail


def _kill(pid: int) -> None:
    """End the child with its group. Its number cannot be another's yet: nobody has waited for it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _reap_orphans() -> None:
    """End whatever the child left behind: orphans come to the subreaper, so only the child's own are ended."""
    for _ in range(10_000):
        mine = _children()
        for pid in mine:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0 if mine else os.WNOHANG)
        except ChildProcessError:
            return


def _children() -> tuple[int, ...]:
    own = os.getpid()
    try:
        with open(f"/proc/{own}/task/{own}/children", encoding="ascii") as listed:
            return tuple(int(pid) for pid in listed.read().split())
    except OSError:  # a kernel without that file: the process id namespace ends them all the same
        return ()


def _usage(wall_s: float) -> Usage:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Usage(
        cpu_s=round(spent.ru_utime + spent.ru_stime, 6), wall_s=round(wall_s, 6), max_rss_bytes=spent.ru_maxrss * 1024
    )


def _become_child(talk: socket.socket, written: int, opening: Opening, means: Means) -> NoReturn:
    code = 1
    try:
        libc.die_with_parent()
        os.setsid()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(written, 1)
        os.dup2(written, 2)
        if talk.fileno() != _TALK:
            os.dup2(talk.fileno(), _TALK)
        talk.detach()
        os.set_inheritable(_TALK, False)
        os.closerange(_TALK + 1, 1 << 20)
        os.chdir("/")
        os.umask(0o077)
        sys.dont_write_bytecode = True  # the clean process may keep what it compiled; a child keeps nothing
        confine(opening.limits, opening.view, means)
        sock = socket.socket(fileno=_TALK)  # held to the end: where it closes early, a child that frees much is killed
        code = child.run(opening.function, sock)
    except SystemExit as wanted:
        code = wanted.code if isinstance(wanted.code, int) else 1
    except BaseException:
        traceback.print_exc(limit=-8)
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code & 0xFF)
