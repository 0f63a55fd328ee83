"""YAML as JSON types, and problems that name file, field, value and what is allowed."""

from decimal import Decimal
from pathlib import Path

import pytest

from kerneltrial.inputs.documents import parse, read_document, to_record
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.inputs.yaml_text import require_one_reading
from kerneltrial.records.case import Cases
from kerneltrial.records.contract import Contract, Tolerance
from kerneltrial.records.plan import LaunchPlan
from kerneltrial.records.terms import Workload


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-5", Decimal("0.00001")),
        ("1E+2", Decimal(100)),
        ("0.1", Decimal("0.1")),
        ("-3", -3),
        ("007", 7),
        ("no", "no"),
        ("on", "on"),
        ("2026-12-01", "2026-12-01"),
        ("12:30", "12:30"),
        ("0x10", "0x10"),
        ("1_000", "1_000"),
        (".inf", ".inf"),
        ("true", True),
        ("null", None),
        ("'7'", "7"),
        ("[1, a]", [1, "a"]),
        ("{a: {b: 1}}", {"a": {"b": 1}}),
    ],
)
def test_plain_scalars_are_jsons(text: str, value: object) -> None:
    found = parse(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\na: 2", ["'a'", "twice", "line 2"]),
        ("a: {b: 1, b: 2}", ["'b'", "twice"]),
        ("a: &x 1\nb: *x", ["aliases"]),
        ("a: !!python/object/apply:os.system ['true']", ["tag", "not allowed"]),
        ("a: !!binary aGk=", ["not allowed"]),
        ("1: a", ["key 1", "text"]),
        ("[a]: 1", ["key"]),
        ("a: [", ["line"]),
        ("a: 1\n---\nb: 2", ["document"]),
        ("[" * 3000, ["nested more than 40 deep"]),
        ("a: \x00", ["control character 0x00"]),
    ],
)
def test_what_is_no_plain_yaml_is_one_line(text: str, words: list[str]) -> None:
    with pytest.raises(InputProblem) as caught:
        parse(text)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputProblem, match=r"absent\.yaml: cannot be read"):
        read_document(tmp_path / "absent.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"a: \xff")
    with pytest.raises(InputProblem, match=r"latin\.yaml: is not UTF-8"):
        read_document(tmp_path / "latin.yaml")
    (tmp_path / "large.yaml").write_bytes(b"a" * 1_000_001)
    with pytest.raises(InputProblem, match="larger"):
        read_document(tmp_path / "large.yaml")


def test_numbers_stay_exact() -> None:
    tolerance = to_record(parse("{absolute: 1e-5, relative: 0.1, scaled: '3e-7'}"), Tolerance, "t")
    assert tolerance.absolute == Decimal("1e-5")
    assert tolerance.relative == Decimal("0.1")
    assert tolerance.scaled == Decimal("3e-7")
    assert to_record({"relative": 0.1}, Tolerance, "t").relative == Decimal("0.1")


LAUNCH = "variants: [{{launches: [{{entry: f, grid: {grid}, block: ['1', '1', '1'], args: [a]}}]}}]"


@pytest.mark.parametrize(
    ("type_", "text", "words"),
    [
        (Cases, "cases: []", ["c.yaml: cases", "a list of 1 to 200"]),
        (Cases, "case: []", ["unknown key 'case'", "did you mean 'cases'"]),
        (
            Cases,
            "cases: [{name: a, kind: speed, dimensions: {m: 1}}]",
            ["cases.a.kind", "'speed'", "correctness, performance"],
        ),
        (Cases, "cases: [{name: a, kind: performance, dimensions: {m: 0}}]", ["cases.a.dimensions.m", "at least 1"]),
        (
            Cases,
            "cases: [{name: a, kind: performance, dimensions: {m: 1, n: x}}]",
            ["cases.a.dimensions.n", "'x'", "an integer"],
        ),
        (
            Cases,
            "cases: [{name: a, kind: performance, dimensions: {m-n: 1}}]",
            ["dimensions.m-n", "key is not allowed"],
        ),
        (Cases, "cases: [{kind: performance, dimensions: {m: 1}}]", ["cases.#1: ", "'name' is missing"]),
        (Cases, "cases: [{name: 1a, kind: performance, dimensions: {m: 1}}]", ["cases.1a.name", "'1a'", "letter"]),
        (
            Cases,
            "cases: [{name: a, kind: performance, dimensions: {m: 1}, inputs: {x: {from: web}}}]",
            ["cases.a.inputs.x", "generated, file"],
        ),
        (
            Cases,
            "cases: [{name: a, kind: performance, dimensions: {m: 1}, inputs: {x: {from: file, paht: p}}}]",
            ["cases.a.inputs.x", "'paht'", "did you mean 'path'"],
        ),
        (
            Cases,
            "cases: [{name: a, kind: performance, dimensions: {m: 1}, inputs: "
            "{x: {from: generated, distribution: flat}}}]",
            ["distribution", "'flat'", "normal, offset, wide, ties, integers, zeros"],
        ),
        (LaunchPlan, LAUNCH.format(grid="[ceil_div(n, 32), '1', '1']"), ["grid", "put quotes"]),
        (LaunchPlan, LAUNCH.format(grid="['1', '1']"), ["grid", "a list of 3"]),
    ],
)
def test_what_is_wrong_names_field_value_and_what_is_allowed(type_: type, text: str, words: list[str]) -> None:
    with pytest.raises(InputProblem) as caught:
        to_record(parse(text), type_, "c.yaml")
    line = str(caught.value)
    assert line.startswith("c.yaml: ")
    assert all(word in line for word in words), line
    assert "\n" not in line


def test_json_files_are_read_as_strictly(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a": 0.1, "b": [1, null, true], "c": "x"}')
    assert read_document(path) == {"a": Decimal("0.1"), "b": [1, None, True], "c": "x"}
    for text, words in (('{"a": 1, "a": 2}', "twice"), ("{", "no valid JSON"), ("[" * 9999, "no valid JSON")):
        path.write_text(text)
        with pytest.raises(InputProblem, match=words) as caught:
            read_document(path)
        assert str(caught.value).startswith(str(path))


def test_an_integer_may_be_written_short_and_a_number_that_is_none_may_not() -> None:
    asked = {"example": True, "setup_hours": 1, "review_hours": 1}
    found = to_record({**asked, "calls_per_month": parse("{a: 2.5e11}")}, Workload, "config.yaml")
    assert found.calls_per_month == {"a": 250_000_000_000}
    for text in ("2.5e0", "1e41", "1e-3", "100,000"):
        with pytest.raises(InputProblem, match=r"calls_per_month.a: .* allowed: an integer"):
            to_record({**asked, "calls_per_month": {"a": parse(f'"{text}"' if "," in text else text)}}, Workload, "x")


def test_all_keys_that_are_missing_are_said_at_once() -> None:
    with pytest.raises(InputProblem, match=r"^c: the keys 'description', 'dimensions', 'bytes' are missing$"):
        to_record(
            {"name": "a", "arguments": [{"kind": "dimension", "name": "n"}], "tolerances": {}, "operations": "1"},
            Contract,
            "c",
        )
    with pytest.raises(InputProblem, match=r"^c: arguments.x: the keys 'role', 'dtype', 'shape' are missing$"):
        to_record({"name": "a", "arguments": [{"kind": "array", "name": "x"}]}, Contract, "c")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a:\n  b: 1\n c: 2\n", "line 3, column 2: .*indented as its neighbours"),
        ("a:\n\tb: 1", "line 2, column 1: .*indent by spaces"),
        ("a: b: c", "line 1, column 5: .*quotes around a text that holds ': '"),
        ("a: {x: 1\nb: 2}", "line 2, .*close each bracket"),
        ("a: 1\nb\nc: 2", "line 3, .*each line is KEY: VALUE"),
    ],
)
def test_what_is_no_yaml_comes_with_what_to_do(text: str, told: str) -> None:
    with pytest.raises(InputProblem, match=told):
        parse(text)


@pytest.mark.parametrize("word", ["no", "Yes", "off", "010", "12:30", "0x1f", "1_000", "+5"])
def test_a_word_that_snakemake_reads_otherwise_is_refused_unless_it_is_quoted(word: str) -> None:
    with pytest.raises(InputProblem, match=r"^line 2, column 7: .* has two readings in YAML"):
        require_one_reading(f"a: 1\nb: [x,{word}]")
    require_one_reading(f"b: '{word}'")


def test_words_of_one_reading_are_let_pass() -> None:
    require_one_reading("[0, -5, 1e-5, 2026-12-01, true, False, null, ~, a no, '']")
    require_one_reading("")
