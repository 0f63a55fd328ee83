"""Which part of the contract's domain was tried: the largest dimensions that ran, and the values that were drawn."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from kerneltrial.inputs.dtypes import is_float
from kerneltrial.inputs.specials import kinds_of
from kerneltrial.inputs.values import distribution_of
from kerneltrial.records.case import Case
from kerneltrial.records.contract import Array, Range, Special
from kerneltrial.records.lock import Lock
from kerneltrial.records.validation import CaseVerdict
from kerneltrial.report import words

# Powers of two between which drawn floats lie that no bound of the contract moves, but for zero and rare small values
# of a normal distribution; the tests draw from `inputs.distributions` and compare.
DRAWN = {"float16": (-14, 9), "bfloat16": (-20, 20), "float32": (-20, 20), "float64": (-60, 60)}
SPECIALS: dict[Special, str] = {
    "nan": "NaN",
    "inf": "infinity",
    "-inf": "minus infinity",
    "subnormal": "subnormals",
    "huge": "numbers near the largest",
    "-0": "negative zero",
}
# Drawn integers that no bound moves lie this near to zero.
DRAWN_INTEGERS = 2**15


def domain_tried(lock: Lock, verdicts: Sequence[CaseVerdict], whose: str) -> Iterator[str]:
    """What `verdicts` (of `whose` runs) and the lock say of dimensions and values that were not tried."""
    short = [
        f"{largest:,} of {most:,} for {name}"
        for name, span in lock.contract.dimensions.items()
        if (largest := _largest(name, verdicts)) < (most := _maximum(span))
    ]
    if short:
        yield (
            f"That a kernel is right in the largest shapes that the contract allows. The largest that ran of {whose}, "
            f"in public cases, boundary shapes and far ones: {words.listed(short)}. Sealed cases go no further."
        )
    if any(_is_far(verdict, lock) for verdict in verdicts):
        yield (
            "That a kernel is right where several dimensions are large at once. Beyond the public cases each dimension "
            "was tried alone, beside small ones and with one draw of values."
        )
    yield from _values(lock)


def _is_far(verdict: CaseVerdict, lock: Lock) -> bool:
    """Whether a dimension is larger than in every public case."""
    return verdict.draws == 1 and any(
        size > max(case.dimensions.get(name, 0) for case in lock.cases.cases)
        for name, size in verdict.dimensions.items()
    )


def _largest(name: str, verdicts: Sequence[CaseVerdict]) -> int:
    return max((verdict.dimensions.get(name, 0) for verdict in verdicts if verdict.draws), default=0)


def _maximum(span: Range) -> int:
    return span.maximum // span.multiple_of * span.multiple_of


def _values(lock: Lock) -> Iterator[str]:
    """How inputs were drawn, and which values no draw has."""
    contract = lock.contract
    inputs = [replace(a, specials=kinds_of(a, contract)) for a in contract.arrays if a.role != "output"]
    if not inputs:
        return
    yield (
        f"That a kernel is right for every value. Values of inputs were {_sources(lock, inputs)}"
        f"{_within(inputs)}{_special(inputs)}. Not tried on purpose: {words.listed(_untried(inputs))}."
    )


def _sources(lock: Lock, inputs: Sequence[Array]) -> str:
    """The distributions by name, and whether files were read; boundary shapes draw as a case without sources does."""
    boundary = Case(name="boundary", kind="correctness", dimensions={})
    found = [
        distribution_of(case, draw, array.name)
        for draw in range(lock.protocol.draws_per_case)
        for case in (*lock.cases.cases, boundary)
        for array in inputs
    ]
    names = list(dict.fromkeys(distribution.value for distribution in found if distribution))
    drawn = f"drawn from the distributions named {words.listed(names)}"
    return f"{drawn}, or read from files" if None in found else drawn


def _within(inputs: Sequence[Array]) -> str:
    if all(_bounded(array) for array in inputs):
        return ", within the contract's low and high"
    if all(array.low is None and array.high is None for array in inputs):
        return ", and are of moderate size, since the contract gives no low and high"
    return ", within the contract's low and high, and of moderate size where it lacks one"


def _special(inputs: Sequence[Array]) -> str:
    """Which values beside plain numbers one draw of each case has."""
    tried = [kind for kind in SPECIALS if any(kind in array.specials for array in inputs)]
    return f"; in the draws named ties some are {words.listed([SPECIALS[kind] for kind in tried])}" if tried else ""


def _untried(inputs: Sequence[Array]) -> list[str]:
    """Values that no generated input has; of what is not bounded, those too large or too small."""
    floats = [array for array in inputs if is_float(array.dtype)]
    missing = [kind for kind in SPECIALS if kind != "huge" and any(kind not in array.specials for array in floats)]
    found = [SPECIALS[kind] for kind in missing]
    for dtype in dict.fromkeys(array.dtype for array in floats if not _bounded(array)):
        low, high = DRAWN[dtype]
        apart = "zero and the special values apart" if len(missing) < len(SPECIALS) - 1 else "zero apart"
        found.append(f"magnitudes of {dtype} outside about 2^{low} to 2^{high}, {apart}")
    if any(not _bounded(array) for array in inputs if not is_float(array.dtype)):
        found.append(
            f"integers further than {DRAWN_INTEGERS:,} from zero, but in draws called wide: these take the whole type"
        )
    return found or ["the ends of the contract's bounds"]


def _bounded(array: Array) -> bool:
    return array.low is not None and (array.high is not None or array.below is not None)
