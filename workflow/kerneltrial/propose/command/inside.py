"""What runs in the confined child: it starts the program, hands its tries to the parent, and reads what it left.

The program has this process's rights and may do with the folder what it likes; nothing that comes from here is believed
by the parent, which sees bytes only.
"""

import contextlib
import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from kerneltrial.propose.command import posting

MAXIMUM_BYTES = 2_000_000
MAILBOX = ".kerneltrial"
_POLL_S = 0.03
_OUTPUT = ".kerneltrial/output.txt"
_TAIL = 2_000
# `try` needs no package: where those of the parent lie, the program may not be able to look.
SHIM = """#!/bin/sh
if [ "$1" = try ]; then shift; exec "{python}" -I -S "{post}" "$@"; fi
exec "{python}" -P -m kerneltrial "$@"
"""


def serve(argument: bytes, requests: Any) -> None:
    """The child's function. A request of the parent answers the last try; a reply is the next try, or the end."""
    order = msgspec.msgpack.decode(argument)
    folder = Path(order["folder"])
    _lay_out(folder, order["files"])
    deadline = time.monotonic() + order["wall_s"]
    requests.get()
    with _started(order["words"], folder, order["python_path"]) as program:
        while True:
            waiting = _next_try(folder)
            if waiting is not None:
                requests.reply(msgspec.msgpack.encode({"kind": "try", "draft": _bounded(waiting)}))
                answer = requests.get()
                if answer is None:
                    return
                try:
                    _write(waiting.with_suffix(".result"), answer)
                except OSError:
                    break  # the program did away with the place of its answer
            elif program.poll() is not None or time.monotonic() >= deadline:
                break
            else:
                time.sleep(_POLL_S)
        status = program.poll()
    left = _bounded(folder / "proposal.json")
    output = _bounded(folder / _OUTPUT)[-_TAIL:]
    requests.reply(msgspec.msgpack.encode({"kind": "end", "status": status, "left": left, "output": output}))
    requests.get()


def _lay_out(folder: Path, files: Mapping[str, bytes]) -> None:
    (folder / MAILBOX).mkdir()
    (folder / "tmp").mkdir()
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o755 if content.startswith(b"#!") else 0o644)
    command = folder / "bin" / "kerneltrial"
    command.parent.mkdir(exist_ok=True)
    command.write_text(SHIM.format(python=sys.executable, post=posting.__file__))
    command.chmod(0o755)


@contextlib.contextmanager
def _started(words: list[str], folder: Path, python_path: str) -> Iterator[subprocess.Popen[bytes]]:
    """The program in a process group of its own, which ends with the `with`."""
    environment = {
        "PATH": f"{folder}/bin:{os.path.dirname(sys.executable)}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(folder),
        "TMPDIR": f"{folder}/tmp",
        "LANG": "C.UTF-8",
        "PYTHONPATH": python_path,
        "PYTHONDONTWRITEBYTECODE": "1",
        posting.MAILBOX: f"{folder}/{MAILBOX}",
    }
    with open(folder / _OUTPUT, "wb") as output:
        try:
            program = subprocess.Popen(
                words,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
        except OSError as fault:
            output.write(f"{words[0]}: {fault.strerror}; it is not on the PATH, or not beside the prompt\n".encode())
            program = subprocess.Popen(["false"], cwd=folder, env=environment)
    try:
        yield program
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, 9)
        program.wait()


def _next_try(folder: Path) -> Path | None:
    """The first draft that has no answer; none where the program did away with the mailbox."""
    try:
        waiting = (path for path in sorted((folder / MAILBOX).glob("try-*.json")) if path.is_file())
        return next((path for path in waiting if not path.with_suffix(".result").exists()), None)
    except OSError:
        return None


def _bounded(path: Path) -> bytes:
    """What a plain file holds. A pipe would be waited for, long after its program has ended."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            return file.read(MAXIMUM_BYTES) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
    except OSError:
        return b""


def _write(path: Path, content: bytes) -> None:
    """Into a new file, whatever the program has put in its place."""
    temporary = path.with_suffix(".part")
    temporary.unlink(missing_ok=True)
    with open(temporary, "xb") as file:
        file.write(content)
    temporary.rename(path)
