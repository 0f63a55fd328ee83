"""Right values at some places, kept as text and compared again."""

from decimal import Decimal

import numpy as np
import pytest

from kerneltrial.judge.compare import Expected
from kerneltrial.judge.kept import kept, share_of_bound
from kerneltrial.records.best_case import PLACES
from kerneltrial.records.contract import Tolerance
from kerneltrial.records.plan import DType
from kerneltrial.store.canonical import canonical, decode


def expected(want: np.ndarray, dtype: DType = "float32", relative: str = "1e-6") -> Expected:
    return Expected("y", dtype, want, None, Tolerance(relative=Decimal(relative)))


def test_all_of_a_small_output_is_kept_and_of_a_large_one_its_first_last_and_some_between() -> None:
    small, large = (kept(expected(np.arange(1.0, n + 1).reshape(1, n))) for n in (7, 100_000))
    assert small.places == tuple(range(7))
    assert (len(large.places), large.places[0], large.places[-1]) == (PLACES, 0, 99_999)
    assert small.want == ("1", "2", "3", "4", "5", "6", "7")
    assert decode(type(small), canonical(small)) == small


def test_an_error_is_measured_in_what_is_allowed() -> None:
    want = np.array([1.0, 2.0, -4.0])
    told = kept(expected(want))
    share, wrong = share_of_bound(want * (1 + 0.5e-6), told)
    assert (share, wrong) == (pytest.approx(0.5, rel=1e-3), 0)
    assert share_of_bound(np.array([1.0, 2.1, -4.0]), told)[1] == 1


@pytest.mark.parametrize("got", [0.0, np.inf, np.nan])
def test_special_values_stand_exactly_where_they_should(got: float) -> None:
    want = np.array([np.nan, np.inf, -np.inf, 1.0])
    told = kept(expected(want))
    assert told.want[:3] == ("nan", "inf", "-inf")
    assert share_of_bound(want, told) == (0.0, 0)
    for place in range(4):
        other = want.copy()
        other[place] = got
        same = other[place] == want[place] or (np.isnan(got) and np.isnan(want[place]))
        assert share_of_bound(other, told)[1] == (0 if same else 1)


def test_integers_are_equal_to_the_last_digit() -> None:
    want = np.array([2**62 + 1, -3], np.int64)
    told = kept(expected(want, "int64", "0"))
    assert share_of_bound(want, told) == (0.0, 0)
    assert share_of_bound(np.array([2**62, -3], np.int64), told) == (1.0, 1)


def test_what_must_be_equal_and_is_has_no_error() -> None:
    """A right float32 has more digits than its text: it is no error where nothing is allowed."""
    want = np.array([1 / 3, 0.1], np.float32).astype(np.float64)
    told = kept(expected(want, "float32", "0"))
    assert share_of_bound(want, told) == (0.0, 0)
    assert share_of_bound(np.nextafter(want.astype(np.float32), np.float32(9)).astype(np.float64), told)[1] == 2
