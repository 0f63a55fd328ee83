"""Text that names things from evidence, as it is printed: nothing in it steers a terminal or begins a line."""

import unicodedata
from pathlib import Path


def printed(text: str) -> str:
    """Escape every character that is not printable: control and format characters, line breaks, surrogates."""
    return text if text.isprintable() else "".join(c if _shows(c) else ascii(c)[1:-1] for c in text)


def _shows(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == "Zs"  # wide and unbroken spaces of a text


def fault_of_ours(fault: BaseException) -> str:
    """The one line on an exception that nothing caught."""
    what = printed(" ".join(f"{type(fault).__name__}: {fault}".split()))
    return f"a fault of kerneltrial ended it ({what}); please report it with the trace that was printed above"


def as_named(line: str) -> str:
    """What is wrong, with files named as a person in the present folder names them."""
    return line.replace(f"{Path.cwd()}/", "")
