"""Kernels of a PTX text: their names, and the sizes of their parameters."""

import math
import re

# Whoever wrote a Python candidate may have written its PTX, so every pattern takes time in proportion to the text.
_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_ENTRY = re.compile(r"\.entry\s+([A-Za-z_$%][\w$]*)\s*(?:\(([^(){}]{0,100000})\))?")
_PARAMETER = re.compile(
    r"\.param(?:\s+\.(?:align\s+\d+|ptr|global|const|shared|local|param|generic))*\s+\.[busf](8|16|32|64|128)"
    r"(?:\s+\.(?:align\s+\d+|ptr|global|const|shared|local|param|generic))*\s+[\w$%]+((?:\s*\[\s*\d+\s*\])*)"
)


def entries(ptx: str) -> dict[str, tuple[int, ...]]:
    """Return sizes in bytes of each entry's parameters, in order, by the entry's name.

    Raises ValueError for a parameter that is not of the PTX ISA's forms (section "Kernel Function Parameters").
    """
    text = _COMMENT.sub(" ", ptx)
    return {found.group(1): _sizes(found.group(2) or "") for found in _ENTRY.finditer(text)}


def _sizes(parameters: str) -> tuple[int, ...]:
    return tuple(_size(word) for word in parameters.split(",") if word.strip())


def _size(parameter: str) -> int:
    found = _PARAMETER.fullmatch(parameter.strip())
    if found is None:
        raise ValueError(f"unknown form of a kernel parameter: {parameter.strip()[:200]}")
    extents = [int(extent) for extent in re.findall(r"\d+", found.group(2))]
    return int(found.group(1)) // 8 * math.prod(extents)
