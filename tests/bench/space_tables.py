"""Tables of whole search spaces, measured once on a card: how they are kept, and how a search may look things up.

A table is one gzip file of JSON, with the space's parameters and, for each configuration, what the compiler reported
and how long one call took in each performance case, or why there is no time. `tests/tables/` holds those that tests
read; `space_on_gpu.py` makes them. Where a shipped space changes and is not measured again, the space as it was
measured (space.yaml and its template) goes to `tests/tables/spaces/NAME/`, and the table stands for the search alone.
"""

import gzip
import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

Microseconds = Annotated[float, Meta(gt=0)]


class Row(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One configuration: parameters in the table's order, the compiler's report, and times or why there are none.

    `us` are microseconds of one warm call by performance case, as all configurations were timed, one after the other.
    `again_us` are those of the best, timed once more in random order within rounds; empty for the rest. `wrong` is
    empty where the configuration compiles and agrees with the oracle on every case.
    Where `registers` is 0, the compiler told none.
    """

    parameters: tuple[int, ...]
    registers: int
    spilled_bytes: int
    shared_bytes: int
    us: tuple[Microseconds, ...] = ()
    again_us: tuple[Microseconds, ...] = ()
    wrong: str = ""


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A measured space. `space` is the digest of its template and file; `told` says how it was measured."""

    problem: str
    space: str
    device: str
    cases: tuple[dict[str, int], ...]
    parameters: tuple[str, ...]
    rows: tuple[Row, ...]
    told: dict[str, str]

    def latencies(self) -> dict[tuple[int, ...], float]:
        """Geometric mean over the cases in microseconds, by configuration; what is wrong is absent.

        What was timed twice has its second, better figure, brought to the first pass by the median ratio of the two.
        """
        twice = [_mean(row.us) / _mean(row.again_us) for row in self.rows if row.us and row.again_us]
        drift = statistics.median(twice) if twice else 1.0
        return {
            row.parameters: _mean(row.again_us) * drift if row.again_us else _mean(row.us)
            for row in self.rows
            if row.us and not row.wrong
        }

    def reports(self) -> dict[tuple[int, ...], Row]:
        """Every row by its configuration."""
        return {row.parameters: row for row in self.rows}


def _mean(values: Sequence[float]) -> float:
    return math.exp(statistics.mean(math.log(value) for value in values))


def write_table(path: Path, table: Table) -> None:
    """Write a table; equal tables give equal bytes."""
    path.write_bytes(gzip.compress(msgspec.json.encode(table), compresslevel=9, mtime=0))


def read_table(path: Path) -> Table:
    """Read a table; raises ValueError where the file is none."""
    try:
        return msgspec.json.decode(gzip.decompress(path.read_bytes()), type=Table)
    except (OSError, msgspec.MsgspecError) as fault:
        raise ValueError(f"{path}: is no table of a space ({fault})") from None


def parameters_of(table: Table, row: Row) -> Mapping[str, int]:
    """A row's parameters by name."""
    return dict(zip(table.parameters, row.parameters, strict=True))
