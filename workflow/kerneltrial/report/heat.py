"""The heat map of public cases by attempts: what each case said of each attempt. It is no proof of correctness."""

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kerneltrial.records.validation import CaseVerdict, Invalid, Unchecked, Validated
from kerneltrial.report.inputs import ReportInputs
from kerneltrial.report.shapes import dimensions, shaped
from kerneltrial.report.texts import Say

STATES = ("right", "wrong", "open", "away")  # as the page's style sheet names them
_COLOURS = {"right": "#1a7f37", "wrong": "#c0262d", "open": "#8a5a00", "away": "#d9dde2"}
_SIGNS = {"wrong": "×", "open": "?"}  # so that colour is not all that tells states apart
_LONGEST = 34  # characters of a name, or of a shape
_ROW, _LETTER = 15, 6.5  # units of the drawing: the height of a row, the width of a letter in it
_ROOM_FOR_GAPS = 8.0
_ROOM_FOR_SIGNS = 11.0
_MOST_ROWS = 60  # cases; boundary shapes beyond them are left out of the picture, not of the records


@dataclass(frozen=True)
class Heat:
    """`cells` has a row a case and a column an attempt; each cell is the place of its state in `STATES`.

    `shapes` says what dimensions a case has, such as `m 31 · n 37` (with spaces that do not break).
    """

    cases: tuple[str, ...]
    attempts: int
    cells: tuple[tuple[int, ...], ...]
    shapes: tuple[str, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """What stands before each row: the case's name and its shape."""
        shapes = self.shapes or ("",) * len(self.cases)
        return tuple(f"{name}  {shape}".rstrip() for name, shape in zip(self.cases, shapes, strict=True))


def heat(inputs: ReportInputs) -> Heat | None:
    """The map, or None where nothing was validated."""
    verdicts = {entry.candidate: entry for iteration in inputs.iterations for entry in iteration.validation.candidates}
    columns = [
        _column(verdicts.get(standing.candidate) if standing.proposed else None) for standing in inputs.standings
    ]
    order = {case.name: place for place, case in enumerate(inputs.lock.cases.cases)}
    reached = {name for column in columns for name in column if name}
    names = sorted(reached, key=lambda name: (order.get(name, len(order)), *_numbered(name)))[:_MOST_ROWS]
    if not names:
        return None
    cells = tuple(tuple(column.get(name, column[""]) for column in columns) for name in names)
    shapes = _shapes(verdicts.values(), dimensions(inputs.lock.contract))
    return Heat(cases=tuple(names), attempts=len(columns), cells=cells, shapes=tuple(shapes[name] for name in names))


def _numbered(name: str) -> tuple[str, int]:
    """The name of a made shape, such as boundary_10, without its number, and the number."""
    stem, _, digits = name.rpartition("_")
    return (stem, int(digits)) if digits.isdecimal() else (name, 0)


def _shapes(entries: Iterable[object], order: Sequence[str]) -> dict[str, str]:
    """The dimensions of each case that some candidate ran on, in one short text."""
    return {
        verdict.case: shaped(verdict.dimensions, order)
        for entry in entries
        if isinstance(entry, Validated | Invalid)
        for verdict in entry.cases
    }


def _column(entry: object) -> dict[str, int]:
    """States by case of one attempt; under the empty name the state of cases that it did not reach."""
    found = {"": STATES.index("away")}
    if isinstance(entry, Unchecked):
        found[""] = STATES.index("open")
    if isinstance(entry, Validated | Invalid):
        found |= {verdict.case: _state(verdict) for verdict in entry.cases}
    return found


def _state(verdict: CaseVerdict) -> int:
    return STATES.index("right" if verdict.valid else "wrong")


def told(map_: Heat, say: Say) -> str:
    """The map in a sentence: how many cells are in which state."""
    counts = [sum(row.count(place) for row in map_.cells) for place in range(len(STATES))]
    return say(
        "%(cases)s cases by %(attempts)s attempts: %(right)s right, %(wrong)s wrong, %(open)s unchecked, "
        "%(away)s not reached",
        cases=len(map_.cases),
        attempts=map_.attempts,
        **dict(zip(STATES, counts, strict=True)),
    )


def drawing(map_: Heat, say: Say, *, standalone: bool = False) -> str:
    """An SVG picture: on the page its colours are the style sheet's, standing alone its own."""
    names, shapes = [_cut(name) for name in map_.cases], [_cut(shape) for shape in map_.shapes]
    first = _LETTER * max(map(len, names)) + 12
    left = first + (_LETTER * max(map(len, shapes)) + 8 if shapes else 0)
    cell = max(4.0, min(18.0, 640 / max(map_.attempts, 1)))
    width = max(left + cell * map_.attempts, left + _LETTER * len(say("attempt"))) + 14
    height = _ROW * len(names) + 34
    style = "".join(f".{name}{{fill:{colour}}}" for name, colour in _COLOURS.items()) if standalone else ""
    style += "text{font:11px sans-serif}.sign{fill:#fff;font-weight:bold;text-anchor:middle}.tick{text-anchor:middle}"
    style += ".shape{fill:#57606a}" if standalone else ""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="heat" role="img" aria-label="{told(map_, say)}" '
        f'viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}">',
        f"<style>{style}</style>" if standalone else "",
    ]
    for row, name in enumerate(names):
        middle = _ROW * row + 11
        parts.append(f'<text x="0" y="{middle}">{_safe(name)}</text>')
        if shapes:
            parts.append(f'<text class="shape" x="{first:.0f}" y="{middle}">{_safe(shapes[row])}</text>')
        parts += _cells(map_.cells[row], left, cell, _ROW * row)
    below = _ROW * len(names) + 12
    parts += [
        f'<text class="tick" x="{left + cell * (number - 0.5):.1f}" y="{below}">{number}</text>'
        for number in _ticks(map_.attempts, cell)
    ]
    parts.append(f'<text x="{left:.1f}" y="{below + 16}">{_safe(say("attempt"))}</text></svg>')
    return "".join(parts)


