"""nvJitLink in a child: machine code from PTX, and a report of resources. Needs no driver."""

from typing import Any

import msgspec

from kerneltrial.build.messages import AssemblyRequest, Compiled, CompilerReply, Refusal
from kerneltrial.build.nvrtc import first_error


def prepare() -> None:
    """Load the library, where it is, so that children forked later have it."""
    _version()


def serve(argument: bytes, requests: Any) -> None:
    """The child's function: assemble what each request holds."""
    while (content := requests.get()) is not None:
        request = msgspec.msgpack.decode(content, type=AssemblyRequest)
        requests.reply(msgspec.msgpack.encode(assemble(request.ptx, request.arch)))


def assemble(ptx: bytes, arch: str) -> CompilerReply:
    """Assemble one PTX text for `arch`, with line numbers."""
    version = _version()
    if not version:
        return Refusal(why="absent", detail="nvJitLink cannot be loaded: pip install nvidia-nvjitlink", log="")
    from cuda.bindings import nvjitlink

    options = [f"-arch={arch}", "-verbose", "-lineinfo"]
    handle = nvjitlink.create(len(options), options)
    try:
        nvjitlink.add_data(handle, nvjitlink.InputType.PTX, ptx, len(ptx), "candidate.ptx")
        nvjitlink.complete(handle)
    except nvjitlink.nvJitLinkError as problem:
        log = _log(handle, errors=True)
        return Refusal(why="error", detail=f"nvJitLink: {first_error(log) or problem}"[:2000], log=log)
    cubin = bytearray(nvjitlink.get_linked_cubin_size(handle))
    nvjitlink.get_linked_cubin(handle, cubin)
    return Compiled(ptx=b"", cubin=bytes(cubin), log=_log(handle, errors=False), compiler=f"nvjitlink {version}")


def _version() -> str:
    """The library's version, such as 13.5; empty where it cannot be loaded."""
    try:
        from cuda.bindings import nvjitlink

        major, minor = nvjitlink.version()
    except Exception:  # the loader of the binding has errors of its own, which differ from version to version
        return ""
    return f"{major}.{minor}"


def _log(handle: int, errors: bool) -> str:
    from cuda.bindings import nvjitlink

    size = nvjitlink.get_error_log_size(handle) if errors else nvjitlink.get_info_log_size(handle)
    content = bytearray(size + 1)
    if size:
        (nvjitlink.get_error_log if errors else nvjitlink.get_info_log)(handle, content)
    return bytes(content).rstrip(b"\0").decode(errors="replace")
