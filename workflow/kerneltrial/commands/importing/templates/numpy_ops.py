"""Operations of an imported problem in NumPy, in float64, each with a first-order bound on what float32 may lose.

`kerneltrial import torch` copies this text into the oracle that it writes; it imports nothing of kerneltrial. A value
is `Val(v, e)`: the numbers, and how far float32 may be from them after the operations so far, in units of its epsilon
(an operation adds a rounding of its own result to what it hands on of its operands' errors).
"""

import math

import numpy as np


class Val:
    def __init__(self, v, e=None):
        self.v = np.asarray(v)
        self.e = np.zeros(self.v.shape) if e is None else np.broadcast_to(np.asarray(e, float), self.v.shape)


def _erf(a):
    return np.array([math.erf(x) for x in a.ravel()]).reshape(a.shape)


def _trunc_divide(a, b):
    return np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))


def _sigmoid(a):
    return 1 / (1 + np.exp(-a))


def _pow_error(v, a, b, ea, eb):
    slope = np.where(np.asarray(b) == 0, 0.0, np.abs(b * np.power(a, np.asarray(b) - 1.0)))
    return slope * ea + np.where(eb > 0, np.abs(v * np.log(np.abs(a))), 0.0) * eb + 4 * np.abs(v)


# Where a result underflows it may lose the smallest normal number (Higham, section 2.1): here in epsilons. 1 / (1 +
# exp(100)) is 0 in float32, and what multiplies it is small no more.
UNDER = 2.0**-103
UNDERFLOW = ("mul", "div", "pow", "exp", "exp2", "reciprocal", "sigmoid")


