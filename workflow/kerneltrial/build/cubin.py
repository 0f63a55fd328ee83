"""What a cubin says of its kernels: names, sizes of parameters, registers, shared memory, and for which card it is.

A cubin is an ELF file of machine EM_CUDA. A kernel NAME has a section `.nv.info.NAME` of attributes: a format, a code,
and two bytes of value or of the size of what follows. No document gives the codes; those below were read off cubins of
NVRTC 13, and a test holds what is read against the compiler's own log and PTX for several architectures.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little-endian
_EM_CUDA = 190
_NEW_FLAGS = 8  # from this version of the ABI on the architecture stands one byte higher in the flags
_SIZED = 4  # the format of an attribute with its size before its bytes
_PARAMETER, _REGISTERS, _FRAME = 0x17, 0x2F, 0x11
_RESERVED_SHARED_BYTES = 1024  # the system's own in each block from 9.0 on (CUDA programming guide, "Shared Memory")
_RESERVING = 90


class Kernel(NamedTuple):
    """Parameters in bytes, in order; registers and local bytes of a thread; static shared bytes of a block."""

    parameters: tuple[int, ...]
    registers: int
    shared_bytes: int
    local_bytes: int


class Machine(NamedTuple):
    """A cubin: the number of its architecture, such as 90, and its kernels by name."""

    arch: int
    kernels: dict[str, Kernel]


class _Section(NamedTuple):
    name: str
    offset: int
    size: int

    def of(self, content: bytes) -> bytes:
        return content[self.offset : self.offset + self.size]


def read(content: bytes) -> Machine:
    """Read a cubin.

    Raises
    ------
    ValueError
        It is none, or it is cut short.
    """
    if content[: len(_MAGIC)] != _MAGIC:
        raise ValueError("is no cubin: it does not begin as a 64-bit ELF file")
    try:
        (machine,) = struct.unpack_from("<H", content, 18)
        if machine != _EM_CUDA:
            raise ValueError(f"is no cubin: it is machine code for another processor (ELF machine {machine})")
        return _read(content)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"is no whole cubin: {error}") from None


def codes(content: bytes) -> frozenset[bytes]:
    """The instructions of each kernel and device function, without their names; raises ValueError as `read` does."""
    read(content)
    return frozenset(section.of(content) for section in _sections(content) if section.name.startswith(".text."))


def _read(content: bytes) -> Machine:
    (flags,) = struct.unpack_from("<I", content, 48)
    arch = (flags >> 8 if content[8] >= _NEW_FLAGS else flags) & 0xFF
    sections = {section.name: section for section in _sections(content)}
    symbols = _symbols(content, sections)
    totals = dict(_totals(sections[".nv.info"].of(content))) if ".nv.info" in sections else {}
    kernels = {}
    for name in (name.removeprefix(".text.") for name in sections if name.startswith(".text.")):
        told = sections.get(f".nv.info.{name}")
        if told is None:
            continue  # a device function, which cannot be launched
        shared = sections[f".nv.shared.{name}"].size if f".nv.shared.{name}" in sections else 0
        reserved = _RESERVED_SHARED_BYTES if arch >= _RESERVING else 0
        index = symbols.get(name, -1)
        kernels[name] = Kernel(
            parameters=_parameters(told.of(content)),
            registers=totals.get((_REGISTERS, index), 0),
            shared_bytes=max(0, shared - reserved),
            local_bytes=totals.get((_FRAME, index), 0),
        )
    return Machine(arch, kernels)


def _sections(content: bytes) -> Iterator[_Section]:
    (start,) = struct.unpack_from("<Q", content, 40)
    size, count, names_at = struct.unpack_from("<HHH", content, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", content, start + i * size) for i in range(count)]
    names = content[headers[names_at][4] :]
    for header in headers:
        offset = header[4] if header[1] != 8 else 0  # SHT_NOBITS takes no room in the file
        yield _Section(_text(names, header[0]), offset, header[5])


def _symbols(content: bytes, sections: dict[str, _Section]) -> dict[str, int]:
    """Numbers of symbols by name: attributes of the whole file speak of kernels by these."""
    table, names = sections[".symtab"].of(content), sections[".strtab"].of(content)
    found = (_text(names, struct.unpack_from("<I", table, at)[0]) for at in range(0, len(table), 24))
    return {name: index for index, name in enumerate(found) if name}


def _totals(attributes: bytes) -> Iterator[tuple[tuple[int, int], int]]:
    for code, value in _attributes(attributes):
        if code in (_REGISTERS, _FRAME):
            index, number = struct.unpack("<II", value)
            yield (code, index), number


def _parameters(attributes: bytes) -> tuple[int, ...]:
    """Index, ordinal, offset, then a word whose upper 14 bits are the size in bytes."""
    found = {}
    for code, value in _attributes(attributes):
        if code == _PARAMETER:
            _, ordinal, _, word = struct.unpack("<IHHI", value)
            found[ordinal] = word >> 18
    return tuple(found[ordinal] for ordinal in sorted(found))


def _attributes(content: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(content):
        form, code, number = struct.unpack_from("<BBH", content, at)
        at += 4
        if form == _SIZED:
            yield code, content[at : at + number]
            at += number


def _text(names: bytes, start: int) -> str:
    return names[start : names.index(b"\0", start)].decode()
