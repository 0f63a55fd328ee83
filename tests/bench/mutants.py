"""Mutants of CUDA sources: each differs from the original in one small mistake of a kind that people make.

Text is changed, never code: comments, strings and preprocessor lines stay as they are. Operators are only seen where
blanks stand on both sides, as in the shipped kernels, so that template brackets and pointers are left alone.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_HIDDEN = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|^[ \t]*#(?:\\\n|[^\n])*", re.DOTALL | re.MULTILINE)
_HALF = "#include <cuda_fp16.h>\n#line 1\n"

# (name of the rule, what is found, what stands there instead); several replacements give several mutants.
_RULES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("bound", r"(?<= )<(?= )", ("<=",)),
    ("bound", r"(?<= )<=(?= )", ("<",)),
    ("bound", r"(?<= )>(?= )", (">=",)),
    ("bound", r"(?<= )>=(?= )", (">",)),
    ("condition", r"(?<= )==(?= )", ("!=",)),
    ("condition", r"(?<= )!=(?= )", ("==",)),
    ("condition", r"(?<= )&&(?= )", ("||",)),
    ("condition", r"(?<= )\|\|(?= )", ("&&",)),
    ("arithmetic", r"(?<= )\+(?= )", ("-",)),
    ("arithmetic", r"(?<= )-(?= )", ("+",)),
    ("arithmetic", r"(?<= )\*(?= )", ("+",)),
    ("arithmetic", r"(?<= )/(?= )", ("*",)),
    ("arithmetic", r"(?<= )%(?= )", ("/",)),
    ("arithmetic", r"(?<= )\+=(?= )", ("=", "-=")),
    ("constant", r"(?<![\w.])\d+(?![\w.])", ("+1",)),
    ("constant", r"(?<![\w.])\d+\.\d*f\b", ("+0.5f",)),
    ("barrier", r"__sync(?:threads|warp)\(\);", ("",)),
    ("function", r"\bfmaxf(?=\()", ("fminf",)),
    ("function", r"\bmin(?=\()", ("max",)),
    ("function", r"\bexpf(?=\()", ("exp2f",)),
    ("function", r"\b__shfl_xor_sync(?=\()", ("__shfl_down_sync",)),
    ("narrow", r"\bint(?= \w+ =)", ("signed char",)),
    ("narrow", r"\blong long(?=\))", ("int",)),
    ("statement", r"\b(?:continue|break|return);", (";",)),
)
_SWAPS = (
    ("threadIdx.x", "threadIdx.y"), ("blockIdx.x", "blockIdx.y"), ("m", "n"), ("n", "k"), ("rows", "cols"),
    ("rows", "columns"), ("row", "col"), ("row", "column"), ("tx", "ty"),
)  # fmt: skip
_SUM = re.compile(r"(?<=\+= )[^;=]+(?=;)")


@dataclass(frozen=True)
class Mutant:
    """One changed source; `line` counts from 1, `place` is the column of the change."""

    rule: str
    line: int
    place: int
    before: str
    after: str
    source: str

    @property
    def name(self) -> str:
        before, after = (text.strip() or "nothing" for text in (self.before, self.after))
        return f"{self.line}:{self.place} {self.rule}: {before} -> {after}"


def mutants(source: str) -> Iterator[Mutant]:
    """Every mutant, in the order of the rules."""
    shown = _HIDDEN.sub(lambda hidden: re.sub(r"[^\n]", "\0", hidden.group()), source)
    for rule, pattern, replacements in _RULES:
        for found in re.finditer(pattern, shown):
            for replacement in replacements:
                yield _changed(source, rule, found.span(), _written(found.group(), replacement))
    for one, other in _SWAPS:
        if all(re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", shown) for name in (one, other)):
            for before, after in ((one, other), (other, one)):
                for found in re.finditer(rf"(?<![\w.]){re.escape(before)}(?!\w)", shown):
                    yield _changed(source, "swap", found.span(), after)
    for found in _SUM.finditer(shown):
        mutant = _changed(source, "narrow", found.span(), f"__half2float(__float2half({found.group()}))")
        yield Mutant(**{**mutant.__dict__, "source": _HALF + mutant.source})


def plan_mutants(plan: str) -> Iterator[Mutant]:
    """Launch plans (as text) whose grids are rounded down."""
    for found in re.finditer(r"ceil_div\(([^(),]+), ([^(),]+)\)", plan):
        yield _changed(plan, "plan", found.span(), f"max({found[1]} // ({found[2]}), 1)")


def _written(found: str, replacement: str) -> str:
    if replacement == "+1":
        return str(int(found) + 1)
    if replacement == "+0.5f":
        return f"{float(found[:-1]) + 0.5}f"
    return replacement


def _changed(source: str, rule: str, span: tuple[int, int], after: str) -> Mutant:
    start, end = span
    line = source.count("\n", 0, start) + 1
    place = start - source.rfind("\n", 0, start)
    return Mutant(rule, line, place, source[start:end], after, source[:start] + after + source[end:])