# Value, and the error that is handed on plus what the operation itself rounds.
ONE = {
    "neg": (np.negative, lambda v, a, e: e),
    "abs": (np.abs, lambda v, a, e: e),
    "exp": (np.exp, lambda v, a, e: np.abs(v) * (e + 2)),
    "expm1": (np.expm1, lambda v, a, e: np.abs(v + 1) * e + 2 * np.abs(v)),
    "log": (np.log, lambda v, a, e: e / np.abs(a) + np.abs(v)),
    "log1p": (np.log1p, lambda v, a, e: e / np.abs(1 + a) + np.abs(v)),
    "log2": (np.log2, lambda v, a, e: 1.5 * e / np.abs(a) + np.abs(v)),
    "log10": (np.log10, lambda v, a, e: 0.5 * e / np.abs(a) + 2 * np.abs(v)),
    "exp2": (np.exp2, lambda v, a, e: np.abs(v) * (0.7 * e + 2)),
    "sqrt": (np.sqrt, lambda v, a, e: np.where(e > 0, e / np.maximum(2 * v, 1e-300), 0.0) + np.abs(v)),
    "rsqrt": (lambda a: 1 / np.sqrt(a), lambda v, a, e: np.abs(v / a) * e / 2 + 2 * np.abs(v)),
    "reciprocal": (lambda a: 1 / a, lambda v, a, e: v * v * e + np.abs(v)),
    "sin": (np.sin, lambda v, a, e: np.abs(np.cos(a)) * e + 2 * np.abs(v) + 1),
    "cos": (np.cos, lambda v, a, e: np.abs(np.sin(a)) * e + 2 * np.abs(v) + 1),
    "sinh": (np.sinh, lambda v, a, e: np.cosh(a) * e + 3 * np.abs(v)),
    "cosh": (np.cosh, lambda v, a, e: np.abs(np.sinh(a)) * e + 3 * np.abs(v)),
    "tanh": (np.tanh, lambda v, a, e: (1 - v * v) * e + 2 * np.abs(v)),
    "atan": (np.arctan, lambda v, a, e: e / (1 + a * a) + 2 * np.abs(v)),
    "asin": (np.arcsin, lambda v, a, e: e / np.sqrt(1 - a * a) + 4 * np.abs(v)),
    "acos": (np.arccos, lambda v, a, e: e / np.sqrt(1 - a * a) + 4 * np.abs(v)),
    "tan": (np.tan, lambda v, a, e: (1 + v * v) * e + 4 * np.abs(v)),
    "erf": (_erf, lambda v, a, e: 1.13 * np.exp(-a * a) * e + 2 * np.abs(v)),
    "sigmoid": (_sigmoid, lambda v, a, e: v * (1 - v) * e + 3 * np.abs(v)),
    "relu": (lambda a: np.maximum(a, 0), lambda v, a, e: np.where(a >= 0, e, 0.0)),
    "sign": (np.sign, lambda v, a, e: 0 * e),
    "floor": (np.floor, lambda v, a, e: 0 * e),
    "ceil": (np.ceil, lambda v, a, e: 0 * e),
    "round": (np.rint, lambda v, a, e: 0 * e),
    "trunc": (np.trunc, lambda v, a, e: 0 * e),
    "isnan": (np.isnan, lambda v, a, e: 0 * e),
    "isinf": (np.isinf, lambda v, a, e: 0 * e),
    "bitwise_not": (np.invert, lambda v, a, e: 0 * e),
    "logical_not": (np.logical_not, lambda v, a, e: 0 * e),
}
TWO = {
    "add": (np.add, lambda v, a, b, ea, eb: ea + eb + np.abs(v)),
    "sub": (np.subtract, lambda v, a, b, ea, eb: ea + eb + np.abs(v)),
    "mul": (np.multiply, lambda v, a, b, ea, eb: np.abs(b) * ea + np.abs(a) * eb + np.abs(v)),
    "div": (np.divide, lambda v, a, b, ea, eb: (ea + np.abs(v) * eb) / np.abs(b) + np.abs(v)),
    "pow": (np.power, _pow_error),
    "fmod": (np.fmod, lambda v, a, b, ea, eb: ea + np.abs(v)),
    "maximum": (np.maximum, lambda v, a, b, ea, eb: np.maximum(ea, eb)),
    "minimum": (np.minimum, lambda v, a, b, ea, eb: np.maximum(ea, eb)),
    "gt": (np.greater, lambda v, a, b, ea, eb: 0 * ea),
    "ge": (np.greater_equal, lambda v, a, b, ea, eb: 0 * ea),
    "lt": (np.less, lambda v, a, b, ea, eb: 0 * ea),
    "le": (np.less_equal, lambda v, a, b, ea, eb: 0 * ea),
    "eq": (np.equal, lambda v, a, b, ea, eb: 0 * ea),
    "ne": (np.not_equal, lambda v, a, b, ea, eb: 0 * ea),
    "logical_and": (np.logical_and, lambda v, a, b, ea, eb: 0 * ea),
    "logical_or": (np.logical_or, lambda v, a, b, ea, eb: 0 * ea),
    "bitwise_and": (np.bitwise_and, lambda v, a, b, ea, eb: 0 * ea),
    "bitwise_or": (np.bitwise_or, lambda v, a, b, ea, eb: 0 * ea),
    "bitwise_xor": (np.bitwise_xor, lambda v, a, b, ea, eb: 0 * ea),
    "bitwise_left_shift": (np.left_shift, lambda v, a, b, ea, eb: 0 * ea),
    "bitwise_right_shift": (np.right_shift, lambda v, a, b, ea, eb: 0 * ea),
    "integer_floor_divide": (np.floor_divide, lambda v, a, b, ea, eb: 0 * ea),
    "integer_trunc_divide": (_trunc_divide, lambda v, a, b, ea, eb: 0 * ea),
    "remainder": (np.mod, lambda v, a, b, ea, eb: ea + np.abs(np.floor(a / b)) * eb + np.abs(v)),
    "atan2": (np.arctan2, lambda v, a, b, ea, eb: (np.abs(b) * ea + np.abs(a) * eb) / (a * a + b * b) + 4 * np.abs(v)),
}


def _val(x):
    return x if isinstance(x, Val) else Val(x)


def _of_kind(v, kind):
    """Numbers as the kind holds them; float32 stays float64 here."""
    if kind == "bool":
        return np.asarray(v) != 0
    if kind.startswith("int"):
        whole = np.asarray(np.trunc(v)).astype(np.int64)
        return whole.astype(np.int32).astype(np.int64) if kind == "int32" else whole  # what overflows wraps around
    return np.asarray(v).astype(np.float64)


