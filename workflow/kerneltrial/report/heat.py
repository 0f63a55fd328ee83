"""The heat map of public cases by attempts: what each case said of each attempt. It is no proof of correctness."""

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kerneltrial.records.validation import CaseVerdict, Invalid, Unchecked, Validated
from kerneltrial.report.inputs import ReportInputs
from kerneltrial.report.texts import Say

STATES = ("right", "wrong", "open", "away")  # as the page's style sheet names them
_COLOURS = {"right": "#1a7f37", "wrong": "#c0262d", "open": "#8a5a00", "away": "#d9dde2"}
_LONGEST = 48  # characters before a row
_ROOM_FOR_GAPS = 8.0
_MOST_ROWS = 60  # cases; boundary shapes beyond them are left out of the picture, not of the records


@dataclass(frozen=True)
class Heat:
    """`cells` has a row a case and a column an attempt; each cell is the place of its state in `STATES`.

    `shapes` says what dimensions a case has, such as `m 31, n 37`.
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
    shapes = _shapes(verdicts.values())
    return Heat(cases=tuple(names), attempts=len(columns), cells=cells, shapes=tuple(shapes[name] for name in names))


def _numbered(name: str) -> tuple[str, int]:
    """The name of a made shape, such as boundary_10, without its number, and the number."""
    stem, _, digits = name.rpartition("_")
    return (stem, int(digits)) if digits.isdecimal() else (name, 0)


def _shapes(entries: Iterable[object]) -> dict[str, str]:
    """The dimensions of each case that some candidate ran on, in one short text."""
    return {
        verdict.case: ", ".join(f"{name} {size}" for name, size in sorted(verdict.dimensions.items()))
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


def drawing(map_: Heat, say: Say, *, standalone: bool = False) -> str:
    """An SVG picture: on the page its colours are the style sheet's, standing alone its own."""
    labels = [label if len(label) <= _LONGEST else f"{label[: _LONGEST - 1]}…" for label in map_.labels]
    left, cell = 6 * max(map(len, labels)) + 10, max(4.0, min(16.0, 640 / max(map_.attempts, 1)))
    below = f"{say('attempt')} 1 – {map_.attempts}" if map_.attempts > 1 else f"{say('attempt')} 1"
    width = left + max(cell * map_.attempts, 10.0 * len(below)) + 4
    height = 12 * len(map_.cases) + 18
    gap = 1 if cell >= _ROOM_FOR_GAPS else 0
    counts = [sum(row.count(place) for row in map_.cells) for place in range(len(STATES))]
    said = say(
        "%(cases)s cases by %(attempts)s attempts: %(right)s right, %(wrong)s wrong, %(open)s unchecked, "
        "%(away)s not reached",
        cases=len(map_.cases),
        attempts=map_.attempts,
        **dict(zip(STATES, counts, strict=True)),
    )
    style = "".join(f".{name}{{fill:{colour}}}" for name, colour in _COLOURS.items()) if standalone else ""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="heat" role="img" aria-label="{said}" '
        f'viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}">',
        f"<style>{style}text{{font:10px sans-serif}}</style>" if standalone else "",
    ]
    for row, label in enumerate(labels):
        parts.append(f'<text x="0" y="{12 * row + 10}">{_safe(label)}</text>')
        parts += [
            f'<rect class="{STATES[place]}" x="{left + cell * start:.1f}" y="{12 * row}" '
            f'width="{cell * length - gap:.1f}" height="11"/>'
            for start, length, place in _stretches(map_.cells[row], apart=gap > 0)
        ]
    parts.append(f'<text x="{left}" y="{height - 4}">{_safe(below)}</text></svg>')
    return "".join(parts)


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
        axes.set_xticks(range(0, map_.attempts, step), [str(n + 1) for n in range(0, map_.attempts, step)])
        axes.hlines([row + 0.5 for row in range(len(map_.cases) - 1)], -0.5, map_.attempts - 0.5, "white", linewidth=1)
        if map_.attempts <= 64:
            axes.vlines([n + 0.5 for n in range(map_.attempts - 1)], -0.5, len(map_.cases) - 0.5, "white", linewidth=1)
        axes.set_xlabel("attempt (green right, red wrong, brown unchecked, grey not reached): no proof of correctness")
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=110, metadata={"Software": None})
    return buffer.getvalue()
