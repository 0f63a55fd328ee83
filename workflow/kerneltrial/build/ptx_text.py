"""Changes to PTX text that keep its meaning: entry names, numba's leftovers, one text from several."""

import re
from collections.abc import Sequence

_ENVIRONMENT = re.compile(r"^\.common \.global \.align 8 \.u64 (_ZN08NumbaEnv[\w$]+);\n", re.MULTILINE)
_HEADER = re.compile(r"\A.*?^\.address_size \d+\n", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"^\s*\.file\s+\d+\s+\"[^\"]*\"[^\n]*(?:\n|\Z)", re.MULTILINE)
_WORD = re.compile(r"[\w$]+")
_SHARED = re.compile(r"\.shared\s+\.align\s+\d+\s+\.b8\s+([\w$]+)\[(\d+)\]")


def rename_entry(ptx: str, old: str, new: str) -> str:
    """Give an entry, with its parameters, another name. Raises ValueError where the text has the new name already."""
    if re.search(rf"(?<![\w$%.]){re.escape(new)}(?![\w$])", ptx):
        raise ValueError(f"the PTX has a symbol {new!r} beside the kernel of that name")
    return re.sub(rf"(?<![\w$%.]){re.escape(old)}(?=(?:_param_\d+)?(?![\w$]))", lambda _: new, ptx)


def without_environments(ptx: str) -> str:
    """Drop numba's environment pointers that nothing reads: they would be writable state of the module."""
    for name in set(_ENVIRONMENT.findall(ptx)):
        if ptx.count(name) == 1:
            ptx = re.sub(rf"^\.common \.global \.align 8 \.u64 {re.escape(name)};\n", "", ptx, flags=re.MULTILINE)
    return ptx


def join(texts: Sequence[str]) -> str:
    """One PTX text with the kernels of all; headers and file tables, which are equal, are taken once.

    Raises ValueError where two texts define one symbol.
    """
    if len(texts) == 1:
        return texts[0]
    headers = {_header(text) for text in texts}
    files = {tuple(found.strip() for found in _FILE.findall(text)) for text in texts}
    if len(headers) != 1 or len(files) != 1:
        raise ValueError("the kernels of this source were compiled in ways that do not go into one PTX text")
    bodies = [_FILE.sub("", text[len(_header(text)) :]) for text in texts]
    twice = _twice(bodies)
    if twice:
        raise ValueError(f"two kernels of this source both define {', '.join(sorted(twice))}")
    return (
        headers.pop()
        + "".join(f"{body.rstrip()}\n\n" for body in bodies)
        + "".join(f"\t{line}\n" for line in files.pop())
    )


def shared_bytes(ptx: str, entry: str) -> int:
    """Static shared memory in bytes of the arrays that an entry's text speaks of, its own and the module's."""
    arrays = {name: int(size) for name, size in _SHARED.findall(ptx)}
    start = ptx.index(f".entry {entry}(")
    body = ptx[start : (ptx.find("\n}", start) + 1) or len(ptx)]
    return sum(arrays[name] for name in set(_WORD.findall(body)) & set(arrays))


def _header(text: str) -> str:
    found = _HEADER.match(text)
    if found is None:
        raise ValueError("PTX without .address_size")
    return found.group()


def _twice(bodies: Sequence[str]) -> set[str]:
    """Symbols at module level that more than one body defines."""
    seen: set[str] = set()
    twice: set[str] = set()
    for body in bodies:
        own = set(
            re.findall(r"^\.(?:visible|weak|common|global|const|shared|func)[^\n(;{]*?([\w$]+)(?:\[|;|\()", body, re.M)
        )
        twice |= seen & own
        seen |= own
    return twice
