"""Words for where wrong elements lie."""

from typing import Any

import numpy as np
import pytest

from kerneltrial.judge.patterns import describe, describe_values


def mask(shape: tuple[int, ...], *places: Any) -> np.ndarray[Any, np.dtype[np.bool_]]:
    wrong = np.zeros(shape, np.bool_)
    for place in places:
        wrong[place] = True
    return wrong


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (mask((5, 6)), ""),
        (mask((5, 6), np.s_[:]), "all elements"),
        (mask((5, 6), (2, 3)), "a single element"),
        (mask((29, 8), np.s_[24:]), "the last 5 rows (24 to 28, behind the last whole tile of 8)"),
        (mask((29, 8), np.s_[28:]), "the last row"),
        (mask((29, 8), np.s_[:3]), "the first 3 rows"),
        (mask((29, 40), np.s_[:, 32:]), "the last 8 columns (32 to 39, behind the last whole tile of 32)"),
        (mask((29, 40), np.s_[:, 37:]), "the last 3 columns (37 to 39)"),
        (
            mask((40, 43), np.s_[33:], np.s_[:, 36:]),
            "the last 7 rows (33 to 39) and the last 7 columns (36 to 42)",
        ),
        (mask((9, 9), *((i, i) for i in range(9))), "the diagonal"),
        (
            mask((9, 9), *((i, j) for i in range(9) for j in range(9) if i != j)),
            "all but the diagonal, as if rows and columns were swapped",
        ),
        (mask((9, 9), *((i, j) for i in range(9) for j in range(i))), "all below the diagonal"),
        (mask((9, 9), *((i, j) for i in range(9) for j in range(i, 9))), "the diagonal and all above it"),
        (mask((8, 96), np.s_[:, 30:32], np.s_[:, 62:64], np.s_[:, 94:]), "the last 2 columns of each tile of 32"),
        (mask((8, 90), np.s_[:, :3], np.s_[:, 32:35], np.s_[:, 64:67]), "the first 3 columns of each tile of 32"),
        (mask((96,), *(np.s_[i + 13 : i + 16] for i in range(0, 96, 16))), "the last 3 elements of each tile of 16"),
        (mask((40, 40), np.s_[16:32, 8:16]), "one block: rows 16 to 31 of 40 by columns 8 to 15 of 40"),
        (mask((8, 96), np.s_[:, 31::32]), "every 32nd column, from 31 (place 31 of tiles of 32)"),
        (mask((8, 96), (0, 31), (3, 63), (5, 95)), "only within every 32nd column, from 31 (place 31 of tiles of 32)"),
        (mask((100,), np.s_[96:]), "the last 4 elements, behind the last whole tile of 32"),
        (mask((100,), np.s_[:4]), "the first 4 elements"),
        (mask((100,), np.s_[10:20]), "one contiguous block, elements 10 to 19"),
        (mask((128,), np.s_[3::32]), "every 32nd element, from 3"),
        (mask((128,), 70, 75, 101), "3 of the last 58 elements"),
        (mask((128,), 1, 75, 102), "scattered: 3 of 128 elements, from 1 to 102"),
        (mask((2, 3, 4), np.s_[1]), "the last 3 rows (3 to 5)"),
    ],
)
def test_place(wrong: Any, words: str) -> None:
    assert describe(wrong) == words


def test_values() -> None:
    assert describe_values(np.zeros(4)) == "all of them zero"
    assert describe_values(np.full(4, 2.5)) == "all of them the same number"
    assert describe_values(np.array([1.0, 2.0])) == ""
