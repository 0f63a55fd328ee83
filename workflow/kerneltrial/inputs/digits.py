"""Sizes drawn so that every number of binary digits is as likely: small ones, where guards matter, are no rarer."""

import math

import numpy as np

from kerneltrial.records.contract import Range


def step_of(span: Range, whole: Range) -> int:
    """What sizes are multiples of, by a domain and by the contract."""
    return math.lcm(span.multiple_of, whole.multiple_of)


def drawn(span: Range, whole: Range, rng: np.random.Generator) -> int:
    """Choose a number of binary digits evenly, then a value with so many evenly: whole numbers all the way."""
    step = step_of(span, whole)
    least, most = -(-span.minimum // step), span.maximum // step
    digits = int(rng.integers(least.bit_length(), most.bit_length(), endpoint=True))
    low, high = max(least, 2 ** (digits - 1)), min(most, 2**digits - 1)
    return step * int(rng.integers(low, high, endpoint=True))
