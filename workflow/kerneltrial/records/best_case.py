"""One case of a trial's winner in a file that can be run again by itself: reports/TRIAL/best-case-N.json."""

from typing import Annotated

from msgspec import Meta

from kerneltrial.records.candidate import Language
from kerneltrial.records.case import Case
from kerneltrial.records.contract import Contract
from kerneltrial.records.plan import DType, LaunchPlan
from kerneltrial.records.record import Count, Digest, Name, Positive, Record


class ExpectedOutput(Record):
    """Right values of one output at some of its elements.

    Fields
    ------
    dtype, shape
        Of the whole output, as the contract has them at the case's dimensions.
    places
        Row-major positions of the elements: all of a small output, else evenly spread ones.
    want
        The oracle's value at each place: of floats 15 significant digits, nan, inf or -inf; of integers all digits.
    allowed
        The largest error allowed at each place, absolute, by the contract's tolerance. 0 for integers.
    """

    dtype: DType
    shape: tuple[Count, ...]
    places: tuple[Count, ...]
    want: tuple[str, ...]
    allowed: tuple[str, ...]


class BestCase(Record):
    """The winner on the case's own values (draw 0): everything that a run of it needs, and what must come out.

    Fields
    ------
    schema_version
        Of this file; 1.
    trial, candidate, oracle
        The trial, the winner's id, and the digest of the oracle's file that gave `expected`.
    language, source, plan
        The winner: its source as text, and how it is launched.
    contract, case
        What it computes; dimensions, seed and distributions of the case.
    inputs
        Digest of each input's bytes. They are drawn from the case's seed by `numpy` of the version named, or read from
        the `.npy` files that the case names, which lie beside the trial's cases.
    expected
        By output.
    """

    schema_version: Annotated[int, Meta(ge=1, le=1)]
    trial: Name
    candidate: Digest
    oracle: Digest
    language: Language
    source: str
    plan: LaunchPlan
    contract: Contract
    case: Case
    numpy: str
    inputs: dict[Name, Digest]
    expected: dict[Name, ExpectedOutput]


PLACES: Positive = 256
"""How many elements of an output are kept at most."""
