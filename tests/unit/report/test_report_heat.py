"""The heat map: what each public case said of each attempt, small however many attempts there are."""

import re
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

from trial_pieces import report_inputs
from trial_stories import STORIES, too_small

from kerneltrial.report.heat import STATES, Heat, drawing, heat, picture
from kerneltrial.report.origin import difference
from kerneltrial.report.render import contents
from kerneltrial.report.tables import attempts, caught
from kerneltrial.report.texts import plain

SAY = plain("en")


def test_a_row_is_a_case_and_a_column_an_attempt() -> None:
    inputs = report_inputs(STORIES["go"]())
    found = heat(inputs)
    assert found is not None
    assert found.attempts == len(inputs.standings)
    assert all(len(row) == found.attempts for row in found.cells)
    for place, standing in enumerate(inputs.standings):
        states = {STATES[row[place]] for row in found.cells}
        assert states == ({"right"} if standing.valid else states - {"right"}), standing.number


def test_where_nothing_was_validated_there_is_no_map() -> None:
    assert heat(report_inputs(too_small())) is None
    assert "heatmap.svg" not in contents(report_inputs(too_small()))


def test_the_drawing_has_a_text_alternative_with_the_counts_and_stays_small() -> None:
    many = Heat(cases=tuple(f"case_{n}" for n in range(40)), attempts=500, cells=tuple((0, 1) * 250 for _ in range(40)))
    svg = drawing(many, SAY)
    root = ElementTree.fromstring(svg)
    assert root.attrib["role"] == "img"
    assert "40 cases by 500 attempts: 10000 right, 10000 wrong" in root.attrib["aria-label"]
    assert len(svg) < 2_000_000
    equal = Heat(cases=("a",), attempts=500, cells=((0,) * 500,))
    assert len(re.findall("<rect", drawing(equal, SAY))) == 1


def test_equal_maps_give_equal_pictures() -> None:
    small = Heat(cases=("a", "b"), attempts=3, cells=((0, 1, 2), (3, 0, 0)))
    assert picture(small) == picture(small)
    assert picture(small).startswith(b"\x89PNG")


def test_what_was_caught_is_a_count_of_the_table() -> None:
    inputs = report_inputs(STORIES["failures"]())
    table = attempts(inputs)
    assert sum(row["count"] for row in caught(table)) == len(
        table[table["proposed"].astype(bool) & (table["reason"] != "")]
    )


def test_the_best_is_compared_with_its_parent_where_it_has_one() -> None:
    found = [difference(report_inputs(STORIES[name]())) for name in STORIES]
    assert all(text == "" or text.startswith("--- parent ") for text in found)


def test_rows_are_the_public_cases_as_they_are_locked_then_boundary_shapes_by_number_with_their_shapes() -> None:
    inputs = report_inputs(STORIES["go"]())
    found = heat(inputs)
    assert found is not None
    public = [case.name for case in inputs.lock.cases.cases if case.name in found.cases]
    assert list(found.cases[: len(public)]) == public
    made = found.cases[len(public) :]
    numbers = [int(name.removeprefix("boundary_")) for name in made if name.startswith("boundary_")]
    assert numbers == sorted(numbers)
    case = next(case for case in inputs.lock.cases.cases if case.name == found.cases[0])
    sizes = [f"{name}\u00a0{case.dimensions[name]}" for name in ("M", "N", "K")]  # as the contract passes them
    assert found.labels[0] == f"{case.name}  " + " · ".join(sizes)


def texts(svg: str, kind: str) -> list[str | None]:
    return [text.text for text in ElementTree.fromstring(svg).iter() if text.attrib.get("class") == kind]


def test_few_attempts_stand_apart_and_their_label_is_whole() -> None:
    svg = drawing(Heat(cases=("a",), attempts=2, cells=((0, 0),)), SAY)
    root = ElementTree.fromstring(svg)
    cells = [(float(r.attrib["x"]), float(r.attrib["width"])) for r in root.iter() if r.tag.endswith("rect")]
    assert cells[0][0] + cells[0][1] < cells[1][0]
    label = [text for text in root.iter() if text.tag.endswith("text")][-1]
    assert label.text == "attempt"
    assert float(label.attrib["x"]) + 6 * len(label.text) <= float(root.attrib["width"])
    assert texts(svg, "tick") == ["1", "2"]


def test_numbers_of_attempts_below_the_map_do_not_run_into_each_other() -> None:
    for columns in (1, 3, 7, 14, 40, 161, 500):
        svg = drawing(Heat(cases=("a",), attempts=columns, cells=((0,) * columns,)), SAY)
        ticks = [text for text in ElementTree.fromstring(svg).iter() if text.attrib.get("class") == "tick"]
        places = [float(text.attrib["x"]) for text in ticks]
        assert ticks[0].text == "1"
        assert ticks[-1].text == str(columns)
        assert all(b - a >= 17 for a, b in pairwise(places)), columns


def test_what_is_not_right_has_a_sign_beside_its_colour() -> None:
    assert texts(drawing(Heat(cases=("a",), attempts=4, cells=((0, 1, 2, 3),)), SAY), "sign") == ["×", "?"]
