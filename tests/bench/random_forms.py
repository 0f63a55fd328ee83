"""Expressions of random CUDA programs by type: words, long words, floats, doubles, and conditions.

In a form, {a}, {b}, {c} are of the result's type, the other letters of the types that FIELDS gives, {r} is a rounding.
"""

ROUNDED = ("rn", "rz", "ru", "rd")
FORMS: dict[str, tuple[str, ...]] = {
    "u": (
        *("({a} + {b})", "({a} - {b})", "({a} * {b})", "({a} & {b})", "({a} | {b})", "({a} ^ {b})") * 2,
        "({a} << ({b} & 31u))", "({a} >> ({b} & 31u))", "(unsigned)((int){a} >> ({b} & 31u))", "(~{a})",
        "(0u - {a})",
        "({a} / ({b} | 1u))", "({a} % ({b} | 1u))", "(unsigned)((int){a} / (int)(({b} & 0xffffu) + 1u))",
        "(unsigned)((int){a} % (int)(({b} & 0xfffu) + 1u))", "__umulhi({a}, {b})",
        "(unsigned)__mulhi((int){a}, (int){b})",
        "(unsigned)__popc({a})", "(unsigned)__clz((int){a})", "__brev({a})", "(unsigned)__ffs((int){a})",
        "__byte_perm({a}, {b}, {c})", "__funnelshift_l({a}, {b}, {c})", "__funnelshift_rc({a}, {b}, {c})",
        "__dp4a({a}, {b}, {c})", "(unsigned)__dp4a((int){a}, (int){b}, (int){c})", "min({a}, {b})", "max({a}, {b})",
        "(unsigned)min((int){a}, (int){b})", "(unsigned)max((int){a}, (int){b})", "({q} ? {a} : {b})",
        "__usad({a}, {b}, {c})",
        "(unsigned)__sad((int){a}, (int){b}, {c})", "(unsigned)(unsigned char){a}", "(unsigned)(int)(short){a}",
        "(unsigned){U}", "(unsigned)({U} >> 32)", "bits({f})", "__float2uint_{r}({f})",
        "(unsigned)__float2int_{r}({f})",
        "__double2uint_{r}({d})", "(unsigned)__double2int_{r}({d})", "in_u[{a} & 255u]", "(unsigned){q}",
        "(unsigned)__popcll({U})", "(unsigned)__clzll((long long){U})", "mix0({a}, {f})", "mix1({a}, {f})",
        "(unsigned)__mul24((int){a}, (int){b})", "__uhadd({a}, {b})",
    ),
    "U": (
        *("({a} + {b})", "({a} - {b})", "({a} * {b})", "({a} & {b})", "({a} | {b})", "({a} ^ {b})") * 2,
        "({a} << ({u} & 63u))", "({a} >> ({u} & 63u))", "(U)((long long){a} >> ({u} & 63u))",
        "({a} / ({b} | 1ull))",
        "({a} % ({b} | 1ull))", "__umul64hi({a}, {b})", "(U)__mul64hi((long long){a}, (long long){b})",
        "__brevll({a})",
        "((U){u} * {v})", "((U)((long long)(int){u} * (int){v}))", "(((U){u} << 32) | {v})", "({q} ? {a} : {b})",
        "bits({d})", "__float2ull_{r}({f})", "(U)__float2ll_{r}({f})", "__double2ull_{r}({d})",
        "(U)__double2ll_{r}({d})",
        "min({a}, {b})", "(U)max((long long){a}, (long long){b})", "(U)(long long)(int){u}",
    ),
    "f": (
        *("({a} + {b})", "({a} - {b})", "({a} * {b})", "fmaf({a}, {b}, {c})", "({a} / {b})") * 2,
        "__fadd_{r}({a}, {b})", "__fsub_{r}({a}, {b})", "__fmul_{r}({a}, {b})", "__fmaf_{r}({a}, {b}, {c})",
        "sqrtf({a})",
        "__fdiv_{r}({a}, {b})", "__fsqrt_{r}({a})", "fminf({a}, {b})", "fmaxf({a}, {b})", "fabsf({a})", "(-({a}))",
        "floorf({a})", "ceilf({a})", "truncf({a})", "rintf({a})", "__saturatef({a})", "({q} ? {a} : {b})",
        "narrow({d})",
        "__uint2float_{r}({u})", "__int2float_{r}((int){u})", "__ull2float_{r}({U})",
        "__ll2float_{r}((long long){U})",
        "__uint_as_float({u})", "in_f[{u} & 255u]", "__frcp_{r}({a})", "__double2float_{r}(widen({a}))",
    ),
    "d": (
        *("({a} + {b})", "({a} - {b})", "({a} * {b})", "fma({a}, {b}, {c})") * 2,
        "({a} / {b})", "__dadd_{r}({a}, {b})", "__dmul_{r}({a}, {b})", "__fma_{r}({a}, {b}, {c})",
        "sqrt({a})", "widen({f})",
        "fmin({a}, {b})", "fmax({a}, {b})", "fabs({a})", "(-({a}))", "floor({a})", "ceil({a})", "trunc({a})",
        "rint({a})",
        "__uint2double_rn({u})", "__int2double_rn((int){u})", "__ull2double_{r}({U})",
        "__ll2double_{r}((long long){U})",
        "({q} ? {a} : {b})", "in_d[{u} & 255u]",
    ),
    "q": (
        "({u} < {v})", "({u} == {v})", "((int){u} <= (int){v})", "({f} < {g})", "({f} != {g})", "!({f} > {g})",
        "({d} <= {e})", "(({u} & 3u) == 0u)", "({q} && {p})", "({q} || {p})", "({q} != {p})", "({U} > {V})",
    ),
}  # fmt: skip
FIELDS = {"u": "u", "v": "u", "U": "U", "V": "U", "f": "f", "g": "f", "d": "d", "e": "d", "q": "q", "p": "q"}
# 2^52 + 1 is made of `n` when the program runs: as a constant, ptxas of CUDA 13 folds its cvt.rni.u64.f64 to 2^52 + 2
LITERALS = {
    "u": ("0u", "1u", "31u", "255u", "65535u", "0x7fffffffu", "0x80000000u", "0xffffffffu", "0x9e3779b9u"),
    "U": ("0ull", "1ull", "0xffffffffull", "0x8000000000000000ull", "0xffffffffffffffffull", "0x123456789abcdefull"),
    "f": ("0.0f", "-0.0f", "1.0f", "-1.5f", "0.1f", "3.4e38f", "1e-38f", "1e-45f", "16777217.0f", "-1e10f"),
    "d": ("0.0", "-0.0", "1.0", "0.1", "-2.5", "1e308", "1e-308", "5e-324", "(4503599627370496.0 + (n - 10))"),
    "q": ("(n > 7)",),
}
