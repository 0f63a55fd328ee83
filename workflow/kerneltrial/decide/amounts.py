"""Decimals for money, hours and months: how they are made from measured floats, rounded and put into words."""

from contextlib import AbstractContextManager
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal, localcontext

US_PER_HOUR = Decimal(3_600_000_000)
MS_PER_HOUR = Decimal(3_600_000)
S_PER_HOUR = Decimal(3600)
_CENT = Decimal("0.01")
_MICRO = Decimal("0.000001")


def exactly() -> AbstractContextManager[Context]:
    """A context wide enough that sums and products of records' figures lose nothing that is shown."""
    return localcontext(Context(prec=80, rounding=ROUND_HALF_EVEN))


def decimal(value: float) -> Decimal:
    """The decimal that a measured float prints as, so that 1.02 is 1.02."""
    return Decimal(repr(float(value)))


def rounded(value: Decimal) -> Decimal:
    """To a millionth (of a dollar, an hour, a month): what records hold."""
    with exactly():
        return value.quantize(_MICRO)


def ceiling(value: Decimal) -> int:
    """The least whole number that is not below `value`."""
    with exactly():
        return int(value.to_integral_value(rounding=ROUND_CEILING))


def usd(value: Decimal) -> str:
    """Dollars in words.

    >>> usd(Decimal("1234.5")), usd(Decimal("0.003")), usd(Decimal("-2")), usd(Decimal(0))
    ('$1,234.50', 'under $0.01', '−$2.00', '$0.00')
    """
    if 0 < value < _CENT:
        return "under $0.01"
    with exactly():
        cents = value.quantize(_CENT)
    return ("−" if cents < 0 else "") + f"${abs(cents):,}"


def number(value: Decimal | float, digits: int = 3) -> str:
    """A plain number with about `digits` significant digits, thousands separated, no exponent.

    >>> number(Decimal("1234567")), number(0.001234), number(12.0), number(Decimal("-3.14159"))
    ('1,234,567', '0.00123', '12.0', '−3.14')
    """
    exact = value if isinstance(value, Decimal) else decimal(value)
    places = max(digits - 1 - exact.adjusted(), 0) if exact else 0
    with exactly():
        shown = exact.quantize(Decimal(1).scaleb(-places))
    return ("−" if shown < 0 else "") + f"{abs(shown):,f}"


def plain(value: Decimal) -> str:
    """A figure that a person set, as it was set.

    >>> plain(Decimal("12.00")), plain(Decimal("1.5")), plain(Decimal("1E+3"))
    ('12', '1.5', '1000')
    """
    shown = format(value, "f")
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def factor(value: float) -> str:
    """A speedup or a ratio.

    >>> factor(1.2345)
    '1.234×'
    """
    return f"{value:.3f}×"


def percent(value: Decimal) -> str:
    """A fraction as per cent.

    >>> percent(Decimal("0.02")), percent(Decimal("0.125"))
    ('2 %', '12.5 %')
    """
    with exactly():
        return f"{plain(value * 100)} %"


def plural(count: int, one: str, many: str = "") -> str:
    """A count with its noun.

    >>> plural(1, "case"), plural(1200, "case"), plural(2, "try", "tries")
    ('1 case', '1,200 cases', '2 tries')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"
