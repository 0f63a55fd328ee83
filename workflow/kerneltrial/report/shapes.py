"""The shape of a case in a few characters, its dimensions in the order in which the contract's arrays name them."""

import re
from collections.abc import Mapping, Sequence

from kerneltrial.records.contract import Array, Contract

_NAME = re.compile(r"[A-Za-z_]\w*")


def dimensions(contract: Contract) -> tuple[str, ...]:
    """Names of dimensions in the order of the call: those passed by value, then those of the arrays' shapes."""
    passed = [a.name for a in contract.arguments if not isinstance(a, Array) and a.name in contract.dimensions]
    shapes = " ".join(text for a in contract.arguments if isinstance(a, Array) for text in a.shape)
    named = [name for name in _NAME.findall(shapes) if name in contract.dimensions]
    return tuple(dict.fromkeys([*passed, *named, *sorted(contract.dimensions)]))


def shaped(sizes: Mapping[str, int], order: Sequence[str] = ()) -> str:
    """One short text.

    >>> shaped({"k": 29, "m": 31, "n": 37}, ("m", "n", "k"))
    'm\xa031 · n\xa037 · k\xa029'
    """
    names = [*(name for name in order if name in sizes), *sorted(set(sizes) - set(order))]
    return " · ".join(f"{name}\u00a0{sizes[name]}" for name in names)
