"""Paths through a plan: what spans rule out never happens, and what a shape can take is found."""

import itertools
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kerneltrial.inputs.expressions import ExpressionProblem, evaluate, tree
from kerneltrial.inputs.paths import Path, chooses, paths, paths_taken, wanted
from kerneltrial.inputs.shape_search import find
from kerneltrial.inputs.spans import Span, span_of, truth
from kerneltrial.records.contract import Array, Contract, DimensionArgument, Range, Tolerance
from kerneltrial.records.plan import Launch, LaunchPlan, Variant


def contract(**most: int | Range) -> Contract:
    spans = {n: m if isinstance(m, Range) else Range(minimum=1, maximum=m) for n, m in most.items()}
    return Contract(
        name="any",
        description="y of all dimensions",
        arguments=(
            Array(name="y", role="output", dtype="float32", shape=tuple(spans)),
            *(DimensionArgument(name=name) for name in spans),
        ),
        dimensions=spans,
        tolerances={"y": Tolerance()},
        operations=" * ".join(spans),
        bytes="4 * " + " * ".join(spans),
    )


def plan(*whens: str, **sizes: Any) -> LaunchPlan:
    launch = Launch(**{"entry": "k", "grid": ("1", "1", "1"), "block": ("1", "1", "1"), "args": ("y",), **sizes})
    return LaunchPlan(variants=tuple(Variant(when=when, launches=(launch,)) for when in whens))


NUMBERS = st.integers(min_value=0, max_value=9).map(str)
EXPRESSIONS = st.recursive(
    st.sampled_from("mn") | NUMBERS,
    lambda part: st.one_of(
        st.tuples(part, st.sampled_from(["+", "-", "*", "//", "%", "<", "<=", "==", "!=", ">", ">="]), part).map(
            lambda each: f"({' '.join(each)})"
        ),
        st.tuples(part, st.sampled_from(["and", "or"]), part).map(lambda each: f"({' '.join(each)})"),
        st.tuples(st.sampled_from(["min", "max", "ceil_div"]), part, part).map(lambda f: f"{f[0]}({f[1]}, {f[2]})"),
        part.map(lambda each: f"(not {each})"),
        part.map(lambda each: f"(-{each})"),
    ),
    max_leaves=7,
)
SPANS = st.tuples(st.integers(0, 20), st.integers(0, 6), st.integers(1, 5)).map(
    lambda each: Span(each[0], each[0] + each[1] * each[2], each[2] if each[1] else 0)
)


def values(span: Span) -> range:
    return range(span.low, span.high + 1, span.step or 1)


@settings(max_examples=400, deadline=None)
@given(expression=EXPRESSIONS, m=SPANS, n=SPANS)
def test_every_value_lies_in_its_span(expression: str, m: Span, n: Span) -> None:
    node = tree(expression)
    found, known = span_of(node, {"m": m, "n": n}), truth(node, {"m": m, "n": n})
    for one, other in itertools.product(values(m), values(n)):
        try:
            value = evaluate(expression, {"m": one, "n": other})
        except ExpressionProblem:
            continue
        assert found.low <= value <= found.high
        assert value == found.low if not found.step else (value - found.low) % found.step == 0
        assert known is None or known is bool(value)


@settings(max_examples=150, deadline=None)
@example(first="ceil_div((not 4), (-5))", second="(-min(1, m))")
@example(first="m % (-3)", second="n // (0 - m) < -4")
@given(first=EXPRESSIONS, second=EXPRESSIONS)
def test_a_search_finds_what_there_is_and_nothing_else(first: str, second: str) -> None:
    small, tried = contract(m=9, n=Range(minimum=2, maximum=12, multiple_of=2)), plan(first, second)
    shapes = [{"m": m, "n": n} for m in range(1, 10) for n in range(2, 13, 2)]
    broken = False
    for shape in shapes:
        try:
            [evaluate(when, shape) for when in (first, second)]
        except ExpressionProblem:
            broken = True
    if broken:
        return
    taken = {path for shape in shapes for path in paths_taken(tried, shape)}
    for path in paths(tried):
        found = find(small, wanted(tried, path))
        assert found.settled
        assert (found.dimensions is not None) is (path in taken)
        assert found.dimensions is None or path in paths_taken(tried, found.dimensions)


@pytest.mark.parametrize(
    ("when", "shape"),
    [
        ("n == 1000003", {"m": 1, "n": 1000003}),
        ("n > 4 * 1000", {"m": 1, "n": 4001}),
        ("m % 128 == 0 and n % 64 == 0", {"m": 128, "n": 64}),
        ("m == 513 and n == 700", {"m": 513, "n": 700}),
        ("n % 1000003 == 0 and m > 1", {"m": 2, "n": 1000003}),
        ("n * n == 1000006000009", {"m": 1, "n": 1000003}),
        ("n % 4", {"m": 1, "n": 1}),
        ("not (n < 77 or m < 5)", {"m": 5, "n": 77}),
    ],
)
def test_the_cheapest_shape_of_a_large_domain_is_found(when: str, shape: dict[str, int]) -> None:
    found = find(contract(m=4096, n=2**24), wanted(plan(when), Path(0)))
    assert found.dimensions == shape


@pytest.mark.parametrize(
    "when", ["0", "n > 16777216", "m % 8 == 3 and m % 4 == 0", "m * n < 1", "m == 5 and not m == 5"]
)
def test_what_no_shape_takes_is_shown(when: str) -> None:
    found = find(contract(m=4096, n=2**24), wanted(plan(when), Path(0)))
    assert found.dimensions is None
    assert found.settled


def test_what_a_search_does_not_find_stays_open() -> None:
    found = find(contract(m=4096, n=2**24), wanted(plan("(m * 7919 + n * 104729) % 1000003 == 5"), Path(0)), 64)
    assert found.dimensions is None
    assert not found.settled


def test_a_hole_is_a_path_of_its_own() -> None:
    holed = plan("m != 513", "n != 700")
    found = find(contract(m=4096, n=4096), wanted(holed, Path(2)))
    assert found.dimensions == {"m": 513, "n": 700}
    assert not paths_taken(holed, {"m": 513, "n": 700})


def test_conditions_are_seen_both_ways_and_where_they_stand() -> None:
    tried = plan("m % 4 == 0 or n == 77", "1", grid=("m * (n < 9) + 1", "1", "1"), args=("y", "int32(m > 2)"))
    here = [path for path in paths(tried) if path.variant == 0]
    assert {path.condition for path in here} == {"", "m % 4 == 0", "n == 77", "n < 9", "m > 2"}
    assert {path.condition for path in here if chooses(tried, path)} == {"", "m % 4 == 0", "n == 77"}
    assert paths_taken(tried, {"m": 3, "n": 77}) == {
        Path(0),
        Path(0, "m % 4 == 0", False),
        Path(0, "n == 77", True),
        Path(0, "n < 9", False),
        Path(0, "m > 2", True),
    }
    alone = find(contract(m=4096, n=4096), wanted(tried, Path(0, "m % 4 == 0", False)))
    assert alone.dimensions == {"m": 1, "n": 77}
