"""Which files a CUDA C++ source asks the compiler to read.

A compiler's log quotes lines of what it reads, and a log goes to whoever proposed the source. So only headers of the
toolkit and of the contract may be included. The kernel's own rules (`sandbox.landlock`) stand behind this scan.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePosixPath

MAXIMUM_SOURCE_BYTES = 512 * 1024

_DIRECTIVE = re.compile(r"^[ \t\v\f]*(?:#|%:)[ \t\v\f]*([A-Za-z_]\w*)(.*)$")
_WORD = re.compile(r"\b(?:include|include_next|import|embed)\b")
_PLAIN_LINE = re.compile(r"[ \t]*#[ \t]*include[ \t]*(<[^<>\n]+>|\"[^\"\n]+\")[ \t]*(?://[^\n]*)?")
_OPERAND = re.compile(r"[ \t\v\f]*(?:<([^<>\n]+)>|\"([^\"\n]+)\")")
_PROBES = re.compile(r"\b__has_(?:include|include_next|embed)\b")
_MODULE = re.compile(r"^[ \t\v\f]*(?:export[ \t]+)?import[ \t]*[<\"]", re.MULTILINE)
# Raw strings, lone carriage returns, trigraphs, a splice with blanks before the line's end.
_ODD = re.compile(r"R\"|\r|\?\?[=/]|\\[ \t\v\f]+\n")
_SPLICES = (r"\\\n", r"\\[ \t\v\f]*\n|\?\?/[ \t\v\f]*\n")
_LONGEST_LINE = 1000
_BESIDE_ODD = " beside raw strings, trigraphs, lone carriage returns or open quotes"
_LITERAL_OR_COMMENT = re.compile(
    r"""//[^\n]*
      | /\*.*?(?:\*/|\Z)
      | \.?\d(?:'?[\w.]|[eEpP][+-])*      # a number, digit separators and all
      | [A-Za-z_]\w*
      | "(?:\\[^\n]|[^"\\\n])*(?P<double>")?
      | '(?:\\[^\n]|[^'\\\n])*(?P<single>')?""",
    re.VERBOSE | re.DOTALL,
)


def source_fault(source: bytes) -> str:
    """Why a source cannot be read at all, or an empty string."""
    if len(source) > MAXIMUM_SOURCE_BYTES:
        return f"{len(source)} bytes; at most {MAXIMUM_SOURCE_BYTES} are allowed"
    if b"\0" in source:
        return f"a NUL byte at offset {source.index(0)}"
    try:
        source.decode()
    except UnicodeDecodeError as problem:
        return f"not UTF-8: {problem.reason} at offset {problem.start}"
    return ""


def include_fault(text: str, allowed: Callable[[str], bool]) -> str:
    """What a source includes and may not, in words, or an empty string. `allowed` judges a header's name."""
    for directive, operand in _directives(text):
        if operand == _BESIDE_ODD:
            return f"the word {directive!r}{operand} is allowed only in a plain line: #include <NAME>"
        if directive != "include":
            return f"#{directive} is not allowed; include a header of the toolkit or of the contract by its name"
        named = _OPERAND.match(operand)
        if named is None:
            return f'#include {operand.strip()[:100]}: the operand must be <NAME> or "NAME", not a macro'
        header = named.group(1) or named.group(2)
        if not allowed(header):
            return f"#include of {header[:200]!r}: neither a header of the CUDA toolkit nor one of the contract"
    return ""


def known_header(name: str, folders: Sequence[Path]) -> bool:
    """Whether a header's name is relative, stays below its folder, and lies in one of `folders`."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or not path.parts:
        return False
    return any((folder / path).is_file() for folder in folders)


def _directives(text: str) -> Iterable[tuple[str, str]]:
    """Every directive that makes a compiler read a file, as (name, rest of the line)."""
    text = text.replace("\r\n", "\n")
    plain = _without_comments(text.replace("\\\n", ""))
    if plain is None or _ODD.search(text):
        yield from _of_odd_text(text)
        return
    for line in plain.split("\n"):
        found = _DIRECTIVE.match(line)
        if found and found.group(1) in ("include", "include_next", "import", "embed"):
            yield found.group(1), found.group(2)
    yield from ((found.group(), "") for found in _PROBES.finditer(plain))
    yield from (("import", "") for _ in _MODULE.finditer(plain))


def _of_odd_text(text: str) -> Iterable[tuple[str, str]]:
    """The same where compilers might disagree on what is comment, literal or line.

    Every word of the kind counts then, wherever it stands and however lines are spliced, and is good only in a plain
    line of its own.
    """
    for spliced in {re.sub(splice, "", text) for splice in _SPLICES}:
        for word in _WORD.finditer(spliced):
            start = spliced.rfind("\n", 0, word.start()) + 1
            end = spliced.find("\n", word.end())
            line = spliced[start : end if end >= 0 else len(spliced)]
            found = _PLAIN_LINE.fullmatch(line) if len(line) < _LONGEST_LINE else None
            yield ("include", found.group(1)) if found else (word.group(), _BESIDE_ODD)
        if _PROBES.search(spliced):
            yield "__has_include", ""


def _without_comments(text: str) -> str | None:
    """Comments become a blank; None where a quote is not closed in its line, as in text that a condition leaves out."""
    closed = True

    def replace(found: re.Match[str]) -> str:
        nonlocal closed
        token = found.group()
        if token.startswith(("//", "/*")):
            closed = closed and (token.startswith("//") or token.endswith("*/"))
            return " "
        if token[0] in "\"'":
            closed = closed and bool(found["double"] or found["single"])
        return token

    plain = _LITERAL_OR_COMMENT.sub(replace, text)
    return plain if closed else None
