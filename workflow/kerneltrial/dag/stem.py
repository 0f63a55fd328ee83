"""Starts the stem of a run: the process that the run's stages are forked from, so that none of them imports anything.

Rules call `dag/hand_over.py`, which finds the stem by the name in the environment, and without one starts
`python -m kerneltrial` as a person does (workflow/adr/0048-stages-are-forked.md).
"""

import os
import secrets
import shlex
import socket
import subprocess
import sys
from pathlib import Path

NAME = "KERNELTRIAL_STEM"
# What Snakemake sets for a job of one thread; a numerical library reads it when it is loaded.
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "GOTO_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"
)
_WAITING = 64  # jobs that may stand in line


def command() -> str:
    """What a rule's shell line begins with; the stage and its arguments follow."""
    script = Path(__file__).with_name("hand_over.py")
    return shlex.join([sys.executable, "-I", "-S", str(script)])


def begin(device: str, config: str, root: Path) -> None:
    """Start the stem of this run, which ends with this process; jobs that ask before it is ready wait.

    `device` is `cuda` or `cpu`: what stages are expected to open; `config` is the effective config's path. Where the
    system has no such sockets, there is no stem.
    """
    name = f"kerneltrial-{os.getpid()}-{secrets.token_hex(8)}"
    try:
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with listening:
            listening.bind(f"\0{name}")
            listening.listen(_WAITING)
            words = ["-m", "kerneltrial", "--stem", str(listening.fileno()), str(os.getpid()), device, config]
            subprocess.Popen(
                [sys.executable, *words],
                cwd=root,
                env={**os.environ, **ONE_THREAD},
                stdin=subprocess.DEVNULL,
                pass_fds=(listening.fileno(),),
            )
    except OSError:
        return
    os.environ[NAME] = name
