"""nvJitLink: machine code from PTX, without a driver."""

import importlib.metadata
from typing import NamedTuple

from kerneltrial.build.nvrtc import first_error


class Assembled(NamedTuple):
    """Machine code, and the assembler's log; on failure no code and the first line that tells why."""

    cubin: bytes
    log: str
    fault: str


def available() -> bool:
    """Whether the library can be loaded here."""
    try:
        return bool(version())
    except (ImportError, RuntimeError, OSError):
        return False


def version() -> str:
    """The library's version, such as 13.5. Raises where it is absent."""
    from cuda.bindings import nvjitlink

    major, minor = nvjitlink.version()
    return f"{major}.{minor}"


def assemble(ptx: bytes, arch: str) -> Assembled:
    """Assemble one PTX text for `arch`, with line numbers and a report of resources."""
    from cuda.bindings import nvjitlink

    options = [f"-arch={arch}", "-verbose", "-lineinfo"]
    handle = nvjitlink.create(len(options), options)
    try:
        nvjitlink.add_data(handle, nvjitlink.InputType.PTX, ptx, len(ptx), "candidate.ptx")
        nvjitlink.complete(handle)
    except nvjitlink.nvJitLinkError as problem:
        log = _log(handle, errors=True)
        return Assembled(b"", log, first_error(log) or str(problem))
    cubin = bytearray(nvjitlink.get_linked_cubin_size(handle))
    nvjitlink.get_linked_cubin(handle, cubin)
    return Assembled(bytes(cubin), _log(handle, errors=False), "")


def _log(handle: int, errors: bool) -> str:
    from cuda.bindings import nvjitlink

    size = nvjitlink.get_error_log_size(handle) if errors else nvjitlink.get_info_log_size(handle)
    content = bytearray(size + 1)
    if size:
        (nvjitlink.get_error_log if errors else nvjitlink.get_info_log)(handle, content)
    return bytes(content).rstrip(b"\0").decode(errors="replace")


def described() -> str:
    """What a record says of the assembler."""
    try:
        return f"nvjitlink {version()}"
    except (ImportError, RuntimeError, OSError):
        return f"no assembler (cuda-bindings {importlib.metadata.version('cuda-bindings')})"
