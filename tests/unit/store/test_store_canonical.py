"""Equal values have equal bytes; what cannot be written exactly is refused."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerneltrial.records.record import Interval
from kerneltrial.store.canonical import canonical, decimal_text, decode

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_canonical_bytes_survive_a_round_trip(value):
    data = canonical(value)
    assert canonical(decode(object, data)) == data


@given(st.dictionaries(st.text(), st.integers(-5, 5), min_size=2))
def test_the_order_of_keys_does_not_matter(value):
    assert canonical(dict(reversed(value.items()))) == canonical(value)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**9), max_value=10**9))
def test_a_decimal_has_one_form_and_keeps_its_value(value):
    text = decimal_text(value)
    assert Decimal(text) == value
    assert decimal_text(Decimal(text)) == text
    assert "E" not in text
    assert text != "-0"


@pytest.mark.parametrize(
    ("text", "form"), [("1.50", "1.5"), ("-0.00", "0"), ("1E+3", "1000"), ("0.000001", "0.000001")]
)
def test_the_normal_form_of_decimals(text, form):
    assert decimal_text(Decimal(text)) == form


@pytest.mark.parametrize(
    "bad", [float("nan"), float("inf"), Decimal("NaN"), Decimal("1e999999999"), Decimal("1e-999999999")]
)
def test_what_is_not_a_number_is_refused(bad):
    with pytest.raises(ValueError):
        canonical({"x": bad})


def test_a_record_refuses_unknown_and_missing_fields():
    good = canonical(Interval(low=1.0, middle=2.0, high=3.0, confidence=0.95))
    assert decode(Interval, good).middle == 2.0
    missing, more, text = b'{"low":1.0}', good.replace(b"}", b',"more":1}'), good.replace(b"2.0", b'"2"')
    for bad in (missing, more, text):
        with pytest.raises(ValueError):
            decode(Interval, bad)
