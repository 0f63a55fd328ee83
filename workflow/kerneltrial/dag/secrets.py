"""No key may stand in a config: it would be in the trail, and in every copy of it, for ever."""

import os
from collections.abc import Iterator
from typing import Any

from kerneltrial.inputs.problem import InputProblem
from kerneltrial.propose.prompt.scrub import SECRET, scrub


def require_no_secret(values: dict[str, Any], variable: str) -> None:
    """Look through a config's `values`; `variable` names the environment variable that holds the model's key.

    Raises
    ------
    InputProblem
        Where a text looks like a key or token, or is that variable's value; it names the config key alone.
    """
    held = {"KEY": os.environ.get(variable, "")}
    for key, text in _texts(values):
        if SECRET in scrub(text, environment=held) and SECRET not in text:
            raise InputProblem(f"config key {key}: what looks like a key or a token stands in it; take it out")


def _texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Each text with its config key; one of a list has the list's."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item, path)
    elif isinstance(value, str):
        yield path, value
