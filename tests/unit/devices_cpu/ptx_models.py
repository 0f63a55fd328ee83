"""What PTX instructions do, written from the PTX ISA in Python integers and fractions: no floating point, no NumPy.

`evaluate(opcode, *operands)` takes and gives bit patterns; a predicate is 0 or 1. It shares nothing with the device.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

WIDTH = {"pred": 1, "bf16": 16, "f16x2": 32, "bf16x2": 32} | {f"{k}{w}": w for k in "usbf" for w in (8, 16, 32, 64)}


# ---------------------------------------------------------------- floats


@dataclass(frozen=True)
class Format:
    """An IEEE format: `fraction` bits behind the point, exponents from `lowest` to `highest`."""

    width: int
    fraction: int

    @property
    def exponent_bits(self) -> int:
        return self.width - 1 - self.fraction

    @property
    def highest(self) -> int:
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def lowest(self) -> int:
        return 1 - self.highest

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent_bits) - 1) << self.fraction

    @property
    def top(self) -> int:
        return 1 << (self.width - 1)


FORMATS = {"f16": Format(16, 10), "bf16": Format(16, 7), "f32": Format(32, 23), "f64": Format(64, 52)}
CANONICAL = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF}


def is_nan(bits: int, t: str) -> bool:
    f = FORMATS[t]
    return (bits & (f.top - 1)) > f.infinity


def is_inf(bits: int, t: str) -> bool:
    f = FORMATS[t]
    return (bits & (f.top - 1)) == f.infinity


def negative(bits: int, t: str) -> bool:
    return bool(bits & FORMATS[t].top)


def exact(bits: int, t: str) -> Fraction:
    """The value of a finite float."""
    f = FORMATS[t]
    exponent = (bits & (f.top - 1)) >> f.fraction
    fraction = bits & ((1 << f.fraction) - 1)
    if exponent:
        value = Fraction((1 << f.fraction) + fraction) * Fraction(2) ** (exponent - f.highest - f.fraction)
    else:
        value = Fraction(fraction) * Fraction(2) ** (f.lowest - f.fraction)
    return -value if bits & f.top else value


def rounded(value: Fraction, t: str, mode: str, zero_negative: bool = False) -> int:
    """The bits of the float nearest to `value` in the direction of `mode` (rn, rz, rm, rp)."""
    f = FORMATS[t]
    if value == 0:
        return f.top if zero_negative else 0
    sign, size = value < 0, abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    exponent = max(exponent, f.lowest)
    quantum = Fraction(2) ** (exponent - f.fraction)
    whole, rest = divmod(size, quantum)
    up = {
        "rn": rest * 2 > quantum or (rest * 2 == quantum and whole % 2 == 1),
        "rz": False,
        "rm": sign and rest > 0,
        "rp": not sign and rest > 0,
    }[mode]
    whole += up
    if whole * quantum >= Fraction(2) ** (f.highest + 1):
        to_infinity = mode == "rn" or (mode == "rm" and sign) or (mode == "rp" and not sign)
        bits = f.infinity if to_infinity else f.infinity - 1
    elif whole < 1 << f.fraction:
        bits = int(whole)
    else:
        shift = whole >> (f.fraction + 1)  # rounding reached the next power of two
        bits = ((exponent + f.highest + shift) << f.fraction) + (int(whole >> shift) - (1 << f.fraction))
    return bits | (f.top if sign else 0)


def flushed(bits: int, t: str) -> int:
    f = FORMATS[t]
    return bits & f.top if not bits & f.infinity else bits


def a_nan(t: str) -> int:
    """The NaN of a result; f64 leaves the payload open and is compared as NaN."""
    return CANONICAL.get(t, 0x7FF8 << 48)


def finish(bits: int, t: str, mods: list[str]) -> int:
    if "ftz" in mods:
        bits = flushed(bits, t)
    if "sat" in mods:
        if is_nan(bits, t) or negative(bits, t):
            return 0
        one = rounded(Fraction(1), t, "rn")
        return min(bits, one)
    if "relu" in mods:
        return 0 if negative(bits, t) else bits
    return bits


def fma(a: int, b: int, c: int, t: str, mode: str) -> int:
    if any(is_nan(x, t) for x in (a, b, c)):
        return a_nan(t)
    product_negative = negative(a, t) != negative(b, t)
    infinity, top = FORMATS[t].infinity, FORMATS[t].top
    if is_inf(a, t) or is_inf(b, t):
        zero = any(not x & (top - 1) for x in (a, b))
        if zero or (is_inf(c, t) and negative(c, t) != product_negative):
            return a_nan(t)
        return infinity | (top if product_negative else 0)
    if is_inf(c, t):
        return c
    product = exact(a, t) * exact(b, t)
    total = product + exact(c, t)
    like = product_negative == negative(c, t)
    zero_negative = product_negative if like else mode == "rm"
    return rounded(total, t, mode, zero_negative)


def add(a: int, b: int, t: str, mode: str) -> int:
    return fma(a, rounded(Fraction(1), t, "rn"), b, t, mode)


def multiply(a: int, b: int, t: str, mode: str) -> int:
    """The product alone: its zero has the product's sign."""
    sign = FORMATS[t].top if negative(a, t) != negative(b, t) else 0
    return fma(a, b, sign, t, mode)


