"""PTX and machine code of the corpus: no card is needed."""

import importlib.util
import re
from functools import cache
from pathlib import Path

import numpy as np
from corpus_table import Kernel

from kerneltrial.build.messages import Refusal
from kerneltrial.build.nvjitlink import assemble
from kerneltrial.build.nvrtc import received

FOLDER = Path(__file__).parent


def include_options() -> list[bytes]:
    """Where the wheels of the CUDA toolkit keep their headers."""
    import nvidia

    roots = [Path(root) / "cu13" / "include" for root in nvidia.__path__]
    folders = [folder for root in roots for folder in (root, root / "cccl") if folder.is_dir()]
    return [f"--include-path={folder}".encode() for folder in folders]


@cache
def ptx_of_file(name: str) -> str:
    """PTX for sm_80, what the `cpu` device covers, with line information.

    Its `.file` lines name the folders of this machine, so that only the files' names are kept: two clones must give
    the same text.
    """
    from cuda.bindings import nvrtc

    source = (FOLDER / name).read_bytes()
    _, program = nvrtc.nvrtcCreateProgram(source, name.encode(), 0, [], [])
    options = [b"--gpu-architecture=sm_80", b"--std=c++17", b"--generate-line-info", b"--device-int128"]
    options += include_options()
    (code,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    if int(code):
        log = received(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
        raise RuntimeError(log.decode(errors="replace"))
    text = received(program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
    return re.sub(r'(\.file\s+\d+ ")[^"]*/', r"\1", text.rstrip(b"\0").decode())


def ptx_of(kernel: Kernel) -> tuple[str, str]:
    """A kernel's PTX and the name of its entry there."""
    if not kernel.source.endswith(".py"):
        return ptx_of_file(kernel.source), kernel.entry
    return _numba_ptx(kernel)


def _numba_ptx(kernel: Kernel) -> tuple[str, str]:
    from numba import cuda, from_dtype, types

    spec = importlib.util.spec_from_file_location("numba_kernels", FOLDER / kernel.source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    arrays = [kernel.places[str(p)] for p in kernel.parameters]
    signature = tuple(types.Array(from_dtype(np.dtype(a.dtype)), len(a.shape), "C") for a in arrays)
    ptx, _ = cuda.compile_ptx(getattr(module, kernel.entry), signature, cc=(8, 0))
    return ptx, next(line.split()[2].rstrip("(") for line in ptx.splitlines() if line.startswith(".visible .entry"))


@cache
def cubin_of(ptx: str, arch: str) -> bytes:
    """Machine code by nvJitLink; raises RuntimeError with the first error."""
    reply = assemble(ptx.encode(), arch)
    if isinstance(reply, Refusal):
        raise RuntimeError(reply.detail)
    return reply.cubin
