"""The environment of what runs for candidates: nothing of a person's own, so no secrets."""

import os
import sys

_KEPT = (
    "CONDA_PREFIX",
    "CUDA_DEVICE_ORDER",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "LD_LIBRARY_PATH",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_VISIBLE_DEVICES",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONPYCACHEPREFIX",
)


def environment() -> dict[str, str]:
    """The clean environment: what Python and the CUDA libraries need to be found, and nothing else."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    paths = [path for path in sys.path if path and os.path.isdir(path)]
    return kept | {
        "CUDA_CACHE_DISABLE": "1",
        "HOME": "/nonexistent",
        "LANG": "C.UTF-8",
        "OPENBLAS_NUM_THREADS": "1",  # a process with threads is not to be forked
        "OMP_NUM_THREADS": "1",
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": os.pathsep.join(paths),
        "TZ": "UTC",
    }
