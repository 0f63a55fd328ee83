"""YAML and JSON files as JSON types, and JSON types as records, with errors that a person can act on."""

import copy
import datetime
import functools
import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from kerneltrial.inputs.extremes import ALLOWED, extremes
from kerneltrial.inputs.problem import InputProblem

T = TypeVar("T")
MAXIMUM_BYTES = 1_000_000


def read_document(path: Path) -> Any:
    """Return the content of a YAML or JSON file in JSON types; numbers with a point or an exponent are `Decimal`.

    Raises
    ------
    InputProblem
        Where the file is absent, unreadable, larger than 1 MB, no YAML, or has duplicate keys, anchors or tags.
    """
    try:
        content = path.read_bytes()
    except OSError as fault:
        raise InputProblem(f"{path}: cannot be read ({fault.strerror}); create it or correct the path") from None
    if len(content) > MAXIMUM_BYTES:
        raise InputProblem(f"{path}: is larger than {MAXIMUM_BYTES} bytes")
    try:
        text = content.decode("utf-8")
        found = _json(text) if path.suffix == ".json" else parse(text)
        if found is None:
            raise InputProblem("the file is empty; it must hold keys")
        return found
    except UnicodeDecodeError:
        raise InputProblem(f"{path}: is not UTF-8 text; save it as UTF-8") from None
    except InputProblem as fault:
        raise InputProblem(f"{path}: {fault}") from None


def parse(text: str) -> Any:
    """Return YAML text in JSON types; raises `InputProblem` with line and column. A text is looked through once."""
    return copy.deepcopy(_parsed(text))


@functools.lru_cache(maxsize=64)
def _parsed(text: str) -> Any:
    from kerneltrial.inputs.yaml_text import parsed  # most jobs read JSON alone

    return parsed(text)


def _json(text: str) -> Any:
    """As `parse`; JSON is YAML too, but a config that a stage reads should cost no more than it must."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise InputProblem("a key stands twice; keep one")
        return found

    try:
        return json.loads(text, parse_float=Decimal, parse_constant=Decimal, object_pairs_hook=once)
    except (ValueError, RecursionError) as fault:
        raise InputProblem(f"is no valid JSON ({fault})") from None


def to_record(document: Any, type_: type[T], where: str) -> T:
    """Convert JSON types to a record; a text that reads as a number is taken as one, as `--config` gives texts.

    `where` is the file's name, the first word of every problem.
    """
    prepared = plain(document)
    for tokens in _halves(prepared):
        raise InputProblem(
            f"{where}: {_field(prepared, tokens)}: holds bytes that are no UTF-8, or half of a character (\\ud800 to "
            "\\udfff); write the character itself"
        )
    try:
        found = msgspec.convert(prepared, type_, strict=False)
    except msgspec.ValidationError as fault:
        raise InputProblem(f"{where}: {explained(fault, prepared, type_)}") from None
    for tokens, value in extremes(found):
        raise InputProblem(f"{where}: {_field(prepared, tokens)}: {str(value)[:80]} is not allowed; {ALLOWED}")
    return found


def _halves(value: Any, tokens: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where a text stands that no file can hold: YAML and JSON can name a surrogate alone, a shell pass any bytes."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _halves(key, tokens)
            yield from _halves(item, (*tokens, key))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from _halves(item, (*tokens, place))
    elif isinstance(value, str) and not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
        yield tokens


def plain(value: Any) -> Any:
    """Return `value` with other parsers' floats and dates as the JSON types used here."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return Decimal(repr(value))
    if isinstance(value, Decimal) and _is_short(value):
        return int(value)
    if isinstance(value, datetime.date):
        return value.isoformat()
    return value


def _is_short(value: Decimal) -> bool:
    """Whether a number is a whole one written short, as 1e11 is: integers may be written so too."""
    exponent = value.as_tuple().exponent
    return isinstance(exponent, int) and exponent > 0 and value.adjusted() < 40


def with_text_expressions(document: Any) -> Any:
    """Return a document with integers as text where an expression is meant, so that `grid: [1, 1, 1]` works."""
    fields = {"shape", "grid", "block", "cluster", "shared_bytes", "elements", "when", "operations", "bytes"}
    if isinstance(document, list):
        return [with_text_expressions(item) for item in document]
    if not isinstance(document, dict):
        return document
    return {key: _texts(value) if key in fields else with_text_expressions(value) for key, value in document.items()}


