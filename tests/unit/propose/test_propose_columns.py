"""Expressions over columns agree with `inputs.expressions`, row by row."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerneltrial.inputs.expressions import ExpressionProblem, evaluate
from kerneltrial.propose.search.columns import column

ROWS = {"a": [1, 2, 3, 7, 64], "b": [5, 1, 2, 3, 8], "c": [9, 8, 1, 4, 32]}
COLUMNS = {name: np.array(values, dtype=np.int64) for name, values in ROWS.items()}

LEAVES = st.sampled_from(["a", "b", "c", "1", "2", "17"])
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "<", "<=", "==", "!=", ">", ">="]), inner).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        st.tuples(inner, st.sampled_from(["//", "%"]), LEAVES).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(lambda t: f"{t[0]}({t[1]}, {t[2]})"),
        st.tuples(inner, LEAVES).map(lambda t: f"ceil_div({t[0]}, {t[1]})"),
        inner.map(lambda e: f"(not {e})"),
        inner.map(lambda e: f"(-{e})"),
    ),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(EXPRESSIONS)
def test_every_row_has_the_value_of_the_single_expression(expression: str) -> None:
    rows = [dict(zip(ROWS, values, strict=True)) for values in zip(*ROWS.values(), strict=True)]
    try:
        expected = [evaluate(expression, row) for row in rows]
    except ExpressionProblem:  # longer or deeper than allowed
        with pytest.raises(ExpressionProblem):
            column(expression, COLUMNS)
        return
    assert column(expression, COLUMNS).tolist() == expected


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("a // (b - 5)", "divides by zero"),
        ("a % (b - 5)", "divides by zero"),
        ("a * 4000000000 * 4000000000", "2\\*\\*62"),
        ("d + 1", "'d' is not known"),
        ("a ** b", "not allowed"),
        ("__import__(a)", "cannot be called"),
    ],
)
def test_what_has_no_value_is_refused(expression: str, says: str) -> None:
    with pytest.raises(ExpressionProblem, match=says):
        column(expression, COLUMNS)
