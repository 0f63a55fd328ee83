"""What the parts of `on_a_card.py` came to, beside what is asked: JSON for each, and one table for all."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

from card_parts import Figure
from card_runs import LEFT_OUT, WELL, Outcome

_HEAD = "| part | figure | measured | asked | reached |\n| --- | --- | --- | --- | --- |"


def read(figure: Figure, output: str) -> list[float | str]:
    """Every value of a figure in what a part printed; words where they are no numbers."""
    found: list[float | str] = []
    for text in re.findall(figure.pattern, output, re.MULTILINE):
        try:
            found.append(float(text))
        except ValueError:
            found.append(text)
    if not found and figure.none and re.search(figure.none, output, re.MULTILINE):
        return [0.0]
    return found


def reached(figure: Figure, values: list[float | str]) -> bool | None:
    """Whether every value lies where it is asked to; None where nothing is asked or nothing was printed."""
    if figure.asked == "–" or not values:
        return None
    return all(isinstance(one, float) and figure.least <= one <= figure.most for one in values)


def told(outcome: Outcome) -> dict[str, Any]:
    """A part as JSON types."""
    figures = []
    for figure in outcome.part.figures:
        values = read(figure, outcome.output)
        figures.append(
            {"figure": figure.name, "values": values, "asked": figure.asked, "reached": reached(figure, values)}
        )
    return {
        "part": outcome.part.name, "command": shlex.split(outcome.part.words), "state": outcome.state,
        "why": outcome.why, "seconds": round(outcome.seconds, 1), "expected_s": outcome.part.seconds,
        "figures": figures,
    }  # fmt: skip


def write(folder: Path, about: dict[str, str], outcomes: list[Outcome], waiting: list[str]) -> str:
    """Leave `NAME.json`, `summary.json` and `summary.md`; return the last."""
    parts = [told(outcome) for outcome in outcomes]
    for one in parts:
        (folder / f"{one['part']}.json").write_text(json.dumps(one, indent=1) + "\n")
    content = {"about": about, "parts": parts, "not_begun": waiting}
    _replace(folder / "summary.json", json.dumps(content, indent=1) + "\n")
    text = table(about, parts, waiting)
    _replace(folder / "summary.md", text)
    return text


def _replace(path: Path, text: str) -> None:
    """A run that is killed leaves the old summary or the new one."""
    path.with_suffix(".part").write_text(text)
    path.with_suffix(".part").rename(path)


def table(about: dict[str, str], parts: list[dict[str, Any]], waiting: list[str]) -> str:
    """Markdown: the machine, a line a figure, and what ran how."""
    lines = ["; ".join(f"{name} {value}" for name, value in about.items()), "", _HEAD]
    for part in parts:
        for one in part["figures"]:
            said = {True: "yes", False: "**no**", None: "–"}[one["reached"]]
            lines.append(f"| {part['part']} | {one['figure']} | {shown(one['values'])} | {one['asked']} | {said} |")
    lines += ["", "| part | state | s | expected | |", "| --- | --- | --- | --- | --- |"]
    lines += [
        f"| {one['part']} | {one['state']} | {one['seconds']:.0f} | {one['expected_s']:.0f} | {one['why']} |"
        for one in parts
    ]
    lines += [f"| {name} | not begun | | | |" for name in waiting]
    return "\n".join(lines) + "\n"


def shown(values: list[float | str]) -> str:
    """All values, or from where to where the many lie."""
    if not values:
        return "not printed"
    numbers = [one for one in values if isinstance(one, float)]
    if len(numbers) == len(values) > 4:
        return f"{min(numbers):g} to {max(numbers):g} ({len(numbers)})"
    return ", ".join(f"{one:g}" if isinstance(one, float) else one for one in values)


def bad(outcomes: list[Outcome]) -> bool:
    """Whether a part did not run well that was begun, or a figure was not reached."""
    parts = [told(outcome) for outcome in outcomes if outcome.state != LEFT_OUT]
    return any(one["state"] != WELL or any(f["reached"] is False for f in one["figures"]) for one in parts)
