"""What a nursery should hold before it forks compilers. A module of its own, as it must cost nothing to import."""

from collections.abc import Iterable

_NVRTC = "kerneltrial.build.nvrtc:prepare"
_PREPARE = {
    "cuda_cpp": (_NVRTC,),
    "numba_cuda": ("kerneltrial.build.numba_ptx:prepare", "kerneltrial.build.nvjitlink:prepare"),
}


def preload(languages: Iterable[str], *, placed: bool = True) -> tuple[str, ...]:
    """Names for `sandbox.nursery.Nursery`, for these languages.

    NVRTC lies at one place in memory unless `placed` is false, as its output depends on it.
    """
    names = [name for language in sorted(languages) for name in _PREPARE[language]]
    return tuple(f"{name}_anywhere" if name == _NVRTC and not placed else name for name in names)
