"""A case: dimensions and values for one call; and the domain that the holdout is drawn from."""

from enum import Enum
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from kerneltrial.records.contract import Range
from kerneltrial.records.record import Count, Digest, Name, Positive, Record
from kerneltrial.records.residency import Residence


class Distribution(Enum):
    """How values of an input are drawn."""

    NORMAL = "normal"  # signed, mean 0, deviation 1
    OFFSET = "offset"  # large mean, small variance
    WIDE = "wide"  # exponents over a wide range
    TIES = "ties"  # few distinct values, and the contract's specials among them
    INTEGERS = "integers"  # exact: products and sums stay representable, and half or TF32 does not hold them
    ZEROS = "zeros"
    SMALL = "small"  # signed, mean 0, deviation 2^-7: what is added for safety, an epsilon, weighs there
    OUTLIERS = "outliers"  # normal, and a few up to a thousand times as large, at the beginning of lines too
    SMOOTH = "smooth"  # neighbours are near each other and arrays alike, as in pictures, with flat parts at both ends


class Generated(Record, tag_field="from", tag="generated"):
    """Values drawn from the case's seed."""

    distribution: Distribution = Distribution.NORMAL


class Stored(Record, tag_field="from", tag="file"):
    """Values from an `.npy` file beside the cases."""

    path: str
    sha256: Digest


InputSource = Generated | Stored


class Case(Record):
    """One shape, and where its inputs come from; inputs that are not named are generated.

    `residency` states, for a performance case, which arrays lie in the L2 when production calls the kernel: such calls
    are timed too, beside cold and warm ones. Arrays that are not named are cold, as is scratch. (Unset and not empty
    where nothing is stated, so that a case without it has the bytes that it always had.)
    """

    name: Name
    kind: Literal["correctness", "performance"]
    dimensions: dict[Name, Positive]
    seed: Count = 0
    inputs: dict[Name, InputSource] = msgspec.field(default_factory=dict)
    residency: dict[Name, Residence] | msgspec.UnsetType = msgspec.UNSET

    @property
    def warm(self) -> tuple[str, ...]:
        """Arrays that are stated as warm, by name."""
        stated = {} if isinstance(self.residency, msgspec.UnsetType) else self.residency
        return tuple(sorted(name for name, residence in stated.items() if residence == "warm"))


class Cases(Record):
    """The cases in view of everyone."""

    cases: Annotated[tuple[Case, ...], Meta(min_length=1, max_length=200)]


class HoldoutDomain(Record):
    """What sealed cases are drawn from: ranges of dimensions, and how many."""

    dimensions: dict[Name, Range]
    count: Annotated[int, Meta(ge=1, le=64)]
    distributions: tuple[Distribution, ...] = (Distribution.NORMAL, Distribution.OFFSET, Distribution.INTEGERS)
