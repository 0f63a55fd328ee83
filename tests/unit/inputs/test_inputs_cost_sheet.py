"""The cost sheet: every field of prices and workload explained, and one line for what is wrong in it."""

import csv
import io
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest

from kerneltrial.inputs.cost_sheet import CALLS, COLUMNS, ROWS, template, with_sheet
from kerneltrial.inputs.documents import to_record
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.records.terms import Alternative, Prices, Uncertainty, Workload
from kerneltrial.store.canonical import builtins

PRICES = Prices(gpu_hour_usd=Decimal("3.5"), engineer_hour_usd=Decimal(120), source="contract 17", date="2026-12-01")
WORKLOAD = Workload(calls_per_month={"large": 5}, setup_hours=Decimal(8), review_hours=Decimal(4), example=False)


def sheet(folder: Path, text: str) -> dict[str, object]:
    (folder / "costs.csv").write_text(text, encoding="utf-8")
    return with_sheet({"cost_sheet": "costs.csv"}, folder, "config.yaml")


def test_every_field_of_prices_and_workload_has_a_row() -> None:
    wanted = {f"prices.{name}" for name in Prices.__struct_fields__} - {"prices.model", "prices.alternative"}
    wanted |= {f"prices.alternative.{name}" for name in Alternative.__struct_fields__}
    wanted |= {f"workload.{name}" for name in Workload.__struct_fields__} - {"workload.uncertainty"}
    wanted |= {f"workload.uncertainty.{name}" for name in Uncertainty.__struct_fields__}
    assert {key for key, _, _ in ROWS} == wanted
    assert all(told and unit for _, unit, told in ROWS)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    config = {"prices": builtins(PRICES), "workload": builtins(WORKLOAD)}
    text = template(config, ["large", "small"])
    assert next(csv.reader(io.StringIO(text))) == list(COLUMNS)
    read = sheet(tmp_path, text)
    assert to_record(read["prices"], Prices, "costs.csv") == PRICES
    assert to_record(read["workload"], Workload, "costs.csv") == WORKLOAD


@pytest.mark.parametrize("start", ["\ufeffkey,value", "key;value;unit"])
def test_what_spreadsheets_write_is_read(start: str, tmp_path: Path) -> None:
    mark = ";" if ";" in start else ","
    cells = [
        ("workload.example", "FALSE"),
        ("prices.gpu_hour_usd", "2.75"),
        (f"{CALLS}.large", "40000000000"),
        ("", ""),
    ]
    read = sheet(tmp_path, "\r\n".join([start, *(mark.join(line) for line in cells)]))
    assert read["workload"] == {"example": False, "calls_per_month": {"large": 40_000_000_000}}
    assert read["prices"] == {"gpu_hour_usd": Decimal("2.75")}


def test_a_quoted_alternative_needs_no_kind(tmp_path: Path) -> None:
    cells = ("alternative.usd,9000", "alternative.source,offer 3", "alternative.date,2026-11-30")
    read = sheet(tmp_path, "key,value\n" + "".join(f"prices.{cell}\n" for cell in cells))
    whole = msgspec.structs.asdict(PRICES) | {"alternative": read["prices"]["alternative"], "model": {"kind": "none"}}
    assert to_record(whole, Prices, "costs.csv").alternative == Alternative(
        usd=Decimal(9000), source="offer 3", date="2026-11-30"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("key,value\nprices.gpu_hour_usd,\"3,50\"\n", "line 2: prices.gpu_hour_usd: '3,50' is not allowed"),
        ("key,value\nprices.gpu_hour_usd,1 200\n", "with a point and no separators"),
        ("key,value\nworkload.example,no\n", "allowed: true or false"),
        ("key,value\nprices.gpu_hour,3\n", "line 2: there is no key 'prices.gpu_hour'"),
        ("key,value\nworkload.calls_per_month,3\n", "there is no key"),
        ("key,value\nprices.sku,a\nprices.sku,b\n", "line 3: prices.sku stands twice"),
        ("gpu_hour,3\n", "its first line must be: key,value,unit,what it is"),
        ("", "its first line must be"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(InputProblem) as caught:
        sheet(tmp_path, text)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_key_in_both_places_is_refused_and_a_missing_sheet_named(tmp_path: Path) -> None:
    (tmp_path / "costs.csv").write_text("key,value\nprices.gpu_hour_usd,3\n")
    config = {"cost_sheet": "costs.csv", "prices": {"gpu_hour_usd": 2}}
    with pytest.raises(InputProblem, match=r"gpu_hour_usd stands here and in costs\.csv"):
        with_sheet(config, tmp_path, "config.yaml")
    with pytest.raises(InputProblem, match=r"none\.csv: cannot be read"):
        with_sheet({"cost_sheet": "none.csv"}, tmp_path, "config.yaml")
    assert with_sheet({"prices": {}}, tmp_path, "config.yaml") == {"prices": {}}
