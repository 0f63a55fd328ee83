"""Mutants that survive, each with the reason, by kernel and name; found by mutation.py and looked at by a person."""

KNOWN: dict[str, dict[str, str]] = {
    "transpose_f32/baseline.cu": {
        "3:11 narrow: int -> signed char": "equal: a constant of 32",
    },
}
