"""NVRTC in a child: one CUDA C++ source in, PTX and machine code of the same compile out. Needs no driver."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from kerneltrial.build.messages import Compiled, CompilerReply, NvrtcRequest, Refusal
from kerneltrial.sandbox import libc, placing

NAME = "candidate.cu"
# Below what a 64-bit x86 process uses by itself; the output of NVRTC depends on where it and its heap lie.
_LIBRARY, _HEAP = 0x7E00_0000_0000, 0x7D00_0000_0000
_STACK = 16 << 20  # bytes, of the compiler's thread
# What the C library's headers define and NVRTC has none of; the line directive keeps the source's own line numbers.
# Diagnostic 47, of macros defined anew, is off: the toolkit's C++ headers define these too.
PRELUDE = """\
#pragma nv_diag_suppress 47
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define HUGE_VALF INFINITY
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 4294967295u
#line 1 "candidate.cu"
"""

# Headers of the C and C++ libraries that people include out of habit: what of them makes sense on a device lies in the
# toolkit under another name, or is built in.
STANDARD = {
    "stdint.h": "#include <cuda/std/cstdint>\n",
    "cstdint": "#include <cuda/std/cstdint>\nnamespace std { using namespace cuda::std; }\n",
    "stddef.h": "#include <cuda/std/cstddef>\n",
    "cstddef": "#include <cuda/std/cstddef>\n",
    "limits.h": "#include <cuda/std/climits>\n",
    "climits": "#include <cuda/std/climits>\n",
    "float.h": "#include <cuda/std/cfloat>\n",
    "cfloat": "#include <cuda/std/cfloat>\n",
    "math.h": "",
    "cmath": "",
    "assert.h": "",
    "cassert": "",
    "stdio.h": "",
    "cstdio": "",
}


def prepare() -> None:
    """Load the compiler and run it once, at fixed places, so that children forked later find it warm and there."""
    from cuda.bindings import nvrtc

    libc.large_blocks_on_the_heap()
    with placing.below(_LIBRARY):
        nvrtc.nvrtcVersion()
    with placing.below(_HEAP):
        prepare_anywhere()


def prepare_anywhere() -> None:
    """Load the compiler and run it once, wherever it comes to lie."""
    _apart(b'extern "C" __global__ void warm(float* a) { a[0] = 1.0f; }\n', ("--gpu-architecture=sm_80",))


def serve(argument: bytes, requests: Any) -> None:
    """The child's function: compile what each request holds."""
    libc.large_blocks_on_the_heap()
    while (content := requests.get()) is not None:
        request = msgspec.msgpack.decode(content, type=NvrtcRequest)
        requests.reply(msgspec.msgpack.encode(_apart(request.source, request.options)))


def _apart(source: bytes, options: tuple[str, ...]) -> CompilerReply:
    """`compile_source` in a thread of its own, to which glibc gives a heap of its own.

    What this process did before and its other memory then hardly touch that heap
    (workflow/adr/0030-equal-binaries.md). A child's thread gets the heap of the thread that warmed up.
    """
    before = threading.stack_size(_STACK)
    try:
        with ThreadPoolExecutor(1) as apart:
            return apart.submit(compile_source, source, options).result()
    finally:
        threading.stack_size(before)


def compile_source(source: bytes, options: tuple[str, ...]) -> CompilerReply:
    """Compile one source behind the prelude.

    NVRTC's own cache (CUDA 12.9 and later, where there is a driver) is off: a compile that it answers has no log, so
    that registers and spills would be unknown.
    """
    os.environ["CUDA_CACHE_DISABLE"] = "1"
    from cuda.bindings import nvrtc

    names = [name.encode() for name in STANDARD]
    texts = [text.encode() for text in STANDARD.values()]
    whole = PRELUDE.encode() + source
    program = _checked(nvrtc.nvrtcCreateProgram(whole, NAME.encode(), len(names), texts, names))
    words = [option.encode() for option in options]
    (result,) = nvrtc.nvrtcCompileProgram(program, len(words), words)
    log = _text(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog).decode(errors="replace")
    codes = nvrtc.nvrtcResult
    if result == codes.NVRTC_ERROR_OUT_OF_MEMORY or (
        result == codes.NVRTC_ERROR_COMPILATION and "catastrophic error: out of memory" in log
    ):
        return Refusal(why="limit", detail="NVRTC ran out of memory", log=log)
    if result == codes.NVRTC_ERROR_INVALID_OPTION:
        return Refusal(why="absent", detail=f"NVRTC refuses an option: {log.strip()}", log=log)
    if result != codes.NVRTC_SUCCESS:
        return Refusal(why="error", detail=first_error(log) or str(result), log=log)
    _, major, minor = nvrtc.nvrtcVersion()
    return Compiled(
        ptx=_text(program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX),
        cubin=received(program, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN),
        log=log,
        compiler=f"nvrtc {major}.{minor}",
    )


def first_error(log: str) -> str:
    """The first line of a log that tells of an error."""
    lines = [line.strip() for line in log.splitlines()]
    return next((line for line in lines if "error" in line or "fatal" in line), "")[:2000]


def received(program: Any, size: Any, get: Any) -> bytes:
    """What NVRTC has of a program: `size` tells how many bytes, `get` writes them.

    The binding writes into the object that it is given. Python shares bytes objects of length one, and an empty log is
    one byte: `b" " * size` would turn every space of one byte in the process into a zero, and with it the spaces
    between two fields of f-strings that Python 3.12 and later compile from then on (torch's import fell to that).
    """
    length = _checked(size(program))
    content = bytes(length + 16)
    _checked(get(program, content))
    return content[:length]


def _text(program: Any, size: Any, get: Any) -> bytes:
    return received(program, size, get).rstrip(b"\0")


def _checked(answer: tuple[Any, ...]) -> Any:
    from cuda.bindings import nvrtc

    code, *values = answer
    if code != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise RuntimeError(f"NVRTC: {code}")
    return values[0] if values else None