def divide(a: int, b: int, t: str, mode: str = "rn") -> int:
    f = FORMATS[t]
    sign = f.top if negative(a, t) != negative(b, t) else 0
    zero_a, zero_b = not a & (f.top - 1), not b & (f.top - 1)
    if is_nan(a, t) or is_nan(b, t) or (is_inf(a, t) and is_inf(b, t)) or (zero_a and zero_b):
        return a_nan(t)
    if is_inf(a, t) or zero_b:
        return f.infinity | sign
    if is_inf(b, t):
        return sign
    return rounded(exact(a, t) / exact(b, t), t, mode, bool(sign))


def square_root(a: int, t: str, mode: str = "rn") -> int:
    f = FORMATS[t]
    if is_nan(a, t) or (negative(a, t) and a & (f.top - 1)):
        return a_nan(t)
    if not a & (f.top - 1) or is_inf(a, t):
        return a
    value = exact(a, t)
    scale = 4 ** (f.highest + 2 * f.fraction)  # a root of this many bits cannot hide a tie
    root = isqrt(value.numerator * scale // value.denominator)
    sticky = root * root * value.denominator != value.numerator * scale
    close = Fraction(2 * root + sticky, 2 ** (f.highest + 2 * f.fraction + 1))
    return rounded(close, t, mode)


def extreme(a: int, b: int, t: str, largest: bool, propagate: bool) -> int:
    if is_nan(a, t) or is_nan(b, t):
        if propagate or (is_nan(a, t) and is_nan(b, t)):
            return a_nan(t)
        return b if is_nan(a, t) else a

    def key(bits: int) -> int:
        return -(bits & (FORMATS[t].top - 1)) - 1 if negative(bits, t) else bits

    return max(a, b, key=key) if largest else min(a, b, key=key)


def compare_floats(word: str, a: int, b: int, t: str) -> bool:
    unordered = is_nan(a, t) or is_nan(b, t)
    if word in ("num", "nan"):
        return unordered == (word == "nan")
    base = word[:2]
    if unordered:
        return word.endswith("u")
    x, y = (_ordered(v, t) for v in (a, b))
    return {"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y}[base]


def _ordered(bits: int, t: str) -> Fraction:
    if is_inf(bits, t):
        return Fraction(-(2**2000) if negative(bits, t) else 2**2000)
    return exact(bits, t)


# ---------------------------------------------------------------- integers


def signed(value: int, width: int) -> int:
    return value - (1 << width) if value >> (width - 1) else value


def read(value: int, t: str) -> int:
    """A bit pattern as the integer that its type says."""
    width = WIDTH[t]
    value &= (1 << width) - 1
    return signed(value, width) if t[0] == "s" else value


def compare_integers(word: str, a: int, b: int, t: str) -> bool:
    if word in ("lo", "ls", "hi", "hs"):
        word = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}[word]
    x, y = read(a, t), read(b, t)
    return {"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y}[word]


def _clamp(value: int, t: str) -> int:
    width = WIDTH[t]
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if t[0] == "s" else (0, (1 << width) - 1)
    return min(max(value, low), high)


def _divided(a: int, b: int, t: str, want_quotient: bool) -> int:
    x, y = read(a, t), read(b, t)
    if y == 0:  # PTX leaves it open; the H200 gives all ones
        return -1
    quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    return quotient if want_quotient else x - quotient * y


def _bfe(a: int, position: int, length: int, t: str) -> int:
    width = WIDTH[t]
    if width == 32:  # PTX takes the low 8 bits; the H200 looks at all 32 where the field is of 64 bits
        position, length = position & 255, length & 255
    top = width - 1
    fill = 0 if t[0] == "u" or length == 0 else a >> min(position + length - 1, top) & 1
    return sum((a >> (position + i) & 1 if i < length and position + i <= top else fill) << i for i in range(width))


def _bfi(a: int, into: int, position: int, length: int, width: int) -> int:
    if width == 32:
        position, length = position & 255, length & 255
    for i in range(min(length, width)):
        if position + i < width:
            into = into & ~(1 << (position + i)) | (a >> i & 1) << (position + i)
    return into


def _prmt(a: int, b: int, selector: int) -> int:
    both = (a | b << 32).to_bytes(8, "little")
    result = 0
    for i in range(4):
        nibble = selector >> 4 * i & 15
        byte = both[nibble & 7]
        result |= ((0xFF if byte & 0x80 else 0) if nibble & 8 else byte) << 8 * i
    return result


def _lop3(a: int, b: int, c: int, table: int) -> int:
    return sum((table >> (4 * (a >> i & 1) + 2 * (b >> i & 1) + (c >> i & 1)) & 1) << i for i in range(32))


# ---------------------------------------------------------------- by opcode


def evaluate(opcode: str, *v: int) -> tuple[int, ...]:
    """The results of an instruction as bit patterns of their types' widths."""
    head, *mods = opcode.split(".")
    pairs = mods[-1].endswith("x2")
    result = _in_pairs(head, mods, *v) if pairs else _HEADS[head](mods, *v)
    results = result if isinstance(result, tuple) else (result,)
    return tuple(int(r) & ((1 << 64) - 1) for r in results)


def _in_pairs(head: str, mods: list[str], *v: int) -> int | tuple[int, ...]:
    """A packed instruction: the scalar one on the lower and on the upper elements."""
    mods = [m.removesuffix("x2") for m in mods]
    elements = 2 if head == "setp" else len(v)
    halves = [[x >> 16 * k & 0xFFFF for x in v[:elements]] + list(v[elements:]) for k in (0, 1)]
    if head == "setp":
        return tuple(_setp(mods, *h)[0] for h in halves)
    low, high = (int(_HEADS[head](mods, *h)) & 0xFFFF for h in halves)  # type: ignore[arg-type]
    return low | high << 16


def _mode(mods: list[str]) -> str:
    return next((m for m in mods if m in ("rz", "rm", "rp")), "rn")


def _flush_in(mods: list[str], t: str, v: tuple[int, ...]) -> list[int]:
    return [flushed(x, t) for x in v] if "ftz" in mods else list(v)


_DIRECTIONS = ("rn", "rz", "rm", "rp")


def _tiny_to_zero(result: int, cut: int, t: str) -> int:
    """A result whose exact value lies below the normal numbers becomes zero, rounded up to them or not (as the H200 has
    it); `cut` is the result rounded towards zero."""
    return result if cut & FORMATS[t].infinity else result & FORMATS[t].top


def _float_op(function: Callable[..., int]) -> Callable[..., int]:
    def run(mods: list[str], *v: int) -> int:
        t = mods[-1]
        ready = _flush_in(mods, t, v)
        result = function(mods, t, *ready)
        if "ftz" in mods:
            result = _tiny_to_zero(result, function(["rz", *(m for m in mods if m not in _DIRECTIONS)], t, *ready), t)
        return finish(result, t, mods)

    return run


def _arithmetic(name: str) -> Callable[..., int]:
    def on_floats(mods: list[str], t: str, a: int, b: int) -> int:
        if name == "sub":
            b ^= 0 if is_nan(b, t) else FORMATS[t].top
        return multiply(a, b, t, _mode(mods)) if name == "mul" else add(a, b, t, _mode(mods))

    def run(mods: list[str], *v: int) -> int:
        t = mods[-1]
        if t in FORMATS:
            return _float_op(on_floats)(mods, *v)
        x, y = read(v[0], t), read(v[1], t)
        if name == "mul":
            return _half(x * y, mods, t)
        total = x + y if name == "add" else x - y
        return _clamp(total, t) if "sat" in mods else total

    return run


def _half(product: int, mods: list[str], t: str) -> int:
    return product >> WIDTH[t] if "hi" in mods else product


def _mad(mods: list[str], *v: int) -> int:
    t = mods[-1]
    if "sat" in mods and t == "s32":
        return _clamp((read(v[0], t) * read(v[1], t) >> 32) + read(v[2], t), t)
    if t in FORMATS:
        return _float_op(lambda m, t, a, b, c: fma(a, b, c, t, _mode(m)))(mods, *v)
    return _half(read(v[0], t) * read(v[1], t), mods, t) + v[2]


def _mul24(mods: list[str], a: int, b: int, c: int = 0) -> int:
    t = mods[-1]
    x, y = ((signed(x & 0xFFFFFF, 24) if t == "s32" else x & 0xFFFFFF) for x in (a, b))
    return (x * y >> 16 if mods[0] == "hi" else x * y) + c


def _prmt_mode(mode: str, a: int, b: int, c: int) -> int:
    """As the table of the PTX ISA: bytes from the highest of the result to the lowest."""
    table = {
        "f4e": [(3, 2, 1, 0), (4, 3, 2, 1), (5, 4, 3, 2), (6, 5, 4, 3)],
        "b4e": [(5, 6, 7, 0), (6, 7, 0, 1), (7, 0, 1, 2), (0, 1, 2, 3)],
        "rc8": [(0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)],
        "ecl": [(3, 2, 1, 0), (3, 2, 1, 1), (3, 2, 2, 2), (3, 3, 3, 3)],
        "ecr": [(0, 0, 0, 0), (1, 1, 1, 0), (2, 2, 1, 0), (3, 2, 1, 0)],
        "rc16": [(1, 0, 1, 0), (3, 2, 3, 2), (1, 0, 1, 0), (3, 2, 3, 2)],
    }
    both = (a | b << 32).to_bytes(8, "little")
    return int.from_bytes(bytes(both[k] for k in table[mode][c & 3]), "big")


def _dp2a(mods: list[str], a: int, b: int, c: int) -> int:
    half, t, u = mods
    first = 2 if half == "hi" else 0
    return c + sum(
        read(a >> 16 * i & 0xFFFF, t[0] + "16") * read(b >> 8 * (first + i) & 255, u[0] + "8") for i in range(2)
    )


def _within(mode: str, value: int) -> int:
    return min(value, 32) if mode == "clamp" else value & 31


def _fns(mask: int, base: int, offset: int) -> int:
    """The loop of the PTX ISA; a base beyond the word is left open there and finds nothing on an H200."""
    offset = signed(offset, 32)
    if offset == 0:
        return base if base < 32 and mask >> base & 1 else -1
    position, count, step = base, abs(offset) - 1, 1 if offset > 0 else -1
    while 0 <= position < 32:
        if mask >> position & 1:
            if count == 0:
                return position
            count -= 1
        position += step
    return -1


def _szext(mods: list[str], a: int, b: int) -> int:
    mode, t = mods
    count = _within(mode, b)
    low = a & ((1 << count) - 1)
    return low - (1 << count) if t == "s32" and count and low >> (count - 1) else low


def _div(mods: list[str], *v: int) -> int:
    t = mods[-1]
    if t in FORMATS:
        return _float_op(lambda m, t, a, b: divide(a, b, t, _mode(m)))(mods, *v)
    return _divided(v[0], v[1], t, True)


def _extreme(largest: bool) -> Callable[..., int]:
    def run(mods: list[str], a: int, b: int) -> int:
        t = mods[-1]
        if t in FORMATS:
            return _float_op(lambda m, t, x, y: extreme(x, y, t, largest, "NaN" in m))(mods, a, b)
        return (max if largest else min)(a, b, key=lambda x: read(x, t))

    return run


def _neg(mods: list[str], a: int) -> int:
    t = mods[-1]
    if t in FORMATS:
        (a,) = _flush_in(mods, t, (a,))
        return a_nan(t) if is_nan(a, t) else a ^ FORMATS[t].top
    return -read(a, t)


def _abs(mods: list[str], a: int) -> int:
    t = mods[-1]
    if t in FORMATS:
        (a,) = _flush_in(mods, t, (a,))
        return a_nan(t) if is_nan(a, t) else a & (FORMATS[t].top - 1)
    return abs(read(a, t))


def _setp(mods: list[str], a: int, b: int, third: int = 0) -> tuple[int, int]:
    t = mods[-1]
    if t in FORMATS:
        a, b = _flush_in(mods, t, (a, b))
        result = compare_floats(mods[0], a, b, t)
    else:
        result = compare_integers(mods[0], a, b, t)
    both = (int(result), int(not result))
    word = next((m for m in mods if m in ("and", "or", "xor")), "")
    combine = {"": lambda x: x, "and": lambda x: x & third, "or": lambda x: x | third, "xor": lambda x: x ^ third}
    return combine[word](both[0]), combine[word](both[1])


def _set(mods: list[str], a: int, b: int) -> int:
    result = _setp([mods[0], *[m for m in mods if m == "ftz"], mods[-1]], a, b)[0]
    true = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}.get(mods[-2], -1)
    return true if result else 0


def _testp(mods: list[str], a: int) -> bool:
    what, t = mods
    f = FORMATS[t]
    subnormal = not a & f.infinity and bool(a & (f.top - 1))
    return {
        "finite": not (is_nan(a, t) or is_inf(a, t)),
        "infinite": is_inf(a, t),
        "number": not is_nan(a, t),
        "notanumber": is_nan(a, t),
        "normal": not subnormal and not (is_nan(a, t) or is_inf(a, t)),
        "subnormal": subnormal,
    }[what]


def _shift(left: bool) -> Callable[..., int]:
    def run(mods: list[str], a: int, amount: int) -> int:
        t = mods[-1]
        amount = min(amount & 0xFFFFFFFF, WIDTH[t])
        return a << amount if left else read(a, t) >> amount

    return run


def _shf(mods: list[str], a: int, b: int, c: int) -> int:
    amount = c & 31 if mods[1] == "wrap" else min(c & 0xFFFFFFFF, 32)
    both = b << 32 | a
    return both << amount >> 32 if mods[0] == "l" else both >> amount


def _bfind(mods: list[str], a: int) -> int:
    t = mods[-1]
    value = read(a, t)
    value = ~value if value < 0 else value
    if value == 0:
        return -1
    place = value.bit_length() - 1
    return WIDTH[t] - 1 - place if "shiftamt" in mods else place


def _dp4a(mods: list[str], a: int, b: int, c: int) -> int:
    def byte(x: int, i: int, t: str) -> int:
        return read(x >> 8 * i, t[0] + "8")

    return c + sum(byte(a, i, mods[0]) * byte(b, i, mods[1]) for i in range(4))


def _vabsdiff4(mods: list[str], a: int, b: int, c: int) -> int:
    far = [abs((a >> 8 * i & 255) - (b >> 8 * i & 255)) for i in range(4)]
    return c + sum(far) if mods[-1] == "add" else sum(one << 8 * i for i, one in enumerate(far))


_WHOLE = ("rni", "rzi", "rmi", "rpi")


def _whole(value: Fraction, mode: str) -> int:
    floor = value.numerator // value.denominator
    rest = value - floor
    if mode == "rni":
        return floor + (rest * 2 > 1 or (rest * 2 == 1 and floor % 2 == 1))
    return {"rmi": floor, "rpi": floor + (rest > 0), "rzi": floor + (rest > 0 and value < 0)}[mode]


def _cvt(mods: list[str], a: int, b: int = 0) -> int:
    d, s = mods[-2:]
    whole = next((m for m in mods if m in _WHOLE), "")
    if d.endswith("x2"):
        one = [*mods[:-2], d[:-2], s]
        return _cvt(one, a) << 16 | _cvt(one, b)
    if d == "tf32":
        return _to_tf32(a)
    if s not in FORMATS:
        value = read(a, s)
        if d in FORMATS:
            return finish(rounded(Fraction(value), d, _mode(mods)), d, [m for m in mods if m == "sat"])
        return _clamp(value, d) if "sat" in mods else value
    if "ftz" in mods and s == "f32":
        a = flushed(a, s)
    if d not in FORMATS:
        return _float_to_integer(a, s, d, whole)
    if is_nan(a, s):
        bits = _nan_converted(mods, a, s, d)
    elif is_inf(a, s):
        bits = FORMATS[d].infinity | (FORMATS[d].top if negative(a, s) else 0)
    else:
        value = exact(a, s)
        value = Fraction(_whole(value, whole)) if whole else value
        bits = rounded(value, d, _mode(mods), negative(a, s))
    if "ftz" in mods and d == "f32" and not is_nan(a, s):
        cut = bits if is_inf(a, s) else rounded(exact(a, s), d, "rz")
        bits = _tiny_to_zero(bits, cut, d)
    return finish(bits, d, [m for m in mods if m in ("sat", "relu")])


def _nan_converted(mods: list[str], a: int, s: str, d: str) -> int:
    """What the H200 makes of a NaN: the canonical one, but for doubles, which keep sign and upper payload and become
    quiet, and for moves (f32 to f32 and bf16 to f32 without a modifier), which keep all."""
    if len(mods) == 2 and d == "f32" and s in ("f32", "bf16"):
        return a << 32 - WIDTH[s]
    if s == "f64" and d != "f64":
        f = FORMATS[d]
        payload = a >> 52 - f.fraction & (1 << f.fraction) - 1
        return f.infinity | 1 << f.fraction - 1 | payload | (f.top if negative(a, s) else 0)
    return a_nan(d)


def _to_tf32(a: int) -> int:
    """To nearest, ties away, with 10 bits behind the point; a NaN is cut off."""
    if is_nan(a, "f32"):
        return a & ~0x1FFF
    if is_inf(a, "f32"):
        return a
    value = abs(exact(a, "f32"))
    quantum = Fraction(2) ** (max((a >> 23 & 255) - 127, -126) - 10)
    bits = rounded((value / quantum + Fraction(1, 2)).__floor__() * quantum, "f32", "rn")
    return bits | a & 1 << 31


def _float_to_integer(a: int, s: str, d: str, whole: str) -> int:
    width = WIDTH[d]
    if is_nan(a, s):
        return 1 << (width - 1) if s == "f64" or width == 64 else 0
    if is_inf(a, s):
        return _clamp(-(1 << 80) if negative(a, s) else 1 << 80, d)
    return _clamp(_whole(exact(a, s), whole), d)


_HEADS: dict[str, Callable[..., int | bool | tuple[int, ...]]] = {
    "add": _arithmetic("add"),
    "sub": _arithmetic("sub"),
    "mul": _arithmetic("mul"),
    "mad": _mad,
    "fma": _mad,
    "mul24": _mul24,
    "mad24": _mul24,
    "div": _div,
    "rem": lambda m, a, b: _divided(a, b, m[-1], False),
    "min": _extreme(False),
    "max": _extreme(True),
    "neg": _neg,
    "abs": _abs,
    "sad": lambda m, a, b, c: c + abs(read(a, m[-1]) - read(b, m[-1])),
    "setp": _setp,
    "set": _set,
    "testp": _testp,
    "and": lambda m, a, b: a & b,
    "or": lambda m, a, b: a | b,
    "xor": lambda m, a, b: a ^ b,
    "not": lambda m, a: ~a & ((1 << WIDTH[m[0]]) - 1),
    "cnot": lambda m, a: a == 0,
    "shl": _shift(True),
    "shr": _shift(False),
    "shf": _shf,
    "bfe": lambda m, a, b, c: _bfe(a, b, c, m[-1]),
    "bfi": lambda m, a, b, c, d: _bfi(a, b, c, d, WIDTH[m[-1]]),
    "bfind": _bfind,
    "popc": lambda m, a: a.bit_count(),
    "clz": lambda m, a: WIDTH[m[-1]] - a.bit_length(),
    "brev": lambda m, a: int(f"{a:0{WIDTH[m[-1]]}b}"[::-1], 2),
    "prmt": lambda m, a, b, c: _prmt_mode(m[1], a, b, c) if len(m) > 1 else _prmt(a, b, c),
    "dp2a": _dp2a,
    "bmsk": lambda m, a, b: ((1 << _within(m[0], b)) - 1 << _within(m[0], a)) & 0xFFFFFFFF,
    "szext": _szext,
    "fns": lambda m, a, b, c: _fns(a, b, c),
    "lop3": lambda m, a, b, c, table: _lop3(a, b, c, table),
    "dp4a": _dp4a,
    "vabsdiff4": _vabsdiff4,
    "rcp": _float_op(lambda m, t, a: divide(rounded(Fraction(1), t, "rn"), a, t, _mode(m))),
    "sqrt": _float_op(lambda m, t, a: square_root(a, t, _mode(m))),
    "copysign": lambda m, a, b: (a & FORMATS[m[-1]].top) | (b & (FORMATS[m[-1]].top - 1)),
    "cvt": _cvt,
}
