"""Secrets and this host's paths are taken out of everything that goes to a model or a program."""

import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

SECRET = "[secret]"
_NAMES = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
_SHORTEST = 12  # a shorter value would be found in ordinary text
_SHAPES = (
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----[^`]*?-----END [A-Z ]*PRIVATE KEY-----"),  # within one quotation
    re.compile(r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}"),
    re.compile(r"\bgh[pousr]_[A-Za-z0-9]{20,}"),
    re.compile(r"\bAKIA[A-Z0-9]{16}\b"),
    re.compile(r"\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+"),
    re.compile(r"(?<=://)[^/@\s:]+:[^/@\s]+(?=@)"),  # user and password of an address
    re.compile(r"(?<=[Bb]earer )[A-Za-z0-9._~+/-]{12,}=*"),
)
# absolute paths below the roots that hosts use; what is kept is the file's own name
_PATH = re.compile(
    r"(?<![\w.>)\]])/(?:home|root|Users|tmp|var|opt|mnt|srv|usr|etc|data|work|scratch|proc)(?:/[\w.+@-]+)+"
)


def scrub(text: str, folders: Iterable[Path] = (), environment: Mapping[str, str] | None = None) -> str:
    """Return `text` without secrets and without absolute paths.

    `folders` are replaced by `<trial>`; other absolute paths keep their last part, as `<path>/name`.
    """
    held = os.environ if environment is None else environment
    secrets = {value for name, value in held.items() if _NAMES.search(name) and len(value) >= _SHORTEST}
    for value in sorted(secrets, key=len, reverse=True):
        text = text.replace(value, SECRET)
    for shape in _SHAPES:
        text = shape.sub(SECRET, text)
    known = {str(folder): "<trial>" for folder in folders} | {sys.prefix: "<python>", sys.base_prefix: "<python>"}
    for path, word in sorted(known.items(), key=lambda item: -len(item[0])):
        if len(path) > 1:
            text = text.replace(path, word)
    return _PATH.sub(lambda found: "<path>/" + found[0].rsplit("/", 1)[1], text)
