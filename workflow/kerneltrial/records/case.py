"""A case: dimensions and values for one call; and the domain that the holdout is drawn from."""

from enum import Enum
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from kerneltrial.records.contract import Range
from kerneltrial.records.record import Count, Digest, Name, Positive, Record


class Distribution(Enum):
    """How values of an input are drawn."""

    NORMAL = "normal"  # signed, mean 0, deviation 1
    OFFSET = "offset"  # large mean, small variance
    WIDE = "wide"  # exponents over a wide range
    TIES = "ties"  # few distinct values, and the contract's specials among them
    INTEGERS = "integers"  # exact: products and sums stay representable, and half or TF32 does not hold them
    ZEROS = "zeros"


class Generated(Record, tag_field="from", tag="generated"):
    """Values drawn from the case's seed."""

    distribution: Distribution = Distribution.NORMAL


class Stored(Record, tag_field="from", tag="file"):
    """Values from an `.npy` file beside the cases."""

    path: str
    sha256: Digest


InputSource = Generated | Stored


class Case(Record):
    """One shape, and where its inputs come from; inputs that are not named are generated."""

    name: Name
    kind: Literal["correctness", "performance"]
    dimensions: dict[Name, Positive]
    seed: Count = 0
    inputs: dict[Name, InputSource] = msgspec.field(default_factory=dict)


class Cases(Record):
    """The cases in view of everyone."""

    cases: Annotated[tuple[Case, ...], Meta(min_length=1, max_length=200)]


class HoldoutDomain(Record):
    """What sealed cases are drawn from: ranges of dimensions, and how many."""

    dimensions: dict[Name, Range]
    count: Annotated[int, Meta(ge=1, le=64)]
    distributions: tuple[Distribution, ...] = (Distribution.NORMAL, Distribution.OFFSET, Distribution.INTEGERS)
