"""PTX text as statements: just enough grammar to say what a module does, never mind how.

Grammar after the PTX ISA, section 4 (https://docs.nvidia.com/cuda/parallel-thread-execution): comments as in C++,
statements end with `;`, bodies stand in braces, and so do vectors and initialisers inside a statement.

Reading takes time in proportion to the text, whatever stands in it: it happens in the judge's own process.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

_TOKEN: Final = re.compile(
    r"""
    (?P<space>[ \t\r\f\v]+)
  | (?P<newline>\n)
  | (?P<comment>//[^\n]*)
  | (?P<block>/\*.*?(?:\*/|\Z))
  | (?P<string>"[^"\n]*")
  | (?P<numbers>(?:-?[0-9][\w.]*+\s*+,\s*+){16,4096}+)
  | (?P<word>[%.$_A-Za-z0-9][\w$.]*(?:::[\w.]+)*)
  | (?P<sign>[^\s])
    """,
    re.VERBOSE | re.DOTALL,
)
# More numbers in a row than any instruction has are the middle of a table: passed over at one go.
_STRING: Final = '""'
_LINE: Final = re.compile(r"[0-9]{1,8}")
_ENDS: Final = frozenset("{};:")
_HEADERS: Final = frozenset({".entry", ".func", ".section"})
_WORDS_AFTER: Final = {".version": 1, ".target": 1, ".address_size": 1, ".file": 2, ".loc": 3}


@dataclass(frozen=True)
class Statement:
    """One statement: its tokens (guard and labels taken off), the line it starts at, and how many braces it is inside.

    Of an initial value in braces, names are kept and numbers are not: a table is as long as its author likes.
    `guard` is the predicate register, or empty; `negated`, whether it is to be false. `operands` holds, for each
    operand, the registers and symbols that are named in it; an element of a vector register (`%v.x`) counts as the
    whole register. `parts` are the operands' tokens. `labels` stand right before it, `source` is the line of the source
    that the last `.loc` names (0: none does).
    """

    line: int
    depth: int
    tokens: tuple[str, ...]
    guard: str = ""
    negated: bool = False
    labels: tuple[str, ...] = ()
    source: int = 0

    @property
    def opcode(self) -> str:
        return self.tokens[0]

    @cached_property
    def operands(self) -> tuple[frozenset[str], ...]:
        return tuple(frozenset(t.partition(".")[0] for t in part if is_name(t)) for part in self.parts)

    @cached_property
    def written(self) -> frozenset[str]:
        """Registers that it may write: its first operand, where that is no address and no label."""
        if not self.parts[0] or self.opcode.startswith((".", "st.", "red.", "bra", "brx", "call", "bar")):
            return frozenset()
        return frozenset() if "[" in self.parts[0] else self.operands[0]

    @cached_property
    def parts(self) -> tuple[tuple[str, ...], ...]:
        found: list[list[str]] = [[]]
        nested = 0
        for token in self.tokens[1:]:
            nested += (token in "([{") - (token in ")]}") if len(token) == 1 else 0
            if token == "," and nested == 0:
                found.append([])
            else:
                found[-1].append(token)
        return tuple(map(tuple, found))


def is_name(token: str) -> bool:
    """Whether a token is a register or a symbol."""
    return token[0].isalpha() or (token[0] in "_$%" and len(token) > 1)


def statements(ptx: str) -> Iterator[Statement]:
    """Statements in the order of the text; raises ValueError where comments, strings or braces do not close."""
    return _Reader(_tokens(ptx)).statements()


@lru_cache(maxsize=2)
def read(ptx: str) -> tuple[Statement, ...]:
    """The same, kept: several looks are taken at one text, one after the other."""
    return tuple(statements(ptx))


def functions(found: Iterable[Statement]) -> Iterator[tuple[Statement | None, list[Statement]]]:
    """Header and statements of each function's body."""
    header: Statement | None = None
    body: list[Statement] = []
    for statement in found:
        if statement.depth > 0:
            body.append(statement)
            continue
        if body:
            yield header, body
        header, body = statement, []
    if body:
        yield header, body


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
        elif kind == "block" and (len(text) < 4 or not text.endswith("*/")):
            raise ValueError(f"line {line}: a comment does not end")
        if kind in ("newline", "block", "numbers"):
            line += text.count("\n")


class _Reader:
    """Groups tokens into statements."""

    def __init__(self, tokens: Iterator[tuple[str, int]]) -> None:
        self._tokens = tokens
        self._ahead: list[tuple[str, int]] = []  # read, but not used yet
        self._depth = 0
        self._inside = 0  # braces of vectors and initialisers within the statement
        self._header = False  # the statement is one that a body follows
        self._valued = False  # the statement has an `=`
        self._current: list[str] = []
        self._labels: list[str] = []  # that no statement followed yet
        self._line = 0
        self._source = 0

    def _next(self) -> tuple[str, int] | None:
        return self._ahead.pop() if self._ahead else next(self._tokens, None)

    def statements(self) -> Iterator[Statement]:
        while (read := self._next()) is not None:
            token, line = read
            if self._current and token not in _ENDS:
                self._take(token, line)
            elif not self._current and token in _WORDS_AFTER:
                self._skip_directive(token)
            elif self._opens_body(token) or self._closes_body(token) or token == ";":
                if self._current and self._inside == 0:
                    yield self._finish()
                self._depth += (token == "{") - (token == "}")
                if self._depth < 0:
                    raise ValueError(f"line {line}: a brace closes that was not opened")
            elif token == ":" and len(self._current) == 1:
                self._labels.append(self._current.pop())
            else:
                self._take(token, line)
        if self._depth or self._current:
            raise ValueError("it ends inside a statement or a body")

    def _opens_body(self, token: str) -> bool:
        return token == "{" and self._inside == 0 and (self._header or not self._current)

    def _closes_body(self, token: str) -> bool:
        return token == "}" and self._inside == 0

    def _take(self, token: str, line: int) -> None:
        if not self._current:
            self._line = line
        if len(token) == 1:
            self._inside += (token == "{") - (token == "}")
            self._valued |= token == "="
        elif token in _HEADERS:
            self._header = True
        if self._valued and self._inside and not (is_name(token) or token in "{}()"):
            return
        self._current.append(token)

    def _finish(self) -> Statement:
        tokens, guard, negated = self._current, "", False
        if tokens[0] == "@":
            negated = tokens[1:2] == ["!"]
            at = 2 if negated else 1
            guard, tokens = "".join(tokens[at : at + 1]), tokens[at + 1 :]
        labels, self._labels, self._current = tuple(self._labels), [], []
        self._header = self._valued = False
        return Statement(
            self._line, self._depth, tuple(tokens or ("@",)), guard, negated, labels=labels, source=self._source
        )

    def _skip_directive(self, directive: str) -> None:
        """Pass over a directive that no `;` ends: `.loc 1 2 3, function_name $x, inlined_at 1 2 3`."""
        if directive == ".loc":
            self._skip(1)
            read = self._next()
            self._source = int(read[0]) if read is not None and _LINE.fullmatch(read[0]) else 0
            self._skip(1)
        else:
            self._skip(_WORDS_AFTER[directive])
        while self._skip_if(","):
            word = self._next()
            if word is not None and word[0] == "function_name":
                self._skip(1)
                if self._skip_if("+"):
                    self._skip(1)
            elif word is not None and word[0] == "inlined_at":
                self._skip(3)

    def _skip(self, count: int) -> None:
        for _ in range(count):
            self._next()

    def _skip_if(self, token: str) -> bool:
        read = self._next()
        if read is not None and read[0] != token:
            self._ahead.append(read)
        return read is not None and read[0] == token
