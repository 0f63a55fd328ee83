"""Quantiles of Student's t, from the incomplete beta function: exact to about 1e-12, without importing scipy (2 s)."""

from functools import lru_cache
from math import exp, floor, inf, lgamma, log, log1p, log2, sqrt
from statistics import NormalDist

_TINY = 1e-300
_STEPS = 10_000
_NEWTON = 20
_NEAR = 2.0**-36  # how wide a cell is, of its place: far wider than the noise of what is compared


@lru_cache(maxsize=1024)
def student_t(probability: float, freedom: int) -> float:
    """The value that Student's t with `freedom` degrees of freedom stays under with `probability` (0 < p < 1).

    >>> round(student_t(0.975, 4), 9)
    2.776445105
    """
    if not 0 < probability < 1 or freedom < 1:
        raise ValueError(f"no t quantile for probability {probability} and {freedom} degrees of freedom")
    if probability == 0.5:
        return 0.0
    if probability < 0.5:
        return -student_t(1 - probability, freedom)
    tail = 2 * (1 - probability)  # of both sides: I_x(v/2, 1/2) with x = v / (v + t^2); NIST DLMF 8.17
    low, high = _cell(freedom / 2, tail)
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if incomplete_beta(freedom / 2, 0.5, middle) < tail else (low, middle)
    x = (low + high) / 2
    return sqrt(freedom * (1 - x) / x) if x > 0 else inf


def _cell(a: float, tail: float) -> tuple[float, float]:
    """One of the halves of halves of 0 to 1 that bisection comes to as well: that around what Newton's method finds.

    The quantile is that of bisection to the last bit, whatever Newton finds: where the tail is not in its cell, all of
    0 to 1 is given.
    """
    beta = exp(lgamma(a) + lgamma(0.5) - lgamma(a + 0.5))
    x = exp(-((NormalDist().inv_cdf(tail / 2) * (16 * a + 3) / (16 * a + 1)) ** 2) / (2 * a))  # Wallace (1959)
    for _ in range(_NEWTON):
        share = incomplete_beta(a, 0.5, x)
        if not (0 < x < 1 and share > _TINY):
            return 0.0, 1.0
        step = share * log(share / tail) * beta * sqrt(1 - x) / x**a  # log I by log x is nearly a line
        x *= exp(-step)
        if abs(step) < _NEAR / 8:
            break
    width = 2.0 ** floor(log2(x * _NEAR)) if 0 < x < 1 else 1.0
    low = floor(x / width) * width
    inside = incomplete_beta(a, 0.5, low) < tail <= incomplete_beta(a, 0.5, low + width)
    return (low, low + width) if inside else (0.0, 1.0)


def student_t_below(value: float, freedom: int) -> float:
    """The probability that Student's t with `freedom` degrees of freedom is below `value`.

    >>> round(student_t_below(2.776445105, 4), 9)
    0.975
    """
    tail = incomplete_beta(freedom / 2, 0.5, freedom / (freedom + value * value)) / 2
    return tail if value < 0 else 1 - tail


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b), by its continued fraction (NIST DLMF 8.17.22, Lentz)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):  # where the fraction converges slowly its mirror image converges fast
        return 1 - incomplete_beta(b, a, 1 - x)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)) / a
    return front * _fraction(a, b, x)


def _fraction(a: float, b: float, x: float) -> float:
    """By Lentz's method; a denominator that would be zero is `_TINY`. Written out, as a forecast asks 10,000 times."""
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > _TINY else _TINY)
    value = d
    for m in range(1, _STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 + even * d
        d = 1 / (d if abs(d) > _TINY else _TINY)
        c = 1 + even / c
        c = c if abs(c) > _TINY else _TINY
        value *= d * c
        d = 1 + odd * d
        d = 1 / (d if abs(d) > _TINY else _TINY)
        c = 1 + odd / c
        c = c if abs(c) > _TINY else _TINY
        change = d * c
        value *= change
        if abs(change - 1) < 1e-15:
            return value
    raise ArithmeticError(f"incomplete beta did not converge at {a}, {b}, {x}")
