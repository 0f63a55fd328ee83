"""Mutants that survive, each with the reason, by kernel and name; found by mutation.py and looked at by a person.

`EQUAL` starts the reasons of those that give the same results for all that the contract allows; the others
are mistakes that the validator does not see.
"""

EQUAL = "equal: "
_SMALL = EQUAL + "it never holds more than 127"
_WITHIN = EQUAL + "the contract's largest array has fewer than 2^31 elements"
_BEHIND = EQUAL + "one more turn, all of it behind the end, adds zeros"

KNOWN: dict[str, dict[str, str]] = {
    "transpose_f32/baseline.cu": {
        "3:11 narrow: int -> signed char": _SMALL,
        "8:40 constant: 1 -> 2": EQUAL + "more padding of a shared tile",
        "10:10 narrow: int -> signed char": _SMALL,
        "14:10 narrow: int -> signed char": _SMALL,
        "12:39 narrow: long long -> int": _WITHIN,
        "16:16 narrow: long long -> int": _WITHIN,
    },
    "reduce_rows_f32/baseline.cu": {
        "18:21 condition: == -> !=": EQUAL + "the other threads store the same value (ADR 16)",
        "18:24 constant: 0 -> 1": EQUAL + "another thread stores the same value",
        "9:30 narrow: long long -> int": "wrong from 2^31 elements on, which no case has",
    },
    "reduce_columns_f32/baseline.cu": {
        "4:11 narrow: int -> signed char": _SMALL,
        "13:74 narrow: long long -> int": "wrong from 2^31 elements on, which no case has",
    },
    "rmsnorm_residual_f32/baseline.cu": {"22:30 narrow: long long -> int": _WITHIN},
    "softmax_f32/baseline.cu": {
        "30:30 narrow: long long -> int": _WITHIN,
        "31:22 narrow: long long -> int": _WITHIN,
    },
    "scan_i32/baseline.cu": {
        "10:31 bound: < -> <=": EQUAL + "a step as wide as the block adds nothing",
        "24:47 constant: 0 -> 1": EQUAL + "what lies behind the end is in no sum that is used",
        "34:31 bound: < -> <=": _BEHIND,
        "35:73 constant: 0 -> 1": EQUAL + "what lies behind the end is in no sum that is used",
        "38:16 arithmetic: += -> =": "wrong in the third turn, from n = 524,289 on; the largest case has 524,288",
    },
    "matmul_f32/baseline.cu": {
        "9:11 narrow: int -> signed char": _SMALL,
        "10:11 narrow: int -> signed char": _SMALL,
        "11:11 narrow: int -> signed char": EQUAL + "128 threads, as -128 of launch bounds that nothing else reads",
        "11:37 arithmetic: / -> *": EQUAL + "wider launch bounds, which nothing else reads",
        "49:11 narrow: int -> signed char": _SMALL,
        "53:31 bound: < -> <=": _BEHIND,
        "19:30 narrow: long long -> int": _WITHIN,
        "34:22 narrow: long long -> int": _WITHIN,
    },
    "matmul_f32/register_blocked.cu": {
        "12:11 narrow: int -> signed char": _SMALL,
        "13:11 narrow: int -> signed char": _SMALL,
        "14:11 narrow: int -> signed char": _SMALL,
        "15:11 narrow: int -> signed char": _SMALL,
        "16:11 narrow: int -> signed char": EQUAL + "launch bounds of 0, which nothing else reads",
        "17:11 narrow: int -> signed char": _SMALL,
        "18:11 narrow: int -> signed char": _SMALL,
        "25:17 constant: 2 -> 3": EQUAL + "a third buffer, never used",
        "90:11 narrow: int -> signed char": _SMALL,
        "92:11 narrow: int -> signed char": _SMALL,
        "97:5 narrow: int -> signed char": _SMALL,
        "97:15 constant: 0 -> 1": EQUAL + "it begins with the other of two buffers",
        "98:31 bound: < -> <=": _BEHIND,
        "34:30 narrow: long long -> int": _WITHIN,
        "49:22 narrow: long long -> int": _WITHIN,
    },
}