def point(fn, kind, *operands):
    vals = [_val(x) for x in operands]
    if fn == "where":
        c, a, b = vals
        return Val(_of_kind(np.where(c.v, a.v, b.v), kind), np.where(c.v, a.e, b.e))
    if fn == "to":
        return Val(_of_kind(vals[0].v, kind), vals[0].e)
    if kind == "float32":
        vals = [Val(x.v.astype(np.float64), x.e) for x in vals]
    lost = UNDER if fn in UNDERFLOW else 0.0
    if len(vals) == 1:
        value, error = ONE[fn]
        v = value(vals[0].v)
        return Val(_of_kind(v, kind), _finite(error(v, vals[0].v, vals[0].e)) + lost)
    value, error = TWO[fn]
    (a, b) = vals
    v = value(a.v, b.v)
    return Val(_of_kind(v, kind), _finite(error(v, a.v, b.v, a.e, b.e)) + lost if kind == "float32" else None)


def _finite(e):
    return np.where(np.isfinite(e), e, 0.0)


def each(x, move):
    """A change of places: the same for numbers and errors."""
    return Val(move(x.v), move(x.e))


def reduce(fn, kind, x, dims, correction, shape):
    dims, v, e = tuple(dims), x.v, x.e
    if fn == "sum":
        exact = np.sum(_of_kind(v, kind), axis=dims)
        return Val(exact, np.sum(e + np.abs(v), axis=dims))
    if fn == "prod":
        product = np.prod(_of_kind(v, kind), axis=dims)
        size = v.size / max(1, product.size)
        share = np.sum(np.where(v != 0, e / np.maximum(np.abs(v), 1e-300), 0.0), axis=dims)
        return Val(product, np.abs(product) * (size + share))
    if fn == "var":
        mean = v.mean(axis=dims, keepdims=True)
        size = v.size / max(1, np.prod(shape, dtype=int))
        far = v - mean
        lost = np.sum(2 * np.abs(far) * (e + np.abs(v).mean(axis=dims, keepdims=True)) + 2 * far * far, axis=dims)
        return Val(np.sum(far * far, axis=dims) / (size - correction), lost / (size - correction))
    if fn in ("max", "min"):
        return Val(getattr(np, fn)(v, axis=dims), np.max(e, axis=dims))
    if fn == "any":
        return Val(np.any(v, axis=dims))
    order = [d for d in range(v.ndim) if d not in dims] + list(dims)
    flat = np.transpose(v, order).reshape(*shape, -1)
    return Val(getattr(np, fn)(flat, axis=-1).astype(np.int64))


def matmul(a, b):
    return Val(a.v @ b.v, np.abs(a.v) @ np.abs(b.v) + a.e @ np.abs(b.v) + np.abs(a.v) @ b.e)


def scan(fn, kind, x, dim):
    if fn == "sum":
        return Val(np.cumsum(_of_kind(x.v, kind), axis=dim), np.cumsum(x.e + np.abs(x.v), axis=dim))
    product = np.cumprod(_of_kind(x.v, kind), axis=dim)
    share = np.cumsum(1 + np.where(x.v != 0, x.e / np.maximum(np.abs(x.v), 1e-300), 0.0), axis=dim)
    return Val(product, np.abs(product) * share)


def pad(x, low, shape, value):
    places = tuple(slice(at, at + size) for at, size in zip(low, x.v.shape, strict=True))
    v, e = np.full(shape, value, x.v.dtype), np.zeros(shape)
    v[places], e[places] = x.v, x.e
    return Val(v, e)


def take(x, index, dim):
    at = np.where(index.v < 0, index.v + x.v.shape[dim], index.v)
    return each(x, lambda a: np.take_along_axis(a, at, axis=dim))


def index(x, at, *tensors):
    where = tuple([slice(None)] * at + [one.v for one in tensors])
    return each(x, lambda a: a[where])


