"""How torch can be imported on this machine, found out in children, for benches that need it.

What lies on PYTHONPATH for kerneltrial, or beside the script, may hide modules that torch was built against, and an
earlier process may have left compiled modules that are wrong (`nvrtc.received` says how). So a child imports torch with
the path as it is; where that fails, with the interpreter's own packages first; then with every module compiled anew.
The first way that works is the bench's. Every failure is told whole, with what may explain it.

    python tests/bench/families_import.py       says which way works, for the log of a machine
"""

import os
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass

_PROBE = """
import importlib.metadata, os, sys, traceback
sys.path[:] = {path!r}
try:
    import torch
    print("torch", torch.__version__, torch.cuda.is_available())
except BaseException:
    traceback.print_exc()
    print("python", sys.version, "space", bytes([32]), "writes bytecode", not sys.dont_write_bytecode, file=sys.stderr)
    for name in ("torch", "triton", "numpy", "typing_extensions", "sympy"):
        module = sys.modules.get(name)
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            version = "not installed"
        print(name, version, getattr(module, "__file__", "not imported"), file=sys.stderr)
    for name in ("torch._library.infer_schema", "torch._library.custom_ops"):
        spec = getattr(sys.modules.get(name), "__spec__", None)
        cached = getattr(spec, "cached", None)
        print(name, cached, "is there" if cached and os.path.exists(cached) else "is not there", file=sys.stderr)
    shown = ("PYTHON", "LD_", "CUDA", "TORCH", "LC_", "LANG", "MALLOC")
    print({{k: v for k, v in os.environ.items() if k.startswith(shown)}}, file=sys.stderr)
    print("path", sys.path, file=sys.stderr)
    with open("/proc/self/maps") as maps:
        print("mappings", len(maps.readlines()), file=sys.stderr)
    sys.exit(1)
"""
SECONDS = 120


@dataclass(frozen=True)
class Imported:
    """`path` for `sys.path` and torch's version; no version, and `why`, where no way works.

    `pycache` is where compiled modules must be kept (`sys.pycache_prefix`), or empty.
    """

    path: tuple[str, ...]
    version: str = ""
    why: str = ""
    pycache: str = ""

    def adopt(self) -> None:
        """Let this process import as the child did."""
        sys.path[:] = self.path
        sys.pycache_prefix = self.pycache or sys.pycache_prefix


def ways() -> dict[str, tuple[tuple[str, ...], str]]:
    """Module paths to try and where compiled modules are kept, by name."""
    here = tuple(sys.path)
    own = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    own |= {f"{sysconfig.get_path('stdlib')}/lib-dynload"}
    first = tuple(entry for entry in here if entry in own or entry.endswith(".zip"))
    return {
        "the path as it is": (here, ""),
        "the interpreter's own packages first": ((*first, *(entry for entry in here if entry not in first)), ""),
        "every module compiled anew": (here, tempfile.mkdtemp(prefix="compiled-")),
    }


def torch_import() -> Imported:
    """The first way by which a child can import torch."""
    told = []
    for name, (path, pycache) in ways().items():
        child = [sys.executable, "-c", _PROBE.format(path=list(path))]
        environment = {**os.environ, "PYTHONPATH": ""} | ({"PYTHONPYCACHEPREFIX": pycache} if pycache else {})
        try:
            ran = subprocess.run(child, capture_output=True, text=True, timeout=SECONDS, env=environment, check=False)
        except subprocess.TimeoutExpired:
            told.append(f"with {name}: more than {SECONDS} s")
            continue
        words = next((line.split() for line in ran.stdout.splitlines() if line.startswith("torch ")), [])
        if ran.returncode == 0 and words[2:] == ["True"]:
            return Imported(path, words[1], "\n".join(told), pycache)
        told.append(f"with {name}: status {ran.returncode} {' '.join(words)}\n{ran.stderr[-4000:]}")
    return Imported(tuple(sys.path), why="\n".join(told))


if __name__ == "__main__":
    found = torch_import()
    print(found.why or "imported at once", f"torch {found.version or 'cannot be imported'}", sep="\n")
    sys.exit(0 if found.version else 1)
