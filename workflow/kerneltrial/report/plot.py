"""The history plot: every measured attempt, and the best so far. Equal tables give equal bytes."""

import io
import re
import warnings
from typing import TYPE_CHECKING, Any

from kerneltrial.decide.standing import Fate
from kerneltrial.report.texts import Say

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# Colours that occur nowhere else, so that they can be told apart in the drawing and replaced.
_INK, _FAINT, _HELD, _LOST = "#010203", "#040506", "#070809", "#0a0b0c"
_LIGHT = {_INK: "#1f2328", _FAINT: "#9aa1a9", _HELD: "#0b6bcb", _LOST: "#b3541e"}
_VARIABLES = {_INK: "var(--ink)", _FAINT: "var(--faint)", _HELD: "var(--accent)", _LOST: "var(--warn)"}


def history(table: "pd.DataFrame", clocked: bool, say: Say) -> str:
    """The drawing as SVG text with placeholder colours; see `standalone` and `inline`."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rc("svg", hashsalt="kerneltrial", fonttype="none")
        matplotlib.rc("font", family="sans-serif", size=9.5)
        matplotlib.rc("axes", edgecolor=_FAINT, labelcolor=_INK)
        matplotlib.rc("xtick", color=_INK)
        matplotlib.rc("ytick", color=_INK)
        matplotlib.rc("text", color=_INK)
        figure = Figure(figsize=(5.3, 2.9), layout="constrained")
        axes = figure.add_subplot()
        _draw(axes, table, clocked, say)
        buffer = io.BytesIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        with warnings.catch_warnings():
            # Text stays text in the SVG, and the reader's fonts have the glyphs that matplotlib's own lack.
            warnings.filterwarnings("ignore", message="Glyph")
            figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    svg = buffer.getvalue().decode()
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    return svg[svg.index("<svg") :]


def standalone(svg: str) -> bytes:
    """A file of its own: dark on white."""
    white = '<rect width="100%" height="100%" fill="#ffffff"/>'
    opened = svg.replace(">", f">{white}", 1)
    return ('<?xml version="1.0" encoding="utf-8"?>\n' + _coloured(opened, _LIGHT)).encode()


def inline(svg: str, alternative: str) -> str:
    """For the page: colours are the page's own variables, and the size is that of its column.

    `alternative` is said in place of the drawing; it may hold no markup.
    """
    label = f'<svg role="img" aria-label="{alternative}" '
    sized = re.sub(r' (width|height)="[\d.]+pt"', "", svg.replace("<svg ", label, 1), count=2)
    return _coloured(sized, _VARIABLES)


def _coloured(svg: str, colours: dict[str, str]) -> str:
    for placeholder, colour in colours.items():
        svg = svg.replace(placeholder, colour)
    return svg


def _draw(axes: "Axes", table: "pd.DataFrame", clocked: bool, say: Say) -> None:
    from matplotlib.ticker import FormatStrFormatter, MaxNLocator

    measured = table[table["figure"].notna()]
    held = measured[measured["fate"] == Fate.HELD.value]
    lost = measured[measured["fate"] != Fate.HELD.value]
    silent = table[table["figure"].isna()]
    low, high = _limits(measured["figure"])
    axes.set_ylim(low, high)
    axes.set_xlim(0.4, max(len(table), 1) + 0.6)
    axes.axhline(1.0, color=_FAINT, linewidth=1, linestyle=(0, (4, 3)))
    best = table[table["best_so_far"].notna()]
    if len(best):
        places, figures = [*best["attempt"], len(table) + 0.6], [*best["best_so_far"], best["best_so_far"].iloc[-1]]
        axes.step(places, figures, where="post", color=_HELD, linewidth=1.6, label=say("best so far"))
    _points(axes, held, say("held"), marker="o", color=_HELD)
    _points(axes, lost, say("measured, not held"), marker="o", facecolors="none", edgecolors=_LOST)
    if len(silent):
        floor = low + 0.03 * (high - low)
        axes.scatter(silent["attempt"], [floor] * len(silent), marker="x", s=26, color=_LOST, label=say("no figure"))
    _named(axes, float(best["best_so_far"].iloc[-1]) if len(best) else None, say)
    axes.set_xlabel(say("attempt"))
    axes.set_ylabel(say("speedup over the baseline") if clocked else say("count ratio (not a speedup)"))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_formatter(FormatStrFormatter("%.3g×"))
    axes.spines[["top", "right"]].set_visible(False)
    if len(table):
        axes.figure.legend(loc="outside upper left", ncols=4, frameon=False, columnspacing=1.2, handletextpad=0.4)


def _named(axes: "Axes", best: float | None, say: Say) -> None:
    """Names at the right end of the two lines, moved apart where the lines lie close."""
    low, high = axes.get_ylim()
    place: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
    apart = 0
    if best is not None:
        close = abs(best - 1.0) < 0.09 * (high - low)
        apart = (7 if best >= 1.0 else -7) if close else 0
        axes.annotate(f"{best:.3f}×", (1, best), (4, apart), va="center", color=_HELD, weight="bold", **place)
    axes.annotate(say("baseline"), (1, 1.0), (4, -apart), va="center", color=_FAINT, **place)


def _points(axes: "Axes", points: "pd.DataFrame", label: str, **style: Any) -> None:
    if len(points):
        axes.scatter(points["attempt"], points["figure"], s=34, label=label, zorder=3, **style)


def _limits(figures: "pd.Series[float]") -> tuple[float, float]:
    low, high = min(1.0, *figures, 1.0), max(1.0, *figures, 1.0)
    room = 0.18 * max(high - low, 0.1)
    return low - room, high + room
