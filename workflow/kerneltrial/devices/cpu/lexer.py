"""PTX text to tokens, under limits: what is executed here was written by others."""

import re
from typing import NamedTuple

from kerneltrial.devices.cpu.refusals import unreadable

MAX_TEXT_BYTES = 8 << 20
MAX_TOKENS = 2_000_000

_TOKEN = re.compile(
    r"""
    [ \t]*+ (?:
      (?P<space>\s+|//[^\n]*|/\*.*?\*/)
    | (?P<string>"[^"\n]*")
    | (?P<number>0[fF][0-9a-fA-F]{8}(?![0-9a-zA-Z])|0[dD][0-9a-fA-F]{16}(?![0-9a-zA-Z])
        |0[xX][0-9a-fA-F]+U?|\d+\.\d*(?:[eE][+-]?\d+)?|\d+U?)
    | (?P<word>[%$_A-Za-z][\w$]*(?:\.\w+(?:::\w+)*)*)
    | (?P<directive>\.\w+(?:::\w+)*)
    | (?P<mark>[{}\[\]()<>,;:@!|+\-=*])
    | (?P<rest>\Z)
    )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)


class Token(NamedTuple):
    """`kind` is string, number, word, directive, mark or end; `line` counts lines of the PTX text from 1."""

    kind: str
    text: str
    line: int


def tokens(text: str) -> list[Token]:
    """All tokens of a PTX text, with one of kind `end` behind; raises `Refused` for what is no PTX."""
    if len(text) > MAX_TEXT_BYTES:
        raise unreadable(f"the PTX text has {len(text)} characters, the limit is {MAX_TEXT_BYTES}")
    found: list[Token] = []
    position, line = 0, 1
    for token in iter(_TOKEN.scanner(text).match, None):  # type: ignore[attr-defined]
        kind = token.lastgroup
        body = token[kind]
        position = token.end()
        if kind == "space":
            line += body.count("\n")
        elif kind == "rest":
            break
        else:
            found.append(Token(kind, body, line))
            if len(found) > MAX_TOKENS:
                raise unreadable(f"more than {MAX_TOKENS} tokens")
    if position < len(text):
        rest = text[position:].lstrip(" \t")
        raise unreadable(f"unexpected character {rest[:1]!r} in line {line} of the PTX text")
    found.append(Token("end", "", line))
    return found
