"""Where wrong elements lie, in words: the shape of a mistake often names it."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]

_TILES: Final = (128, 64, 32, 16, 8, 4)


def describe(wrong: Mask) -> str:
    """Words for the place of the true elements of `wrong` (any number of axes; rows and columns are the last two).

    An empty string where nothing is wrong.
    """
    total, count = wrong.size, int(wrong.sum())
    if count == 0:
        return ""
    if count == total:
        return "all elements"
    if count == 1:
        return "a single element"
    if wrong.ndim == 0 or total == max(wrong.shape):
        return _on_a_line(wrong.reshape(-1), "element")
    plane = wrong.reshape(-1, wrong.shape[-1])
    return _on_a_plane(plane) or _on_a_line(plane.reshape(-1), "element in row-major order")


def _on_a_plane(plane: Mask) -> str:
    rows, columns = (np.logical_or.reduce(plane, axis=axis) for axis in (1, 0))
    whole_rows, whole_columns = (np.logical_and.reduce(plane, axis=axis) for axis in (1, 0))
    if np.array_equal(rows, whole_rows):
        return _lines(rows, "row")
    if np.array_equal(columns, whole_columns):
        return _lines(columns, "column")
    if np.array_equal(plane, whole_rows[:, None] | whole_columns[None, :]):
        return f"{_lines(whole_rows, 'row')} and {_lines(whole_columns, 'column')}"
    if np.array_equal(plane, rows[:, None] & columns[None, :]):
        return f"one block: {_lines(rows, 'row')} by {_lines(columns, 'column')}"
    corner = _about_the_diagonal(plane)
    if corner:
        return corner
    edge = _same_place_in_tiles(columns, "column") or _same_place_in_tiles(rows, "row")
    if edge:
        return f"only within {edge}"
    return _stretch(columns, "column", plane.shape[1]) or _stretch(rows, "row", plane.shape[0])


def _about_the_diagonal(plane: Mask) -> str:
    """Words where a square is wrong on, above, below or beside its diagonal, as swapped rows and columns make it."""
    if plane.shape[0] != plane.shape[1]:
        return ""
    diagonal = np.eye(plane.shape[0], dtype=np.bool_)
    above = np.triu(np.ones_like(plane), 1)
    known = {
        "the diagonal": diagonal,
        "all but the diagonal, as if rows and columns were swapped": ~diagonal,
        "all above the diagonal": above,
        "all below the diagonal": above.T,
        "the diagonal and all above it": above | diagonal,
        "the diagonal and all below it": above.T | diagonal,
    }
    return next((words for words, mask in known.items() if np.array_equal(plane, mask)), "")


def _lines(wrong: Mask, noun: str) -> str:
    """Words for whole rows or columns."""
    places = np.flatnonzero(wrong)
    size, count, first, last = wrong.size, places.size, int(places[0]), int(places[-1])
    if count == size:
        return f"all {noun}s"
    if count == 1:
        if first in (0, size - 1):
            return f"the {'first' if first == 0 else 'last'} {noun}"
        return f"{noun} {first} of {size}"
    if last - first + 1 == count:
        if last == size - 1:
            return f"the last {count} {noun}s ({first} to {last}{_behind_whole_tiles(size, count)})"
        return f"the first {count} {noun}s" if first == 0 else f"{noun}s {first} to {last} of {size}"
    tiles = _same_place_in_tiles(wrong, noun) or _edge_of_tiles(wrong, noun)
    return tiles or f"{count} of {size} {noun}s"


def _behind_whole_tiles(size: int, count: int) -> str:
    """Words where the last `count` lines are what is left over by tiles of a usual size, which a grid may miss."""
    tile = next((tile for tile in _TILES if size > tile and size % tile == count), 0)
    return f", behind the last whole tile of {tile}" if tile else ""


def _edge_of_tiles(wrong: Mask, noun: str) -> str:
    """Words where the wrong lines are the first or last few of each whole tile of a usual size."""
    for tile in _TILES:
        whole = wrong[: wrong.size // tile * tile].reshape(-1, tile)
        count = int(whole[0].sum()) if whole.size else 0
        if whole.shape[0] < 2 or not 0 < count < tile // 2 or not np.array_equal(whole, whole[[0] * whole.shape[0]]):
            continue
        if whole[0, -count:].all():
            return f"the last {count} {noun}s of each tile of {tile}"
        if whole[0, :count].all():
            return f"the first {count} {noun}s of each tile of {tile}"
    return ""


def _same_place_in_tiles(wrong: Mask, noun: str) -> str:
    """Words where all of several wrong lines lie at one place of tiles of a usual size."""
    places = np.flatnonzero(wrong)
    if places.size < 2:
        return ""
    for tile in _TILES:
        if np.unique(places % tile).size == 1:
            first = int(places[0])
            return f"every {_ordinal(tile)} {noun}, from {first} (place {first % tile} of tiles of {tile})"
    return ""


def _stretch(wrong: Mask, noun: str, size: int) -> str:
    """Words where the wrong elements keep to the last or first half of the lines."""
    places = np.flatnonzero(wrong)
    first, last = int(places[0]), int(places[-1])
    if first > size // 2:
        return f"elements in the last {size - first} {noun}s"
    return f"elements in the first {last + 1} {noun}s" if last < size // 2 else ""


def _on_a_line(wrong: Mask, noun: str) -> str:
    places = np.flatnonzero(wrong)
    size, count, first, last = wrong.size, places.size, int(places[0]), int(places[-1])
    if last - first + 1 == count:
        if last == size - 1:
            return f"the last {count} elements" + _behind_whole_tiles(size, count)
        return f"the first {count} elements" if first == 0 else f"one contiguous block, elements {first} to {last}"
    steps = np.unique(np.diff(places))
    if steps.size == 1:
        return f"every {_ordinal(int(steps[0]))} {noun}, from {first}"
    tiles = _same_place_in_tiles(wrong, noun)
    if tiles:
        return f"only within {tiles}"
    tiles = _edge_of_tiles(wrong, noun)
    if tiles:
        return tiles
    if first > size // 2:
        return f"{count} of the last {size - first} elements"
    return f"scattered: {count} of {size} elements, from {first} to {last}"


def _ordinal(number: int) -> str:
    ending = "th" if number // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def describe_values(got: NDArray[np.generic]) -> str:
    """Words for what stands in the wrong elements: zeros, or one constant; else an empty string."""
    if got.size and not np.any(got != 0):
        return "all of them zero"
    if got.size > 1 and not np.any(got != got.reshape(-1)[0]):
        return "all of them the same number"
    return ""
