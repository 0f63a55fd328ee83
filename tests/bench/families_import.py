"""How torch can be imported on this machine, found out in children, for `families_on_gpu.py`.

What lies on PYTHONPATH for kerneltrial, or beside the script, may hide modules that torch was built against. So a child
imports torch with the path as it is; where that fails, with the interpreter's own packages first; the first way that
works is the families'. Every failure is told whole.
"""

import os
import subprocess
import sys
import sysconfig
from dataclasses import dataclass

_PROBE = """
import sys
sys.path[:] = {path!r}
import torch
print("torch", torch.__version__, torch.cuda.is_available())
"""
SECONDS = 90


@dataclass(frozen=True)
class Imported:
    """`path` for `sys.path` and torch's version; no version, and `why`, where no way works."""

    path: tuple[str, ...]
    version: str = ""
    why: str = ""


def ways() -> dict[str, tuple[str, ...]]:
    """Module paths to try, by name."""
    here = tuple(sys.path)
    own = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    own |= {f"{sysconfig.get_path('stdlib')}/lib-dynload"}
    first = tuple(entry for entry in here if entry in own or entry.endswith(".zip"))
    return {
        "the path as it is": here,
        "the interpreter's own packages first": (*first, *(entry for entry in here if entry not in first)),
        "the path as it is, once more": here,
    }


def torch_import() -> Imported:
    """The first way by which a child can import torch."""
    told = []
    for name, path in ways().items():
        child = [sys.executable, "-c", _PROBE.format(path=list(path))]
        environment = {**os.environ, "PYTHONPATH": ""}
        try:
            ran = subprocess.run(child, capture_output=True, text=True, timeout=SECONDS, env=environment, check=False)
        except subprocess.TimeoutExpired:
            told.append(f"with {name}: more than {SECONDS} s")
            continue
        words = next((line.split() for line in ran.stdout.splitlines() if line.startswith("torch ")), [])
        if ran.returncode == 0 and words[2:] == ["True"]:
            return Imported(path, words[1], "\n".join(told))
        told.append(f"with {name}: status {ran.returncode} {' '.join(words)}\n{ran.stderr[-3000:]}")
    return Imported(tuple(sys.path), why="\n".join(told))
