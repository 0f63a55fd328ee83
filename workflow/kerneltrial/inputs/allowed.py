"""What a field of a record allows, in words, read off the record's type."""

import difflib
from collections.abc import Iterable
from typing import Any

import msgspec.inspect as inspect

from kerneltrial.records.record import LARGEST

_FEW = 12  # keys that are read at a glance
_PLAIN: dict[type[inspect.Type], str] = {
    inspect.BoolType: "true or false",
    inspect.DecimalType: "a number",
    inspect.FloatType: "a number",
    inspect.NoneType: "null",
    inspect.DictType: "a mapping",
}


def allowed(type_: Any, document: Any, tokens: Iterable[str | int]) -> str:
    """Return what may stand at the place `tokens` of a document that is to become a `type_`."""
    return _words(_node(inspect.type_info(type_), document, tokens, whole=True))


def unknown_key(key: str, type_: Any, document: Any, tokens: Iterable[str | int]) -> str:
    """Return one line on an unknown key: the near one, or, where there is none or few are allowed, all of them."""
    node = _node(inspect.type_info(type_), document, tokens)
    fields = [field.encode_name for field in node.fields] if isinstance(node, inspect.StructType) else []
    head, colon, value = key.partition(":")
    if colon and head in fields:
        return f"unknown key {key!r}: YAML wants a space after the colon; write {head}: {value}"
    inner = _holders(key, node)
    if inner:
        places = " or ".join(f"{holder}: {{{key}: VALUE}}" for holder in inner)
        return (
            f"unknown key {key!r}: it stands inside another; write {places}, or --config '{inner[0]}={{{key}: VALUE}}'"
        )
    near = difflib.get_close_matches(key, fields, n=1)
    if near and len(fields) > _FEW:
        return f"unknown key {key!r}; did you mean {near[0]!r}?"
    guess = f"; did you mean {near[0]!r}?" if near else ";"
    return f"unknown key {key!r}{guess} allowed: {', '.join(fields)}"


def _holders(key: str, node: inspect.Type | None) -> list[str]:
    """The mappings of a document's top that have a key of this name."""
    fields = node.fields if isinstance(node, inspect.StructType) else ()
    parts = ((field.encode_name, _chosen(field.type, None)) for field in fields)
    return [
        name
        for name, part in parts
        if isinstance(part, inspect.StructType) and key in {inner.encode_name for inner in part.fields}
    ]


def absent(type_: Any, document: Any, tokens: Iterable[str | int]) -> list[str]:
    """Return all keys that the mapping at a place lacks, so that a person adds them at once."""
    place = list(tokens)
    node, there = _node(inspect.type_info(type_), document, place), document
    for token in place:
        there = there[token]
    fields = node.fields if isinstance(node, inspect.StructType) and isinstance(there, dict) else ()
    return [field.encode_name for field in fields if field.required and field.encode_name not in there]


def _node(
    node: inspect.Type | None, document: Any, tokens: Iterable[str | int], whole: bool = False
) -> inspect.Type | None:
    """The type at a place; `whole` keeps what is said of it, such as its description."""
    for token in tokens:
        node = _child(_chosen(node, document), token)
        try:
            document = document[token]
        except (KeyError, IndexError, TypeError):
            document = None
    described = isinstance(node, inspect.Metadata) and whole
    return node if described else _chosen(node, document)


def _child(node: inspect.Type | None, token: str | int) -> inspect.Type | None:
    match node:
        case inspect.StructType(fields=fields):
            return next((field.type for field in fields if field.encode_name == token), None)
        case inspect.UnionType(types=types):
            members = [member for member in types if isinstance(member, inspect.StructType)]
            tags = tuple(str(member.tag) for member in members if member.tag_field == token)
            return inspect.LiteralType(values=tags) if tags else None
        case inspect.DictType(value_type=value_type):
            return value_type
        case inspect.VarTupleType(item_type=item_type) | inspect.ListType(item_type=item_type):
            return item_type
        case inspect.TupleType(item_types=item_types) if isinstance(token, int) and token < len(item_types):
            return item_types[token]
    return None


def _chosen(node: inspect.Type | None, value: Any) -> inspect.Type | None:
    """Look through metadata, and choose the member of a tagged union by the value's tag."""
    while isinstance(node, inspect.Metadata):
        node = node.type
    if isinstance(node, inspect.UnionType) and isinstance(value, dict):
        for member in node.types:
            if isinstance(member, inspect.StructType) and value.get(member.tag_field or "") == member.tag:
                return member
    return node


def _words(node: inspect.Type | None) -> str:
    while isinstance(node, inspect.Metadata):
        told = (node.extra_json_schema or {}).get("description")
        if told:
            return str(told)
        node = node.type
    match node:
        case inspect.LiteralType(values=values):
            return "one of " + ", ".join(str(value) for value in values)
        case inspect.EnumType(cls=cls):
            return "one of " + ", ".join(str(member.value) for member in cls)
        case inspect.IntType():
            return _integer(node)
        case inspect.StrType():
            return _text(node)
        case inspect.StructType(fields=fields):
            return "a mapping with the keys " + ", ".join(field.encode_name for field in fields)
        case inspect.TupleType(item_types=item_types):
            return f"a list of {len(item_types)}"
        case inspect.VarTupleType() | inspect.ListType():
            return _list(node)
        case inspect.UnionType(types=types):
            return _union(types)
    return _PLAIN.get(type(node), "") if node is not None else ""


def _union(types: tuple[inspect.Type, ...]) -> str:
    tags = [str(member.tag) for member in types if isinstance(member, inspect.StructType)]
    if tags:
        fields = {member.tag_field for member in types if isinstance(member, inspect.StructType)}
        return f"a mapping whose {'/'.join(sorted(str(f) for f in fields))} is one of {', '.join(tags)}"
    return " or ".join(dict.fromkeys(_words(member) for member in types))


def _integer(node: inspect.IntType) -> str:
    if node.ge is not None and node.le == LARGEST:
        return f"an integer of at least {node.ge}, in 64 bits"
    if node.ge is not None and node.le is not None:
        return f"an integer from {node.ge} to {node.le}"
    return f"an integer of at least {node.ge}" if node.ge is not None else "an integer"


def _text(node: inspect.StrType) -> str:
    bounds = f" of at most {node.max_length} characters" if node.max_length is not None else ""
    return f"text{bounds}" + (f" that matches {node.pattern}" if node.pattern else "")


def _list(node: inspect.VarTupleType | inspect.ListType) -> str:
    low, high = node.min_length or 0, node.max_length
    size = f" of {low} to {high}" if high is not None else (f" of at least {low}" if low else "")
    each = _words(node.item_type)
    return f"a list{size}; each {each}" if each else f"a list{size}"
