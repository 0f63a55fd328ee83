"""The stem of a run: it imports what stages need, once, and forks a process for each stage that a job hands over.

It runs no stage itself, so each begins as if it had just imported its modules. It takes orders only from processes
that the run itself has started, as the kernel tells them.
"""

import contextlib
import dataclasses
import functools
import gc
import importlib
import os
import select
import signal
import socket
import struct
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from kerneltrial.build.preloading import preload as compilers
from kerneltrial.dag import graph, guard
from kerneltrial.dag.stem import NAME
from kerneltrial.devices.preloading import preload as devices
from kerneltrial.sandbox import kept

_PATIENCE_S = 10.0  # for a job's request, which comes in one piece
_MODULES = (
    "kerneltrial.commands.stage",
    "kerneltrial.commands.configuration",
    "kerneltrial.stages.running",
    *(f"kerneltrial.stages.{stage}" for stage in graph.STAGES),
    "kerneltrial.stages.searching",
    "kerneltrial.dag.environment",
    "kerneltrial.sandbox.nursery",
    "kerneltrial.inputs.yaml_text",
    "email.parser",
    "pandas",
    "matplotlib.font_manager",
    "matplotlib.figure",
    "matplotlib.style",
    "matplotlib.backends.backend_svg",
    "matplotlib.backends.backend_agg",
    *(f"PIL.{kind}ImagePlugin" for kind in ("Bmp", "Gif", "Jpeg", "Png", "Ppm")),  # it looks for all when it saves one
    "jinja2",
)


def serve(arguments: Sequence[str]) -> None:
    """Serve until the run ends; `arguments`: the listening socket's descriptor, the run's process, device, config.

    Returns in a process that was forked for a stage, which then goes on as one that was started for it.
    """
    descriptor, run, device, config = arguments
    guard.die_with_parent()
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run decides when to stop
    gc.set_threshold(50_000, 20, 20)  # as in a stage of its own
    for names in _kept(device):
        kept.keep(names)
    stem = _Stem(socket.socket(fileno=int(descriptor)), int(run))
    _become(stem.forked(_MODULES, Path(config)))
    signal.signal(signal.SIGINT, interrupt)


def _kept(device: str) -> Iterable[tuple[str, ...]]:
    """What nurseries of a run want; a winner's confirmation wants the `cpu` device beside a card too."""
    if device == "cuda":
        yield devices("cuda", vendors=True)
    yield compilers({"cuda_cpp"})
    yield devices("cpu")


@dataclasses.dataclass
class _Handed:
    """A stage that runs: the job's socket, its process, that process's own descriptor; whether the job was ended."""

    job: socket.socket
    pid: int
    handle: int
    left: bool = False

    def close(self) -> None:
        os.close(self.handle)
        self.job.close()


class _Stem:
    """What is waited for: jobs, the ends of stages, and the ends of jobs whose stage still runs."""

    def __init__(self, listening: socket.socket, run: int) -> None:
        self._listening, self._run = listening, run
        self._stages: list[_Handed] = []

    def forked(self, modules: Iterable[str], config: Path) -> bytes:
        """Import `modules` while nobody asks, then wait for jobs; returns in a stage's process, with its request."""
        request = None
        work: list[Callable[[], object]] = [functools.partial(importlib.import_module, name) for name in modules]
        work.append(functools.partial(_read, config))
        for piece in work:
            while request is None and self._has_news(0.0):
                request = self._answered()
            if request is not None:
                return request
            with contextlib.suppress(Exception):  # the stage that needs it says so
                piece()
        gc.collect()
        gc.freeze()  # stages share these pages as long as nothing touches them
        while request is None:
            self._has_news(None)
            request = self._answered()
        return request

    def _has_news(self, wait_s: float | None) -> bool:
        return bool(self._waiting().poll(None if wait_s is None else wait_s * 1000))

    def _waiting(self) -> select.poll:
        waiting = select.poll()
        waiting.register(self._listening, select.POLLIN)
        for stage in self._stages:
            waiting.register(stage.handle, select.POLLIN)
            if not stage.left:  # it sends nothing more, so it can be read when it has ended
                waiting.register(stage.job, select.POLLIN)
        return waiting

    def _answered(self) -> bytes | None:
        """Answer what has happened; a stage's process, which is forked here, gets its request."""
        ready = {descriptor for descriptor, _ in self._waiting().poll(0)}
        for stage in list(self._stages):
            if stage.handle in ready:
                self._ended(stage)
            elif stage.job.fileno() in ready:
                stage.left = True
                os.kill(stage.pid, signal.SIGKILL)  # nobody else has waited for it, so it is no other's number
        if self._listening.fileno() in ready:
            return self._taken(self._listening.accept()[0])
        return None

    def _ended(self, stage: _Handed) -> None:
        status = os.waitstatus_to_exitcode(os.waitpid(stage.pid, 0)[1])
        with contextlib.suppress(OSError):  # the job was ended
            stage.job.sendall(struct.pack("<i", status))
        self._stages.remove(stage)
        stage.close()

    def _taken(self, job: socket.socket) -> bytes | None:
        """Fork a stage for a job; who is no job of this run is turned away, and a job then starts its stage itself."""
        streams: list[int] = []
        try:
            job.settimeout(_PATIENCE_S)
            if not _is_child(job, self._run):
                raise OSError("no job of this run")
            head, streams, _, _ = socket.recv_fds(job, 8, 3)
            request = _exactly(job, struct.unpack("<Q", head)[0])
            if len(streams) != 3:
                raise OSError("no streams")
            job.sendall(b"t")
            pid = os.fork()
        except (OSError, struct.error):
            job.close()
        else:
            if pid == 0:
                self._leave(job, streams)
                return request
            self._stages.append(_Handed(job, pid, os.pidfd_open(pid)))
        for stream in streams:
            os.close(stream)
        return None

    def _leave(self, job: socket.socket, streams: Sequence[int]) -> None:
        """Let go of everything that belongs to the stem, and take the job's standard streams."""
        for stage in self._stages:
            stage.close()
        for one in (job, self._listening):
            one.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)


def _read(config: Path) -> None:
    """Parse the trial's documents, and compile the report's templates; a stage that finds another text parses that."""
    from kerneltrial.inputs.config import read, sources
    from kerneltrial.inputs.documents import read_document
    from kerneltrial.report.page import compile_templates

    asked = read(config, {}, Path())
    compile_templates(asked.report.language)
    for paths in sources(asked, Path()).values():
        for path in map(Path, paths):
            if path.suffix == ".yaml":
                read_document(path)


def _become(request: bytes) -> None:
    """Take over a job's arguments, folder and environment; this process is a stage's from now on."""
    count, *rest = request.split(b"\0")
    words, (folder, *variables) = rest[: int(count)], rest[int(count) :]
    os.chdir(folder)
    os.environb.clear()
    for variable in variables:
        name, _, value = variable.partition(b"=")
        os.environb[name] = value
    os.environ.pop(NAME, None)
    guard.announce_run(os.getppid())  # it dies with the stem, as that with the run
    sys.argv[1:] = [os.fsdecode(word) for word in words]


def _is_child(job: socket.socket, run: int) -> bool:
    """Whether the process at the other end is this user's and was started by the run itself."""
    pid, user, _ = struct.unpack("3i", job.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    try:
        parent = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[1]
    except OSError:
        return False
    return bool(user == os.getuid() and int(parent) == run)


def _exactly(job: socket.socket, count: int) -> bytes:
    found = bytearray()
    while len(found) < count:
        part = job.recv(count - len(found))
        if not part:
            raise OSError("a request ended early")
        found += part
    return bytes(found)
