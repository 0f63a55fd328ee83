"""The proposer `replay`: a trial's recorded replies drive it again. Nothing here can reach a network."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kerneltrial.propose.openai.exchange import Exchange, Exchanges, Request
from kerneltrial.propose.problem import ProposerProblem
from kerneltrial.store.canonical import builtins

_AROUND = 40


class Replay:
    """Answers from the folder of another trial's replies, or of this one's."""

    def __init__(self, folder: Path) -> None:
        self.exchanges = Exchanges(folder)

    def answer(self, request: Request) -> Exchange:
        """Return the recorded exchange of a request.

        Raises
        ------
        ProposerProblem
            There is none: the line holds the request's digest and the first field that differs from the recorded
            request that is most like it.
        """
        found = self.exchanges.find(request.digest)
        if found is not None:
            return found
        recorded = [exchange.request for exchange in self.exchanges.all()]
        if not recorded:
            raise ProposerProblem("proposer replay: the folder holds no reply; name one such as results/TRIAL/replies")
        raise ProposerProblem(
            f"proposer replay: no reply is recorded for request {request.digest}; {_nearest(request, recorded)}; "
            "replay the trial as it was recorded, or ask a model by `proposer: openai`"
        )


def _nearest(request: Request, recorded: list[Request]) -> str:
    """The first field that differs from the recorded request that agrees with this one the longest."""
    asked = list(_fields(builtins(request)))
    best, told = -1, ""
    for other in recorded:
        agreed, place = first_difference(asked, list(_fields(builtins(other))))
        if agreed > best:
            best, told = agreed, f"the recorded request {other.digest[:12]} differs first in {place}"
    return told


def first_difference(asked: list[tuple[str, Any]], recorded: list[tuple[str, Any]]) -> tuple[int, str]:
    """Return how many characters agree before the first difference, and the difference in words."""
    agreed = 0
    for (path, now), (other_path, then) in zip(asked, recorded, strict=False):
        if path != other_path:
            return agreed, f"{min(path, other_path)}, which only one of them has"
        if now == then:
            agreed += len(str(now))
            continue
        if not (isinstance(now, str) and isinstance(then, str)):
            return agreed, f"{path}: recorded {then!r}, now {now!r}"
        same = next((i for i, (a, b) in enumerate(zip(now, then, strict=False)) if a != b), min(len(now), len(then)))
        start = max(0, same - 10)
        pieces = (text[start : same + _AROUND] for text in (then, now))
        was, is_now = pieces
        return agreed + same, f"{path} at character {same}: recorded {was!r}, now {is_now!r}"
    return agreed, "the number of its fields"


def _fields(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key in sorted(value):
            yield from _fields(value[key], f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _fields(item, f"{path}[{number}]")
    else:
        yield path, value
