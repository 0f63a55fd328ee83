"""Files of one record a line: journal, chain and ledgers. Each line is in the one canonical form, or it was edited."""

from collections.abc import Iterator
from typing import TypeVar

from kerneltrial.records.record import Record
from kerneltrial.store.canonical import canonical, decode, digest

T = TypeVar("T", bound=Record)


class Chained(Record):
    """A line that holds the digest of the one before as `previous`, empty in the first."""

    previous: str


C = TypeVar("C", bound=Chained)


def lines(data: bytes, type_: type[T]) -> Iterator[tuple[int, bytes, T]]:
    """(number from 1, bytes with the line's end, value) of each line.

    Raises
    ------
    ValueError
        A line is none of `type_`, or says it in other bytes than were written: a blank or a line end that was
        changed makes no other value, and shall not go unseen for that.
    """
    for number, raw in enumerate(data.splitlines(keepends=True), start=1):
        try:
            value = decode(type_, raw)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from error
        if canonical(value) != raw:
            raise ValueError(f"line {number}: has other bytes than were written; it was edited")
        yield number, raw, value


def chained(data: bytes, type_: type[C]) -> list[C]:
    """The values of all lines, of which each holds the digest of the one before.

    Raises
    ------
    ValueError
        As `lines` does, and where a line does not follow the one before.
    """
    found, previous = list[C](), ""
    for number, raw, value in lines(data, type_):
        if value.previous != previous:
            raise ValueError(f"line {number}: does not follow the one before; a line was changed or removed")
        found.append(value)
        previous = digest(raw)
    return found
