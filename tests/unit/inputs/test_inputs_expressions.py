"""Expressions: what they are worth, and what never gets through."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerneltrial.inputs.expressions import MAXIMUM_LENGTH, ExpressionProblem, evaluate, names

DIMENSIONS = {"m": 31, "n": 37, "k": 29}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("ceil_div(m, 32)", 1),
        ("ceil_div(m + 2, 32)", 2),
        ("ceil_div(64, 32)", 2),
        ("2*m*n*k", 2 * 31 * 37 * 29),
        ("-m // 2", -16),
        ("-m % 4", 1),
        ("min(m, n, 7)", 7),
        ("max(m, n)", 37),
        ("m < n", 1),
        ("m < n < k", 0),
        ("k % 4 == 0 and n % 4 == 0", 0),
        ("not m", 0),
        ("m == 31 or 1 // 0", 1),
        ("m != 31 and 1 // 0", 0),
        ("m and n", 1),
        ("(((m)))", 31),
        ("  m ", 31),
        ("+m - -n", 68),
        ("4611686018427387903", 2**62 - 1),
    ],
)
def test_value(expression: str, value: int) -> None:
    result = evaluate(expression, DIMENSIONS)
    assert result == value
    assert type(result) is int


HOSTILE = [
    "9**9**9",
    "9**99999999",
    "m.real",
    "m.__class__.__mro__",
    "__import__('os').system('true')",
    "open('/etc/passwd')",
    "eval(m)",
    "print(m)",
    "ceil_div",
    "ceil_div(m)",
    "ceil_div(m, 2, 3)",
    "ceil_div(m, divisor=2)",
    "min(m)",
    "min(*(m, n))",
    "min(m, m, m, m, m, m, m, m, m)",
    "lambda: 1",
    "(lambda: 1)()",
    "(x := 9)",
    "'a' * 9",
    '"a"',
    "f'{m}'",
    "b'1'",
    "[m]",
    "m[0]",
    "{1: 2}",
    "{m}",
    "(m, n)",
    "m,",
    "[x for x in m]",
    "m if n else k",
    "m / 2",
    "m << 60",
    "m >> 1",
    "m | n",
    "m & n",
    "m ^ n",
    "~m",
    "m @ n",
    "m is n",
    "m in n",
    "True",
    "None",
    "1.5",
    "1e9",
    "1j",
    "...",
    "m\nn",
    "m; n",
    "import os",
    "x",
    "m // 0",
    "m % 0",
    "ceil_div(m, k - 29)",
    "9" * 100,
    "0x" + "f" * 40,
    "4611686018427387904",
    "4611686018427387903 + 1",
    "-4611686018427387903 - 1",
    "*".join(["m"] * 60),
    "(" * 90 + "m" + ")" * 90 + "+" * 30,
    "-" * 150 + "m",
    "not " * 40 + "m",
    "m" * (MAXIMUM_LENGTH + 1),
    "",
    "   ",
    "(",
    "m n",
    "ｍ",
    "m\u200b",
    "m\x00",
    "#",
    "m # n",
    "\\",
    "await m",
    "yield m",
    "min()(m)",
    "max(m, n)(m)",
]


@pytest.mark.parametrize("expression", HOSTILE)
def test_hostile_expressions_end_in_one_short_line(expression: str) -> None:
    started = time.perf_counter()
    with pytest.raises(ExpressionProblem) as caught:
        evaluate(expression, DIMENSIONS)
    assert time.perf_counter() - started < 0.5
    line = str(caught.value)
    assert line.startswith("expression")
    assert "\n" not in line
    assert len(line) < 400


def test_a_deep_expression_that_fits_the_length_is_refused() -> None:
    deep = "-(" * 40 + "m" + ")" * 40
    assert len(deep) <= MAXIMUM_LENGTH
    with pytest.raises(ExpressionProblem, match="deep"):
        evaluate(deep, DIMENSIONS)


def test_the_sum_of_many_terms_is_allowed_up_to_the_depth() -> None:
    assert evaluate("+".join(["m"] * 20), DIMENSIONS) == 20 * 31


def test_an_unknown_name_names_what_is_known() -> None:
    with pytest.raises(ExpressionProblem, match=r"'q' is no dimension; known are m, n, k"):
        evaluate("q + 1", DIMENSIONS)


def test_names_are_dimensions_not_functions() -> None:
    assert names("ceil_div(m, 32) * min(n, 4)") == {"m", "n"}
    assert names("7") == frozenset()


def test_a_dimension_may_not_be_shadowed_by_a_function() -> None:
    with pytest.raises(ExpressionProblem):
        evaluate("min", {"m": 1})


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="mnk0123456789 +-*/%<>=!(),abcdefilnorvx_", max_size=60))
def test_any_text_gives_an_integer_or_a_problem(text: str) -> None:
    try:
        value = evaluate(text, DIMENSIONS)
    except ExpressionProblem:
        return
    assert type(value) is int
    assert abs(value) < 2**62


_LEAVES = st.one_of(st.integers(0, 1000).map(str), st.sampled_from(["m", "n", "k"]))
_TREES = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(lambda t: f"{t[0]}({t[1]}, {t[2]})"),
    ),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(_TREES)
def test_arithmetic_is_pythons(text: str) -> None:
    try:
        value = evaluate(text, DIMENSIONS)
    except ExpressionProblem:
        return
    assert value == eval(text, {"__builtins__": {}, "min": min, "max": max}, dict(DIMENSIONS))
