"""YAML's syntax with JSON's types.

PyYAML follows YAML 1.1, where ``1e-5`` is a string, ``no`` a boolean and ``2026-12-01`` a date. Here a plain scalar is
null, true, false, an integer, a decimal number (`Decimal`, so that ``0.1`` stays one tenth) or a string, as in JSON.
"""

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import yaml

from kerneltrial.inputs.problem import InputProblem

MAXIMUM_DEPTH = 40
_OCTAL = re.compile(r"^-?0[0-9]+$")
_FLOAT = re.compile(r"^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$")


def parsed(text: str) -> Any:
    """Return YAML text in JSON types; raises `InputProblem` with line and column."""
    try:
        loader = _JsonLoader(text)
    except yaml.reader.ReaderError as fault:
        raise InputProblem(f"holds the control character {fault.character:#04x}") from None
    try:
        return loader.get_single_data()
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        said = str(fault.problem or fault.context)
        raise InputProblem(f"{where}{said}{_what_to_do(said)}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as fault:
        raise InputProblem(f"is no valid YAML ({type(fault).__name__})") from None
    finally:
        loader.dispose()


class _JsonLoader(yaml.SafeLoader):
    """YAML's syntax with JSON's types."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        peek: Callable[[], yaml.Event] = self.peek_event
        if self.check_event(yaml.AliasEvent):
            raise _problem(peek().start_mark, "aliases (*name) are not allowed; write it out")
        if self.depth >= MAXIMUM_DEPTH:
            raise _problem(peek().start_mark, f"is nested more than {MAXIMUM_DEPTH} deep")
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def require_one_reading(text: str) -> None:
    """Refuse plain words that YAML 1.1, as Snakemake reads it, takes for something else than `parsed` does.

    ``no`` is false there and a text here, ``010`` is 8 and 10. Raises `InputProblem` with line and column.
    """
    nodes = [yaml.compose(text, Loader=yaml.SafeLoader)]
    while nodes:
        node = nodes.pop()
        if isinstance(node, yaml.MappingNode):
            nodes += [value for _, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            nodes += node.value
        elif isinstance(node, yaml.ScalarNode) and node.style is None:
            kind, word = node.tag.rpartition(":")[2], node.value
            twofold = kind == "bool" and word.lower() not in ("true", "false")
            if twofold or (kind == "int" and (word[:1] == "+" or word.lstrip("-0123456789") or _OCTAL.match(word))):
                instead = "true or false" if twofold else "digits alone, without a leading zero"
                where = f"line {node.start_mark.line + 1}, column {node.start_mark.column + 1}"
                told = f"{word} has two readings in YAML; write {instead}, or put quotes around it where it is a text"
                raise InputProblem(f"{where}: {told}")


def _what_to_do(said: str) -> str:
    """PyYAML speaks of its parser; what a person did is mostly one of these."""
    if "'\\t'" in said:
        return "; indent by spaces"
    if "block end" in said or "'<block mapping start>'" in said:
        return "; is this line, or the one above it, indented as its neighbours are?"
    if "mapping values are not allowed" in said:
        return "; put quotes around a text that holds ': '"
    if "',' or" in said or "flow" in said:
        return "; close each bracket, part entries by commas, and quote a text that holds any of [ ] { } ,"
    if "could not find expected ':'" in said:
        return "; each line is KEY: VALUE, the one above this too"
    return ""


def _problem(mark: Any, what: str) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, what, mark)


def _decimal(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Decimal:
    return Decimal(loader.construct_scalar(node))


def _integer(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    return int(loader.construct_scalar(node))


def _mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str):
            shown = key_node.value if isinstance(key_node, yaml.ScalarNode) else "a collection"
            raise _problem(key_node.start_mark, f"the key {shown} must be text")
        if key in found:
            raise _problem(key_node.start_mark, f"the key {key!r} stands twice; keep one")
        found[key] = loader.construct_object(value_node, deep=True)
    return found


def _refuse(loader: yaml.SafeLoader, node: yaml.Node) -> Any:
    raise _problem(node.start_mark, f"the tag {node.tag} is not allowed")


_JsonLoader.yaml_implicit_resolvers = {}
_JsonLoader.yaml_constructors = {
    f"tag:yaml.org,2002:{kind}": yaml.SafeLoader.yaml_constructors[f"tag:yaml.org,2002:{kind}"]
    for kind in ("null", "bool", "str", "seq")
}
_JsonLoader.add_constructor("tag:yaml.org,2002:int", _integer)
_JsonLoader.add_constructor("tag:yaml.org,2002:float", _decimal)
_JsonLoader.add_constructor("tag:yaml.org,2002:map", _mapping)
_JsonLoader.add_constructor(None, _refuse)
_JsonLoader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"^(null|~|)$"), ["n", "~", ""])
_JsonLoader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(true|false)$"), ["t", "f"])
_JsonLoader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"^-?[0-9]{1,40}$"), list("-0123456789"))
_JsonLoader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-0123456789"))
