"""What a child does to itself before it runs anything: limits, files, system calls. None of it can be undone."""

import os
import resource
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

from kerneltrial.sandbox import landlock, libc, seccomp
from kerneltrial.sandbox.limits import Limits, View
from kerneltrial.sandbox.means import Means

_READ = landlock.READ_FILE | landlock.READ_DIR
_EVERYTHING = (1 << 16) - 1
_WRITE = _EVERYTHING & ~(landlock.EXECUTE | landlock.IOCTL_DEVICE)
_PLAIN_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/etc/localtime")
_DRIVER_WRITES = ("/dev", "/proc", "/tmp")
_FILES_OPEN, _FILES_OPEN_DRIVER = 256, 4096


def confine(limits: Limits, view: View, means: Means) -> None:
    """Confine this process for good. It must have one thread."""
    rules = tuple(_rules(view)) if means.landlock else ()
    _limit(limits, view, means)
    libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1)
    if means.landlock:
        landlock.restrict(means.landlock, rules, keep_signals=view.driver)
    if not view.driver:
        libc.drop_capabilities()
    if means.seccomp:
        threads_only = limits.processes == 1 and not view.driver
        seccomp.restrict(view.driver, threads_only=threads_only, programs=bool(view.execute))


def _limit(limits: Limits, view: View, means: Means) -> None:
    bounds = {
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_CPU: (limits.cpu_s, limits.cpu_s + 1),
        resource.RLIMIT_FSIZE: (limits.file_bytes, limits.file_bytes),
        resource.RLIMIT_NOFILE: (_FILES_OPEN_DRIVER if view.driver else _FILES_OPEN,) * 2,
    }
    if limits.memory_bytes:
        bounds[resource.RLIMIT_AS] = (_address_space() + limits.memory_bytes,) * 2
    if limits.processes > 1 and "user" in means.namespaces and not view.driver:
        # counted per user namespace; without one it would count all processes of this user
        bounds[resource.RLIMIT_NPROC] = (limits.processes,) * 2
    for which, (soft, hard) in bounds.items():
        ceiling = resource.getrlimit(which)[1]
        if ceiling != resource.RLIM_INFINITY:
            soft, hard = min(soft, ceiling), min(hard, ceiling)
        resource.setrlimit(which, (soft, hard))


def _address_space() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    return pages * resource.getpagesize()


def _rules(view: View) -> Iterable[tuple[str, int]]:
    for path in _PLAIN_DEVICES:
        yield path, landlock.READ_FILE | landlock.WRITE_FILE
    if view.driver:
        yield "/", _READ | landlock.EXECUTE
        for path in _DRIVER_WRITES:
            yield path, _EVERYTHING
    if view.python:
        for path in _python_folders():
            yield path, _READ
    for path in view.read:
        yield path, _READ
    for path in view.write:
        yield path, _READ | _WRITE
    for path in view.execute:
        yield path, _READ | landlock.EXECUTE


def _python_folders() -> Iterable[str]:
    paths = sysconfig.get_paths()
    yield from (paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    yield from _LIBRARIES
    for name, module in tuple(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and "." not in name:
            path = Path(file)
            yield os.fspath(path.parent if path.name.startswith("__init__.") else path)
