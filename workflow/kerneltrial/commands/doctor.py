"""`kerneltrial doctor`: what is installed, which device there is, what is missing, in about ten lines."""

import argparse
import importlib.metadata
import os
import platform
import shutil
import textwrap
from pathlib import Path

from kerneltrial.commands import trial_check
from kerneltrial.inputs.installing import install
from kerneltrial.report.words import listed

NEEDED = ("snakemake", "msgspec", "numpy", "llvmlite", "nvidia-cuda-nvrtc", "numba-cuda")
OR_ELSE = {"nvidia-cuda-nvrtc": "nvidia-cuda-nvrtc-cu12"}  # what CUDA 12 has in its place
FOR_A_MODEL = ("httpx2", "genai-prices")
FOR_PROBLEMS = ("torch",)
FOR_A_GPU = ("cuda-bindings", "nvidia-ml-py")

_RUN = "run `kerneltrial rehearse`, then `snakemake --cores 1`"
_CONFIG = Path("config.yaml")
_ROOM_BYTES = 50 * 2**20  # several times what a trial of a few kernels writes


def run(given: argparse.Namespace, root: Path) -> int:
    """Print the findings; 0 where a trial can run here, else 3."""
    from kerneltrial.sandbox import means

    print(f"kerneltrial {_version('kerneltrial')}, Python {platform.python_version()}, {platform.platform()}")
    names = [n if _version(n) else OR_ELSE.get(n, n) if _version(OR_ELSE.get(n, n)) else n for n in NEEDED]
    missing = [name for name in names if _version(name) is None]
    print("packages: " + ", ".join(f"{n} {_version(n) or 'MISSING'}" for n in names))
    gpu = [name for name in FOR_A_GPU if _version(name) is None]
    print("for a GPU: " + (f"missing {', '.join(gpu)}: {install('gpu')}" if gpu else "all there"))
    model = [name for name in FOR_A_MODEL if _version(name) is None]
    extra = f"missing {', '.join(model)}: {install('openai')}" if model else "all there"
    print(f"for a model: {extra}; OPENAI_API_KEY is {'set' if os.environ.get('OPENAI_API_KEY') else 'not set'}")
    torch = [name for name in FOR_PROBLEMS if _version(name) is None]
    told = f"missing torch: {install('torch')}" if torch else f"torch {_version('torch')}"
    print(f"for PyTorch's problems, and torch beside a baseline: {told}")
    missing += _device()
    print("sandbox: " + "; ".join(f"{name.replace('_', ' ')}: {state}" for name, state in means.report().items()))
    print("  of other files a child reads nothing; whether a path exists, its size and its time it can ask")
    ready = all((root / name).is_file() for name in (given.config, "Snakefile"))
    wrong = trial_check.wrong(given, root) if ready else ""
    if given.config != _CONFIG and not (root / given.config).is_file():
        wrong = f"there is no file {given.config}"
    print(f"a trial here ({given.config} and Snakefile): {wrong or ('yes' if ready else 'no')}")
    missing += ["a trial without a mistake"] if wrong else []
    missing += _room(root, ready)
    following = _RUN if ready else "make a trial with `kerneltrial init DIR`"
    extras = [name for name, lacks in (("gpu", gpu), ("openai", model), ("torch", torch)) if lacks]
    aside = f", the extra{'s' * (len(extras) > 1)} {listed(extras)} aside" if extras else ""
    print(f"missing: {', '.join(missing)}" if missing else f"nothing is missing{aside}: {following}")
    return 3 if missing else 0


def _device() -> list[str]:
    """Print which device there is; return what is missing of it."""
    from kerneltrial.devices import opening
    from kerneltrial.devices.device import DeviceProblem

    try:
        device = opening.detect()
    except DeviceProblem as error:
        print(f"device: {error}")
        return ["a device"]
    print(f"device: {device.kind}, {device.name}, compiles for {device.arch}")
    told = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in sorted(device.fingerprint.items()))
    print(textwrap.fill(told, 110, initial_indent="  ", subsequent_indent="  ") if told else "  nothing more is known")
    if device.kind == "cuda":
        print(f"  compute-sanitizer: {_sanitizer()}")
    else:
        print("  a trial on cpu counts instead of timing: it can say NO-GO or INCONCLUSIVE, never GO")
    return []


def _room(root: Path, ready: bool) -> list[str]:
    """Print what room there is; return what is missing of it, and of a place to write to where a trial is `ready`."""
    free = shutil.disk_usage(root).free
    written = (root, root / "results", root / "reports") if ready else ()
    shut = [folder for folder in written if folder.is_dir() and not _open(folder)]
    note = f"; nothing can be written in {', '.join(map(str, shut))}" if shut else ""
    print(f"disk: {free / 2**30:,.1f} GiB free in {root}{note}")
    return ["room on the disk"] * (free < _ROOM_BYTES) + ["a folder to write to"] * bool(shut)


def _open(folder: Path) -> bool:
    return os.access(folder, os.W_OK | os.X_OK)


def _sanitizer() -> str:
    from kerneltrial.devices.cuda.sanitizer import found

    return found() or "absent: it comes with the CUDA toolkit, and by pip as nvidia-cuda-sanitizer-api"


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
