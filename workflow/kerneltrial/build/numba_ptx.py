"""numba-cuda in a child: one Python source in, PTX out. Needs no driver.

Importing a candidate is running it. That happens here only: in a confined process that serves one candidate and hands
back PTX. Such a process may hand back any text that it likes, so nothing else of it is believed: machine code and
resources come from `nvjitlink`, in another child.
"""

import functools
import importlib
import itertools
import linecache
import sys
import traceback
import types
import warnings
from collections.abc import Callable
from typing import Any

import msgspec

from kerneltrial.build import ptx_text
from kerneltrial.build.entries import entries
from kerneltrial.build.messages import Compiled, CompilerReply, NumbaParameter, NumbaRequest, Refusal

MODULE, NAME = "candidate", "candidate.py"
_LOG_LIMIT = 1 << 20


@functools.cache
def absent() -> str:
    """What this host lacks for numba, or an empty string: found by compiling a kernel of our own."""
    source = "def warm(a, n):\n    i = cuda.grid(1)\n    if i < n:\n        a[i] = a[i] * 2.0 + 1.0\n"
    parameters = (NumbaParameter(dtype="float32", axes=1), NumbaParameter(dtype="int32", axes=0))
    try:
        scope: dict[str, Any] = {"cuda": _numba("cuda")}
        exec(source, scope)
        _compile(scope["warm"], parameters, (8, 0))
    except Exception as problem:  # whatever numba and its loaders of libraries raise
        needs = "pip install 'numpy<2.5' numba-cuda nvidia-nvvm nvidia-cuda-nvrtc"
        return f"numba cannot compile for CUDA here ({_first_line(problem)}); it needs: {needs}"
    return ""


def prepare() -> None:
    """Import numba and compile a kernel once, so that children forked later find its tables filled."""
    absent()


def serve(argument: bytes, requests: Any) -> None:
    """The child's function: compile one request. A second one would not get the same bytes."""
    content = requests.get()
    if content is not None:
        request = msgspec.msgpack.decode(content, type=NumbaRequest)
        requests.reply(msgspec.msgpack.encode(compile_source(request)))


def tell_absent(argument: bytes, requests: Any) -> None:
    """A child's function that runs no candidate: say what this host lacks for numba, or nothing."""
    while requests.get() is not None:
        requests.reply(absent().encode())


def compile_source(request: NumbaRequest) -> CompilerReply:
    """Import a source as the module `candidate` and compile its kernels into one PTX text."""
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
    return Compiled(ptx=ptx.encode(), cubin=b"", log="", compiler="")


def _numba(module: str) -> Any:
    """A module of numba, imported late: it takes half a second. Its own types are too loose to check against."""
    return importlib.import_module(f"numba.{module}")


def _compile(kernel: Callable[..., None], parameters: tuple[NumbaParameter, ...], capability: tuple[int, int]) -> str:
    signature = tuple(_type(parameter) for parameter in parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", _numba("core.errors").NumbaWarning)
        ptx, _ = _numba("cuda").compile(kernel, signature, cc=capability, device=False, abi="numba", lineinfo=True)
    return str(ptx).rstrip("\0")


def _named(ptx: str, name: str) -> str:
    """Call the kernel by its function's name: numba's own name tells of types and of compiler internals."""
    (mangled,) = entries(ptx)
    return ptx_text.rename_entry(ptx_text.without_environments(ptx), mangled, name)


def _type(parameter: NumbaParameter) -> Any:
    known = _numba("cuda.types")
    element = getattr(known, parameter.dtype)
    return known.Array(element, parameter.axes, "C") if parameter.axes else element


def _capability(arch: str) -> tuple[int, int]:
    digits = arch.removeprefix("sm_").rstrip("abcdefghijklmnopqrstuvwxyz")
    return int(digits[:-1]), int(digits[-1])


def _start_afresh(capability: tuple[int, int]) -> None:
    """Make the bytes of the PTX depend on the source alone, and device functions compile without a device.

    numba counts compiles, and the counts are in names; the nursery's warm run must not show.
    """
    _numba("cuda.core.bytecode").FunctionIdentity._unique_ids = itertools.count(1)
    _numba("cuda.cudaimpl")._unique_smem_id = 0
    _numba("cuda.dispatcher").get_current_device = lambda: types.SimpleNamespace(compute_capability=capability)


def _import(source: str) -> types.ModuleType:
    module = types.ModuleType(MODULE)
    module.__file__ = NAME
    sys.modules[MODULE] = module
    linecache.cache[NAME] = (len(source), None, source.splitlines(keepends=True), NAME)
    exec(compile(source, NAME, "exec"), module.__dict__)
    return module


def _first_line(problem: BaseException) -> str:
    """What was raised, in one line: numba says first in which of its steps, then why, then in which line."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()] or [""]
    first = 1 if len(lines) > 1 and lines[0].startswith("Failed in ") else 0
    why = " ".join(lines[first : first + (2 if lines[first].endswith(":") else 1)])
    place = next((f" ({line.rstrip(':')})" for line in lines if line.startswith(f'File "{NAME}", line ')), "")
    return f"{type(problem).__name__}: {why}{place}"[:2000]


def _told() -> str:
    return traceback.format_exc()[-_LOG_LIMIT:]