def _texts(value: Any) -> Any:
    if isinstance(value, list):
        return [_texts(item) for item in value]
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def explained(fault: msgspec.ValidationError, document: Any, type_: Any) -> str:
    """Put what msgspec says of a document into words: field, value, what is allowed."""
    from kerneltrial.inputs.allowed import absent, allowed, unknown_key  # only where something is wrong

    text, _, path = str(fault).partition(" - at ")
    tokens = _tokens(path, document, type_)
    value = _follow(document, tokens)
    field = _field(document, tokens)
    prefix = f"{field}: " if field else ""
    key = re.match(r"Object contains unknown field `(.*)`$", text)
    if key:
        return prefix + unknown_key(key.group(1), type_, document, tokens)
    missing = re.match(r"Object missing required field `(.*)`$", text)
    if missing:
        names = list(dict.fromkeys((missing.group(1), *absent(type_, document, tokens))))
        if len(names) > 1:
            return f"{prefix}the keys {', '.join(map(repr, names))} are missing"
        return f"{prefix}the key {names[0]!r} is missing"
    if path.startswith("`key`") and tokens:
        return f"{prefix}this key is not allowed; allowed: letters, digits and _, at most 64, a letter first"
    words = allowed(type_, document, tokens)
    if "=" in text and "must be" in text:  # a record's own rule, already one clear sentence
        return prefix + text
    hint = _comma_hint(value)
    if value is None and tokens:
        return f"{prefix}no value is given; allowed: {words or text}"
    shown = str(value) if isinstance(value, Decimal) else repr(value)
    return f"{prefix}{shown[:80]} is not allowed; allowed: {words or text}{hint}"


def _field(document: Any, tokens: tuple[str | int, ...]) -> str:
    """The place in a document as a person finds it: an entry of a list by its name, or counted from 1."""
    words: list[str] = []
    for depth, token in enumerate(tokens):
        entry = _follow(document, tokens[: depth + 1]) if isinstance(token, int) else None
        named = entry.get("name", entry.get("entry")) if isinstance(entry, dict) else None
        words.append(str(token) if isinstance(token, str) else named if isinstance(named, str) else f"#{token + 1}")
    return ".".join(words)


def _tokens(path: str, document: Any, type_: Any) -> tuple[str | int, ...]:
    found: list[str | int] = []
    in_key = path.startswith("`key`")
    for name, index in re.findall(r"\.([A-Za-z_]\w*)|\[(\d+|\.\.\.)\]", path):
        found.append(name or (int(index) if index != "..." else _culprit(document, type_, tuple(found))))
    if in_key and isinstance(_follow(document, tuple(found)), dict):
        found.append(_culprit(document, type_, tuple(found)))
    return tuple(found)


def _culprit(document: Any, type_: Any, tokens: tuple[str | int, ...]) -> str:
    """Which key of a mapping does not convert? msgspec does not tell, so each is tried alone."""
    mapping = _follow(document, tokens)
    for key in mapping if isinstance(mapping, dict) else ():
        try:
            msgspec.convert(_replaced(document, tokens, {key: mapping[key]}), type_, strict=False)
        except msgspec.ValidationError as fault:
            if "[...]" in str(fault) or "`key`" in str(fault):
                return str(key)
    return "?"


def _replaced(document: Any, tokens: tuple[str | int, ...], value: Any) -> Any:
    if not tokens:
        return value
    head, rest = tokens[0], tokens[1:]
    if isinstance(document, dict):
        return {key: _replaced(item, rest, value) if key == head else item for key, item in document.items()}
    return [_replaced(item, rest, value) if i == head else item for i, item in enumerate(document)]


def _follow(document: Any, tokens: tuple[str | int, ...]) -> Any:
    for token in tokens:
        try:
            document = document[token]
        except (KeyError, IndexError, TypeError):
            return None
    return document


def _comma_hint(value: Any) -> str:
    parts = value if isinstance(value, list) else []
    cut = any(isinstance(part, str) and part.count("(") != part.count(")") for part in parts)
    return ' (put quotes around an expression with a comma: "ceil_div(n, 32)")' if cut else ""