def _cells(row: Sequence[int], left: float, cell: float, top: int) -> list[str]:
    """The cells of one case, with a sign in those that are not right where there is room for it."""
    gap = 1 if cell >= _ROOM_FOR_GAPS else 0
    parts = [
        f'<rect class="{STATES[place]}" x="{left + cell * start:.1f}" y="{top}" '
        f'width="{cell * length - gap:.1f}" height="{_ROW - 1}"/>'
        for start, length, place in _stretches(row, apart=gap > 0)
    ]
    if cell >= _ROOM_FOR_SIGNS:
        parts += [
            f'<text class="sign" x="{left + cell * (column + 0.5) - 0.5:.1f}" y="{top + 11}">{sign}</text>'
            for column, place in enumerate(row)
            if (sign := _SIGNS.get(STATES[place], ""))
        ]
    return parts


def _ticks(attempts: int, cell: float) -> list[int]:
    """Numbers of attempts that are written below the map: the first, the last, and as many between as have room."""
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 200, 500, 10**6) if cell * step >= 4 * _LETTER)
    between = [n for n in range(step, attempts, step) if min(n - 1, attempts - n) * cell >= 4 * _LETTER]
    return list(dict.fromkeys([1, *between, attempts]))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _stretches(row: Sequence[int], apart: bool) -> list[tuple[int, int, int]]:
    """(start, length, state) of each cell where they are to stand apart, else of each stretch of equal cells.

    So hundreds of attempts stay a small picture, and a few can be told from each other.
    """
    if apart:
        return [(place, 1, state) for place, state in enumerate(row)]
    found: list[tuple[int, int, int]] = []
    for place, state in enumerate(row):
        if found and found[-1][2] == state:
            found[-1] = (found[-1][0], found[-1][1] + 1, state)
        else:
            found.append((place, 1, state))
    return found


def _safe(text: str) -> str:
    """Names of cases are letters, digits and underscores; anything else is no name."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


def picture(map_: Heat) -> bytes:
    """A PNG of the same, for what cannot show SVG. Equal maps give equal bytes."""
    import matplotlib
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        figure = Figure(figsize=(8, 1 + 0.18 * len(map_.cases)), layout="constrained")
        axes = figure.add_subplot()
        colours = ListedColormap(list(_COLOURS.values()))
        axes.imshow(map_.cells, cmap=colours, vmin=0, vmax=len(STATES) - 1, aspect="auto", interpolation="nearest")
        axes.set_yticks(range(len(map_.cases)), map_.labels, fontsize=7)
        step = -(-map_.attempts // 20)
        axes.set_xticks(range(0, map_.attempts, step), [str(n + 1) for n in range(0, map_.attempts, step)], fontsize=8)
        axes.hlines([row + 0.5 for row in range(len(map_.cases) - 1)], -0.5, map_.attempts - 0.5, "white", linewidth=1)
        if map_.attempts <= 64:
            axes.vlines([n + 0.5 for n in range(map_.attempts - 1)], -0.5, len(map_.cases) - 0.5, "white", linewidth=1)
        told = "green right, red wrong, brown unchecked, grey not reached: no proof of correctness"
        axes.set_xlabel("attempt", fontsize=8)
        axes.set_title(told, fontsize=8, loc="left")
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=110, metadata={"Software": None})
    return buffer.getvalue()