def _windows(x, kernel, stride, dilation, sizes):
    """For each place in the kernel: the place, and the input's numbers under it for every output."""
    for place in np.ndindex(*kernel):
        cut = tuple(
            slice(p * d, p * d + (n - 1) * s + 1, s) for p, d, s, n in zip(place, dilation, stride, sizes, strict=True)
        )
        yield place, x[(slice(None), slice(None), *cut)]


def conv(x, w, shape, stride, padding, dilation, transposed, groups):
    if not transposed:
        parts = [(x.v, w.v), (np.abs(x.v), np.abs(w.v)), (x.e, np.abs(w.v)), (np.abs(x.v), w.e)]
        v, *e = (_conv(a, b, shape, stride, padding, dilation, groups) for a, b in parts)
        return Val(v, sum(e))
    parts = [(x.v, w.v), (np.abs(x.v), np.abs(w.v)), (x.e, np.abs(w.v)), (np.abs(x.v), w.e)]
    v, *e = (_transposed(a, b, shape, stride, padding, dilation, groups) for a, b in parts)
    return Val(v, sum(e))


def _conv(x, w, shape, stride, padding, dilation, groups):
    wide = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)])
    out, each_in, each_out = np.zeros(shape), w.shape[1], shape[1] // groups
    for place, under in _windows(wide, w.shape[2:], stride, dilation, shape[2:]):
        for g in range(groups):
            weights = w[(slice(g * each_out, (g + 1) * each_out), slice(None), *place)]
            part = np.tensordot(weights, under[:, g * each_in : (g + 1) * each_in], axes=(1, 1))
            out[:, g * each_out : (g + 1) * each_out] += np.moveaxis(part, 1, 0)
    return out


def _transposed(x, w, shape, stride, padding, dilation, groups):
    each_in, each_out = x.shape[1] // groups, w.shape[1]
    spans = [
        (n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(x.shape[2:], stride, w.shape[2:], dilation, strict=True)
    ]
    wide = np.zeros((*shape[:2], *(max(n, p + m) for n, p, m in zip(spans, padding, shape[2:], strict=True))))
    for place in np.ndindex(*w.shape[2:]):
        cut = tuple(
            slice(p * d, p * d + (n - 1) * s + 1, s)
            for p, d, s, n in zip(place, dilation, stride, x.shape[2:], strict=True)
        )
        for g in range(groups):
            weights = w[(slice(g * each_in, (g + 1) * each_in), slice(None), *place)]
            part = np.tensordot(weights, x[:, g * each_in : (g + 1) * each_in], axes=(0, 1))
            wide[(slice(None), slice(g * each_out, (g + 1) * each_out), *cut)] += np.moveaxis(part, 1, 0)
    cut = tuple(slice(p, p + n) for p, n in zip(padding, shape[2:], strict=True))
    return wide[(slice(None), slice(None), *cut)]


def pool(fn, x, shape, kernel, stride, padding, dilation, include, divisor):
    lead = [1] * (len(kernel) + 2 - x.v.ndim)
    v, e, out = x.v.reshape(*lead, *x.v.shape), x.e.reshape(*lead, *x.v.shape), (*lead, *shape)
    edges = [(0, 0), (0, 0), *((p, p) for p in padding)]
    fill = -np.inf if fn == "max" else 0.0
    wide, lost, ones = np.pad(v, edges, constant_values=fill), np.pad(e, edges), np.pad(np.ones(v.shape), edges)
    under = [a for _, a in _windows(wide, kernel, stride, dilation, out[2:])]
    errors = [a for _, a in _windows(lost, kernel, stride, dilation, out[2:])]
    if fn == "max":
        return Val(np.max(under, axis=0).reshape(shape), np.max(errors, axis=0).reshape(shape))
    count = sum(a for _, a in _windows(ones, kernel, stride, dilation, out[2:]))
    count = divisor or (float(np.prod(kernel)) if include else count)
    error = sum(np.abs(a) for a in under) + sum(errors)
    return Val((sum(under) / count).reshape(shape), (error / count).reshape(shape))
