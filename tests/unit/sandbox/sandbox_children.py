"""Functions that the sandbox's tests run in children; some behave badly on purpose."""

import ctypes
import mmap
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Requests = Any


def echo(argument: bytes, requests: Requests) -> None:
    """Answer each request with the argument in front."""
    while (request := requests.get()) is not None:
        requests.reply(argument + request)


def attempt(argument: bytes, requests: Requests) -> None:
    """Do what each request names; answer with what came of it."""
    while (request := requests.get()) is not None:
        name, _, operand = request.decode().partition(" ")
        try:
            told = str(ATTEMPTS[name](operand))
        except BaseException as problem:
            told = f"{type(problem).__name__}: {problem}"
        requests.reply(told.encode())


def address(_: str) -> int:
    """Where the C library lies."""
    return ctypes.cast(ctypes.CDLL("libc.so.6").malloc, ctypes.c_void_p).value or 0


def read(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")[:80]


def write(path: str) -> str:
    Path(path).write_text("x" * 10, encoding="utf-8")
    return "written"


def flood_file(path: str) -> str:
    with open(path, "wb", buffering=0) as file:
        for _ in range(100):
            file.write(b"x" * (1 << 20))
    return "written"


def connect(port: str) -> str:
    with socket.create_connection(("127.0.0.1", int(port)), timeout=2):
        return "connected"


def unix(path: str) -> str:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(path)
        return "connected"


def fork(_: str) -> str:
    pid = os.fork()
    if pid == 0:
        time.sleep(60)
        os._exit(0)
    return "forked"


def run_program(_: str) -> str:
    return subprocess.run(["/bin/echo", "ran"], capture_output=True, text=True, check=True).stdout


def execute(_: str) -> None:
    os.execv("/bin/true", ["true"])


def environment(_: str) -> str:
    return repr(sorted(os.environ.items()))


def descriptors(_: str) -> str:
    found = []
    for number in range(256):
        try:
            os.fstat(number)
        except OSError:
            continue
        found.append(number)
    return repr(found)


def trace(pid: str) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(16, int(pid), 0, 0) == -1:
        raise OSError(ctypes.get_errno(), "ptrace")
    return 0


def signal_process(pid: str) -> str:
    os.kill(int(pid), 0)
    return "may signal"


def thread(_: str) -> str:
    told: list[str] = []
    worker = threading.Thread(target=lambda: told.append("thread ran"))
    worker.start()
    worker.join()
    return told[0]


def callback(_: str) -> int:
    """A C callback needs executable memory of the foreign function library."""
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
    return int(kind(lambda value: value + 1)(41))


def raise_limit(_: str) -> str:
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return "raised"


def new_namespace(_: str) -> str:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x10000000) == -1:
        raise OSError(ctypes.get_errno(), "unshare")
    return "entered"


_REMEMBERED: list[str] = []


def remember(word: str) -> int:
    _REMEMBERED.append(word)
    return len(_REMEMBERED)


def own_pid(_: str) -> int:
    return os.getpid()


ATTEMPTS: dict[str, Callable[[str], object]] = {
    function.__name__: function
    for function in (
        *(address, read, write, flood_file, connect, unix, fork, run_program, execute, environment, descriptors, trace),
        *(signal_process, thread, callback, raise_limit, new_namespace, own_pid, remember),
    )
}


def memory_bomb(argument: bytes, requests: Requests) -> None:
    """Take memory until it is refused."""
    requests.get()
    held = []
    while True:
        held.append(bytearray(1 << 24))


def native_memory_bomb(argument: bytes, requests: Requests) -> None:
    """Take memory in a way that ends in a crash: touch a mapping that was refused."""
    requests.get()
    held = []
    try:
        while True:
            held.append(mmap.mmap(-1, 1 << 24))
    except OSError:
        print("terminate called after throwing an instance of 'std::bad_alloc'", file=sys.stderr, flush=True)
        os.abort()


def endless_loop(argument: bytes, requests: Requests) -> None:
    requests.get()
    while True:
        pass


def sleep(argument: bytes, requests: Requests) -> None:
    requests.get()
    time.sleep(600)


def fork_bomb(argument: bytes, requests: Requests) -> None:
    """Make processes until it is refused, say how many, and leave them behind in sessions of their own."""
    requests.get()
    made = 0
    try:
        for _ in range(500):
            if os.fork() == 0:
                os.setsid()
                time.sleep(600)
            made += 1
    except OSError:
        pass
    requests.reply(str(made).encode())
    requests.get()


def flood(argument: bytes, requests: Requests) -> None:
    """Write 64 MB to standard output and error, then fail."""
    requests.get()
    for _ in range(64):
        os.write(1, b"flood " * 87382 + b"\n")
        os.write(2, b"flood " * 87382 + b"\n")
    raise ValueError("the last word")


def crash(argument: bytes, requests: Requests) -> None:
    requests.get()
    ctypes.string_at(0)


def leave(argument: bytes, requests: Requests) -> None:
    requests.get()
    sys.exit(7)


def too_long(argument: bytes, requests: Requests) -> None:
    requests.get()
    requests.reply(b"x" * (1 << 20))


def lie_about_length(argument: bytes, requests: Requests) -> None:
    """Announce a message that never comes."""
    requests.get()
    os.write(3, (1 << 60).to_bytes(8, "little"))
    time.sleep(600)
