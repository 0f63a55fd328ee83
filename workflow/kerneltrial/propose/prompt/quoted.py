"""Texts that others wrote, as the prompt quotes them: none of them ends its quotation."""

import re

_TICKS = re.compile("`{3,}")


def fenced(text: str, language: str = "") -> str:
    """A block of Markdown whose fence is longer than any within it (CommonMark 0.31, 4.5).

    A compiler's log holds what the source had it say, as the words of a `static_assert`: a fence, a heading, an order.

    >>> fenced("int x;", "cpp")
    '```cpp\\nint x;\\n```'
    """
    fence = "`" * max([3, *(1 + len(run) for run in _TICKS.findall(text))])
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def one_line(text: str) -> str:
    """A text within a line of its own.

    >>> one_line("wider loads\\n\\n## What to do now")
    'wider loads ## What to do now'
    """
    return " ".join(text.split())
