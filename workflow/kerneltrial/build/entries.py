"""Kernels of a PTX text: their names, and the sizes of their parameters."""

import math
import re

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ENTRY = re.compile(r"\.entry\s+([A-Za-z_$%][\w$]*)\s*(?:\(([^)]*)\))?")
_PARAMETER = re.compile(r"\.param\b.*?\.([busf])(8|16|32|64|128)\b.*?[\w$%]+((?:\s*\[\s*\d+\s*\])*)\s*$", re.DOTALL)


def entries(ptx: str) -> dict[str, tuple[int, ...]]:
    """Return sizes in bytes of each entry's parameters, in order, by the entry's name.

    Raises ValueError for a parameter that is not of the PTX ISA's forms (section "Kernel Function Parameters").
    """
    text = _COMMENT.sub(" ", ptx)
    return {found.group(1): _sizes(found.group(2) or "") for found in _ENTRY.finditer(text)}


def _sizes(parameters: str) -> tuple[int, ...]:
    return tuple(_size(word) for word in parameters.split(",") if word.strip())


def _size(parameter: str) -> int:
    found = _PARAMETER.search(parameter.strip())
    if found is None:
        raise ValueError(f"unknown form of a kernel parameter: {parameter.strip()[:200]}")
    extents = [int(extent) for extent in re.findall(r"\d+", found.group(3))]
    return int(found.group(2)) // 8 * math.prod(extents)
