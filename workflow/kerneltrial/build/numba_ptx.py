"""numba-cuda in a child: one Python source in, PTX out, and machine code from nvJitLink. Needs no driver.

Importing a candidate is running it. That happens here only: in a confined process that serves one candidate and hands
back PTX.
"""

import importlib.metadata
import itertools
import linecache
import sys
import traceback
import types
import warnings
from collections.abc import Callable
from typing import Any

import msgspec

from kerneltrial.build import nvjitlink, ptx_text
from kerneltrial.build.messages import Compiled, CompilerReply, NumbaParameter, NumbaRequest, Refusal

MODULE, NAME = "candidate", "candidate.py"
_LOG_LIMIT = 1 << 20


def prepare() -> None:
    """Import numba and compile a kernel once, so that children forked later find its tables filled.

    Where libNVVM is absent this does nothing: the first compile will say so.
    """
    try:
        from numba import cuda

        source = "def warm(a, n):\n    i = cuda.grid(1)\n    if i < n:\n        a[i] = a[i] * 2.0 + 1.0\n"
        scope = {"cuda": cuda}
        exec(source, scope)
        parameters = (NumbaParameter(dtype="float32", axes=1), NumbaParameter(dtype="int32", axes=0))
        _compile(scope["warm"], parameters, (8, 0))
        nvjitlink.available()
    except Exception:
        return


def serve(argument: bytes, requests: Any) -> None:
    """The child's function: compile one request. A second one would not get the same bytes."""
    content = requests.get()
    if content is not None:
        request = msgspec.msgpack.decode(content, type=NumbaRequest)
        requests.reply(msgspec.msgpack.encode(compile_source(request)))


def compile_source(request: NumbaRequest) -> CompilerReply:
    """Import a source as the module `candidate` and compile its kernels into one PTX text."""
    absent = _absent()
    if absent:
        return Refusal(why="absent", detail=absent, log="")
    capability = _capability(request.arch)
    _start_afresh(capability)
    try:
        module = _import(request.source.decode())
        texts = []
        for name, parameters in request.kernels.items():
            kernel = getattr(module, name, None)
            kernel = getattr(kernel, "py_func", kernel)  # a function under @cuda.jit is taken from there
            if not isinstance(kernel, types.FunctionType):
                return Refusal(why="missing", detail=f"the source defines no function {name!r}", log="")
            texts.append(_named(_compile(kernel, parameters, capability), name))
        ptx = ptx_text.join(texts)
    except MemoryError:
        raise
    except Exception as problem:  # whatever a candidate's code raises is an error in it
        return Refusal(why="error", detail=_first_line(problem), log=_told())
    except SystemExit as problem:
        return Refusal(why="error", detail=f"the source ended the process: SystemExit({problem.code})", log=_told())
    return _assembled(ptx, request.arch)


def _assembled(ptx: str, arch: str) -> CompilerReply:
    content = ptx.encode()
    if not nvjitlink.available():
        return Compiled(ptx=content, cubin=b"", log="", compiler=_compiler())
    made = nvjitlink.assemble(content, arch)
    if made.fault:
        return Refusal(why="error", detail=f"nvJitLink: {made.fault}"[:2000], log=made.log)
    return Compiled(ptx=content, cubin=made.cubin, log=made.log, compiler=_compiler())


def _compile(kernel: Callable[..., None], parameters: tuple[NumbaParameter, ...], capability: tuple[int, int]) -> str:
    from numba import cuda
    from numba.core.errors import NumbaWarning

    signature = tuple(_type(parameter) for parameter in parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaWarning)
        ptx, _ = cuda.compile(kernel, signature, cc=capability, device=False, abi="numba", lineinfo=True)
    return str(ptx).rstrip("\0")


def _named(ptx: str, name: str) -> str:
    """Call the kernel by its function's name: numba's own name tells of types and of compiler internals."""
    from kerneltrial.build.entries import entries

    (mangled,) = entries(ptx)
    return ptx_text.rename_entry(ptx_text.without_environments(ptx), mangled, name)


def _type(parameter: NumbaParameter) -> Any:
    from numba.cuda import types as numba_types

    element = getattr(numba_types, parameter.dtype)
    return numba_types.Array(element, parameter.axes, "C") if parameter.axes else element


def _capability(arch: str) -> tuple[int, int]:
    digits = arch.removeprefix("sm_").rstrip("abcdefghijklmnopqrstuvwxyz")
    return int(digits[:-1]), int(digits[-1])


def _start_afresh(capability: tuple[int, int]) -> None:
    """Make the bytes of the PTX depend on the source alone, and device functions compile without a device.

    numba counts compiles, and the counts are in names; the nursery's warm run must not show.
    """
    import numba.cuda.cudaimpl as implementation
    import numba.cuda.dispatcher as dispatcher
    from numba.cuda.core.bytecode import FunctionIdentity

    FunctionIdentity._unique_ids = itertools.count(1)
    implementation._unique_smem_id = 0
    dispatcher.get_current_device = lambda: types.SimpleNamespace(compute_capability=capability)


def _import(source: str) -> types.ModuleType:
    module = types.ModuleType(MODULE)
    module.__file__ = NAME
    sys.modules[MODULE] = module
    linecache.cache[NAME] = (len(source), None, source.splitlines(keepends=True), NAME)
    exec(compile(source, NAME, "exec"), module.__dict__)
    return module


def _absent() -> str:
    """What this host lacks for numba, or an empty string."""
    try:
        from numba.cuda.cudadrv.nvvm import NVVM

        NVVM()
    except Exception as problem:
        return f"numba_cuda needs libNVVM ({_first_line(problem)}); install it: pip install nvidia-nvvm"
    return ""


def _compiler() -> str:
    return f"numba-cuda {importlib.metadata.version('numba-cuda')}, {nvjitlink.described()}"


def _first_line(problem: BaseException) -> str:
    lines = [line for line in str(problem).splitlines() if line.strip()]
    return f"{type(problem).__name__}: {lines[0] if lines else ''}"[:2000]


def _told() -> str:
    return traceback.format_exc()[-_LOG_LIMIT:]
