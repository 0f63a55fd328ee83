"""Which compilers and numerical libraries are installed: part of a trial's identity."""

import importlib.metadata
import platform

DISTRIBUTIONS = (
    "kerneltrial",
    "cuda-bindings",
    "nvidia-cuda-nvrtc",
    "nvidia-cuda-nvrtc-cu12",
    "nvidia-cuda-runtime",
    "nvidia-cuda-runtime-cu12",
    "nvidia-cuda-nvcc-cu12",
    "nvidia-cuda-cccl",
    "nvidia-cuda-cccl-cu12",
    "nvidia-nvjitlink",
    "nvidia-nvjitlink-cu12",
    "nvidia-nvvm",
    "numba-cuda",
    "numba",
    "llvmlite",
    "numpy",
)


def toolchain() -> dict[str, str]:
    """Versions by distribution, with the Python version; what is not installed is left out."""
    found = {"python": platform.python_version()}
    for name in DISTRIBUTIONS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
