"""The cost sheet: prices and workload as a CSV file that somebody who knows the figures fills in with a spreadsheet.

The config names it by `cost_sheet: costs.csv`; `kerneltrial cost-sheet` writes one. Columns after `key` and `value` are
for people. A key stands in the sheet or in the config, never in both, so that nobody has to know which counts.
"""

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from kerneltrial.inputs.documents import parse
from kerneltrial.inputs.problem import InputProblem

KEY: Final = "cost_sheet"
COLUMNS: Final = ("key", "value", "unit", "what it is")
CALLS: Final = "workload.calls_per_month"
_MOST_BYTES: Final = 1_000_000

# key, unit, what it is
ROWS: Final = (
    (
        "prices.gpu_hour_usd",
        "US dollars",
        "One card for one hour, as you pay for it: after discounts, or at cost",
    ),
    ("prices.engineer_hour_usd", "US dollars", "One hour of the people who set the trial up and review it, all costs"),
    ("prices.provider", "text", "Whose price of a GPU hour this is: a cloud, or your own data centre"),
    ("prices.sku", "text", "Of which product: the instance's name, or the machine's"),
    ("prices.region", "text", "Where the card stands"),
    ("prices.source", "text", "Where the two prices were read: contract, invoice, price list; 'example' is no source"),
    ("prices.date", "day", "When they were read, such as 2026-12-01"),
    (
        "prices.alternative.usd",
        "US dollars",
        "What writing the kernel by hand would cost; empty: not asked",
    ),
    ("prices.alternative.source", "text", "Where that figure comes from: an offer, an estimate and whose"),
    ("prices.alternative.date", "day", "When it was given"),
    (CALLS, "calls", "How often production calls the kernel a month, by performance case"),
    (
        "workload.invocations_per_month",
        "invocations",
        "How often production does what one run measures; 0: unknown",
    ),
    ("workload.setup_hours", "hours", "People's hours to set this trial up, already spent ones too"),
    ("workload.review_hours", "hours", "People's hours to review its result"),
    ("workload.upkeep_hours_per_month", "hours", "People's hours a month that the new kernel will cost; shown beside"),
    ("workload.uncertainty.calls", "share", "How far off the calls may be: 0.2 is 20 percent less to 20 percent more"),
    ("workload.uncertainty.gpu_hour", "share", "How far off the price of a GPU hour may be"),
    ("workload.uncertainty.hours", "share", "How far off people's hours may be"),
    ("workload.example", "true or false", "false once all of these are your own figures; true allows no GO"),
)
_UNITS: Final = {key: unit for key, unit, _ in ROWS}


def template(config: Mapping[str, Any], cases: Iterable[str]) -> str:
    """The sheet with the config's present values; `cases` are the performance cases."""
    written = io.StringIO()
    sheet = csv.writer(written, lineterminator="\n")
    sheet.writerow(COLUMNS)
    for key, unit, told in ROWS:
        if key == CALLS:
            for case in cases:
                sheet.writerow((f"{key}.{case}", _shown(_at(config, f"{key}.{case}")), unit, f"{told}: {case}"))
        else:
            sheet.writerow((key, _shown(_at(config, key)), unit, told))
    return written.getvalue()


def with_sheet(document: dict[str, Any], folder: Path, where: str) -> dict[str, Any]:
    """A config's keys with those of its cost sheet, if it names one; `where` is the config file's name.

    Raises
    ------
    InputProblem
        One line: the sheet is absent or is none; a key that it cannot hold, or that the config holds too.
    """
    name = document.pop(KEY, "") if KEY in document else ""
    if not name:
        return document
    if not isinstance(name, str):
        raise InputProblem(f"{where}: {KEY}: {name!r} is not allowed; allowed: the path of a CSV file")
    for key, value in _read(folder / name, name).items():
        if _at(document, key) is not None:
            raise InputProblem(f"{where}: {key} stands here and in {name}; keep it in one of them")
        _put(document, key, value)
    alternative = document.get("prices", {}).get("alternative")
    if isinstance(alternative, dict):
        alternative.setdefault("kind", "quoted")
    return document


def _read(path: Path, name: str) -> dict[str, Any]:
    try:
        content = path.read_bytes()
    except OSError as fault:
        raise InputProblem(f"{name}: cannot be read ({fault.strerror}); `kerneltrial cost-sheet` writes one") from None
    try:
        text = content[:_MOST_BYTES].decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputProblem(f"{name}: is not UTF-8 text; save it as 'CSV UTF-8'") from None
    separator = ";" if text.partition("\n")[0].startswith("key;") else ","
    found: dict[str, Any] = {}
    try:
        lines = list(csv.reader(io.StringIO(text), delimiter=separator, strict=True))
    except csv.Error as fault:
        raise InputProblem(f"{name}: is no CSV file ({fault})") from None
    if not lines or lines[0][:2] != ["key", "value"]:
        raise InputProblem(f"{name}: its first line must be: {','.join(COLUMNS)}")
    for number, line in enumerate(lines[1:], start=2):
        key, value = (*(cell.strip() for cell in line), "", "")[:2]
        if not key and not value:
            continue
        if key in found:
            raise InputProblem(f"{name}: line {number}: {key} stands twice; keep one")
        unit = _unit(key)
        if unit is None:
            raise InputProblem(f"{name}: line {number}: there is no key {key!r}; see `kerneltrial cost-sheet`")
        if value:
            found[key] = _value(value, unit, f"{name}: line {number}: {key}")
    return found


def _unit(key: str) -> str | None:
    """The unit of a key, or None where there is no such key; calls are by case."""
    case = key.removeprefix(f"{CALLS}.")
    if case != key:
        return _UNITS[CALLS] if case and "." not in case else None
    return None if key == CALLS else _UNITS.get(key)


def _value(text: str, unit: str, where: str) -> Any:
    if unit in ("text", "day"):
        return text
    try:
        found = parse(text.lower() if unit == "true or false" else text)
    except InputProblem:
        found = None
    wanted = isinstance(found, bool) if unit == "true or false" else _is_number(found)
    if not wanted:
        allowed = unit if unit == "true or false" else "a number such as 1200.50, with a point and no separators"
        raise InputProblem(f"{where}: {text!r} is not allowed; allowed: {allowed}")
    return found


def _is_number(found: Any) -> bool:
    from decimal import Decimal

    return isinstance(found, int | Decimal) and not isinstance(found, bool)


def _at(mapping: Any, key: str) -> Any:
    for part in key.split("."):
        if not isinstance(mapping, Mapping) or part not in mapping:
            return None
        mapping = mapping[part]
    return mapping


def _put(document: dict[str, Any], key: str, value: Any) -> None:
    *sections, last = key.split(".")
    for section in sections:
        inner = document.get(section)
        document[section] = dict(inner) if isinstance(inner, Mapping) else {}
        document = document[section]
    document[last] = value


def _shown(value: Any) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
