"""Elementwise operations: how many operands, whether the result is a truth value, and how CUDA C++ writes them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Point:
    """`cuda`: a format of the operands {0}, {1}, {2} in float32; `whole`: the same for integers, where it differs."""

    operands: int
    cuda: str
    whole: str = ""
    boolean: bool = False


POINTS: dict[str, Point] = {
    "add": Point(2, "({0} + {1})"),
    "sub": Point(2, "({0} - {1})"),
    "mul": Point(2, "({0} * {1})"),
    "div": Point(2, "({0} / {1})"),
    "pow": Point(2, "powf({0}, {1})"),
    "fmod": Point(2, "fmodf({0}, {1})", "({0} % {1})"),
    "maximum": Point(2, "larger({0}, {1})", "max((long long){0}, (long long){1})"),
    "minimum": Point(2, "smaller({0}, {1})", "min((long long){0}, (long long){1})"),
    "where": Point(3, "({0} ? {1} : {2})"),
    "gt": Point(2, "({0} > {1})", boolean=True),
    "ge": Point(2, "({0} >= {1})", boolean=True),
    "lt": Point(2, "({0} < {1})", boolean=True),
    "le": Point(2, "({0} <= {1})", boolean=True),
    "eq": Point(2, "({0} == {1})", boolean=True),
    "ne": Point(2, "({0} != {1})", boolean=True),
    "logical_and": Point(2, "({0} && {1})", boolean=True),
    "logical_or": Point(2, "({0} || {1})", boolean=True),
    "bitwise_and": Point(2, "({0} & {1})"),
    "bitwise_or": Point(2, "({0} | {1})"),
    "bitwise_xor": Point(2, "({0} ^ {1})"),
    "bitwise_not": Point(1, "(~{0})"),
    "bitwise_left_shift": Point(2, "({0} << {1})"),
    "bitwise_right_shift": Point(2, "({0} >> {1})"),
    "integer_trunc_divide": Point(2, "({0} / {1})"),
    "integer_floor_divide": Point(2, "floor_divided({0}, {1})"),
    "remainder": Point(2, "left_over({0}, {1})", "left_over((long long){0}, {1})"),
    "logical_not": Point(1, "(!{0})", boolean=True),
    "isnan": Point(1, "({0} != {0})", boolean=True),
    "isinf": Point(1, "(fabsf({0}) == INFINITY)", boolean=True),
    "neg": Point(1, "(-{0})"),
    "abs": Point(1, "fabsf({0})", "abs({0})"),
    "exp": Point(1, "expf({0})"),
    "expm1": Point(1, "expm1f({0})"),
    "log": Point(1, "logf({0})"),
    "log1p": Point(1, "log1pf({0})"),
    "log2": Point(1, "log2f({0})"),
    "log10": Point(1, "log10f({0})"),
    "exp2": Point(1, "exp2f({0})"),
    "sqrt": Point(1, "sqrtf({0})"),
    "rsqrt": Point(1, "(1.0f / sqrtf({0}))"),
    "reciprocal": Point(1, "(1.0f / {0})"),
    "sin": Point(1, "sinf({0})"),
    "cos": Point(1, "cosf({0})"),
    "sinh": Point(1, "sinhf({0})"),
    "cosh": Point(1, "coshf({0})"),
    "tanh": Point(1, "tanhf({0})"),
    "atan": Point(1, "atanf({0})"),
    "asin": Point(1, "asinf({0})"),
    "acos": Point(1, "acosf({0})"),
    "tan": Point(1, "tanf({0})"),
    "atan2": Point(2, "atan2f({0}, {1})"),
    "erf": Point(1, "erff({0})"),
    "sigmoid": Point(1, "(1.0f / (1.0f + expf(-{0})))"),
    "relu": Point(1, "larger({0}, 0.0f)", "max((long long){0}, 0LL)"),
    "sign": Point(1, "(float)(({0} > 0) - ({0} < 0))", "(({0} > 0) - ({0} < 0))"),
    "floor": Point(1, "floorf({0})", "{0}"),
    "ceil": Point(1, "ceilf({0})", "{0}"),
    "round": Point(1, "rintf({0})", "{0}"),
    "trunc": Point(1, "truncf({0})", "{0}"),
    "to": Point(1, "{0}"),
}
