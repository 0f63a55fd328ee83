"""`kerneltrial doctor`: what is installed, which device there is, what is missing, in about ten lines."""

import argparse
import importlib.metadata
import os
import platform
import shutil
from pathlib import Path

NEEDED = ("snakemake", "msgspec", "numpy", "llvmlite", "nvidia-cuda-nvrtc", "numba-cuda")
OR_ELSE = {"nvidia-cuda-nvrtc": "nvidia-cuda-nvrtc-cu12"}  # what CUDA 12 has in its place
FOR_A_MODEL = ("openai", "genai-prices")
FOR_A_GPU = ("cuda-bindings", "nvidia-ml-py")


def run(_given: argparse.Namespace, root: Path) -> int:
    """Print the findings; 0 where a trial can run here, else 3."""
    from kerneltrial.devices.device import DeviceProblem
    from kerneltrial.devices.opening import detect
    from kerneltrial.sandbox import means

    print(f"kerneltrial {_version('kerneltrial')}, Python {platform.python_version()}, {platform.platform()}")
    names = [n if _version(n) else OR_ELSE.get(n, n) if _version(OR_ELSE.get(n, n)) else n for n in NEEDED]
    missing = [name for name in names if _version(name) is None]
    print("packages: " + ", ".join(f"{n} {_version(n) or 'MISSING'}" for n in names))
    gpu = [name for name in FOR_A_GPU if _version(name) is None]
    print("for a GPU: " + (f"missing {', '.join(gpu)}: pip install 'kerneltrial[gpu]'" if gpu else "all there"))
    model = [name for name in FOR_A_MODEL if _version(name) is None]
    extra = f"missing {', '.join(model)}: pip install 'kerneltrial[openai]'" if model else "all there"
    print(f"for a model: {extra}; OPENAI_API_KEY is {'set' if os.environ.get('OPENAI_API_KEY') else 'not set'}")
    try:
        device = detect()
        print(f"device: {device.kind}, {device.name}, compiles for {device.arch}")
        for name, value in sorted(device.fingerprint.items()):
            print(f"  {name}: {value}")
        if device.kind == "cuda":
            print(f"  compute-sanitizer: {_sanitizer()}")
        else:
            print("  a trial on cpu counts instead of timing: it can say NO-GO or INCONCLUSIVE, never GO")
    except DeviceProblem as error:
        print(f"device: {error}")
        missing.append("a device")
    print("sandbox: " + ", ".join(f"{name}: {state}" for name, state in means.report().items()))
    ready = all((root / name).is_file() for name in ("config.yaml", "Snakefile"))
    print(f"a trial here (config.yaml and Snakefile): {'yes' if ready else 'no'}")
    print(f"disk: {shutil.disk_usage(root).free // 2**20} MiB free in {root}")
    following = "run `snakemake --cores 1`" if ready else "make a trial with `kerneltrial init DIR`"
    print(f"missing: {', '.join(missing)}" if missing else f"nothing is missing: {following}")
    return 3 if missing else 0


def _sanitizer() -> str:
    from kerneltrial.devices.cuda.sanitizer import found

    return found() or "absent: it comes with the CUDA toolkit, and by pip as nvidia-cuda-sanitizer-api"


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
