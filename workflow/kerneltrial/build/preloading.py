"""What a nursery should hold before it forks compilers. A module of its own, as it must cost nothing to import."""

from collections.abc import Iterable

_PREPARE = {
    "cuda_cpp": ("kerneltrial.build.nvrtc:prepare",),
    "numba_cuda": ("kerneltrial.build.numba_ptx:prepare", "kerneltrial.build.nvjitlink:prepare"),
}


def preload(languages: Iterable[str]) -> tuple[str, ...]:
    """Names for `sandbox.nursery.Nursery`, for these languages."""
    return tuple(name for language in sorted(languages) for name in _PREPARE[language])
