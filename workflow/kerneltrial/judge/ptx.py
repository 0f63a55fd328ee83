"""PTX text as statements: just enough grammar to say what a module does, never mind how.

Grammar after the PTX ISA, section 4 (https://docs.nvidia.com/cuda/parallel-thread-execution): comments as in C++,
statements end with `;`, bodies stand in braces, and so do vectors and initialisers inside a statement.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_TOKEN: Final = re.compile(
    r"""
    (?P<space>[ \t\r\f\v]+)
  | (?P<newline>\n)
  | (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<string>"[^"\n]*")
  | (?P<word>[%.$_A-Za-z0-9][\w$.]*(?:::[\w.]+)*)
  | (?P<sign>[^\s])
    """,
    re.VERBOSE | re.DOTALL,
)
_STRING: Final = '""'
_WORDS_AFTER: Final = {".version": 1, ".target": 1, ".address_size": 1, ".file": 2, ".loc": 3}


@dataclass(frozen=True)
class Statement:
    """One statement: its tokens (guard and labels taken off), the line it starts at, and how many braces it is inside.

    `operands` holds, for each operand, the registers and symbols that are named in it.
    """

    line: int
    depth: int
    tokens: tuple[str, ...]

    @property
    def opcode(self) -> str:
        return self.tokens[0]

    @property
    def operands(self) -> tuple[frozenset[str], ...]:
        found: list[set[str]] = [set()]
        nested = 0
        for token in self.tokens[1:]:
            nested += (token in "([{") - (token in ")]}") if len(token) == 1 else 0
            if token == "," and nested == 0:
                found.append(set())
            elif is_name(token):
                found[-1].add(token)
        return tuple(frozenset(names) for names in found)


def is_name(token: str) -> bool:
    """Whether a token is a register or a symbol."""
    return token[0].isalpha() or (token[0] in "_$%" and len(token) > 1)


def statements(ptx: str) -> Iterator[Statement]:
    """Statements in the order of the text; raises ValueError where comments, strings or braces do not close."""
    return _Reader(list(_tokens(ptx))).statements()


def _tokens(ptx: str) -> Iterator[tuple[str, int]]:
    line = 1
    for match in _TOKEN.finditer(ptx):
        text, kind = match.group(), match.lastgroup
        if kind in ("word", "string"):
            yield (_STRING if kind == "string" else text), line
        elif kind == "sign":
            if text == '"':
                raise ValueError(f"line {line}: a string does not end")
            yield text, line
        line += text.count("\n")
    if re.search(r"/\*", re.sub(r"//[^\n]*|/\*.*?\*/|\"[^\"\n]*\"", "", ptx, flags=re.DOTALL)):
        raise ValueError("a comment does not end")


class _Reader:
    """Groups tokens into statements."""

    def __init__(self, tokens: list[tuple[str, int]]) -> None:
        self._tokens = tokens
        self._depth = 0
        self._inside = 0  # braces of vectors and initialisers within the statement
        self._current: list[str] = []
        self._line = 0

    def statements(self) -> Iterator[Statement]:
        at = 0
        while at < len(self._tokens):
            token, line = self._tokens[at]
            at += 1
            if not self._current and token in _WORDS_AFTER:
                at = self._after_directive(token, at)
            elif self._opens_body(token) or self._closes_body(token) or token == ";":
                if self._current and self._inside == 0:
                    yield self._finish()
                self._depth += (token == "{") - (token == "}")
                if self._depth < 0:
                    raise ValueError(f"line {line}: a brace closes that was not opened")
            elif token == ":" and len(self._current) == 1:
                self._current.clear()  # a label
            else:
                self._take(token, line)
        if self._depth or self._current:
            raise ValueError("it ends inside a statement or a body")

    def _opens_body(self, token: str) -> bool:
        header = any(t in (".entry", ".func", ".section") for t in self._current)
        return token == "{" and self._inside == 0 and (header or not self._current)

    def _closes_body(self, token: str) -> bool:
        return token == "}" and self._inside == 0

    def _take(self, token: str, line: int) -> None:
        if not self._current:
            self._line = line
        if len(token) == 1:
            self._inside += (token == "{") - (token == "}")
        self._current.append(token)

    def _finish(self) -> Statement:
        tokens = self._current
        if tokens[0] == "@":
            tokens = tokens[3:] if tokens[1:2] == ["!"] else tokens[2:]
        self._current = []
        return Statement(line=self._line, depth=self._depth, tokens=tuple(tokens or ("@",)))

    def _after_directive(self, directive: str, at: int) -> int:
        """Where the next statement starts after a directive that no `;` ends: `.loc 1 2 3, function_name $x, …`."""
        at += _WORDS_AFTER[directive]
        while at < len(self._tokens) and self._tokens[at][0] == ",":
            word = self._tokens[at + 1][0] if at + 1 < len(self._tokens) else ""
            at += 2
            if word == "function_name":
                at += 1
                if at < len(self._tokens) and self._tokens[at][0] == "+":
                    at += 2
            elif word == "inlined_at":
                at += 3
        return at
