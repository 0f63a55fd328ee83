"""Results whose exact value lies below the normal numbers are flushed even where rounding would lift them to one."""

import random

import pytest
from ptx_models import FORMATS, evaluate
from ptx_runner import execute

ROWS = 400


def _near(t: str, count: int, seed: int) -> list[list[int]]:
    """Operands whose product, quotient or fused sum comes near the smallest normal number."""
    f, draw = FORMATS[t], random.Random(seed)
    one, least, ulp = f.highest << f.fraction, 1 << f.fraction, f.fraction
    rows = []
    for _ in range(ROWS):
        a = one + draw.choice([-1, -2, -3, 0, 1, draw.randrange(1 << ulp)])
        b = least + draw.choice([0, 0, 1, 2, 3])
        c = draw.choice([0, least, least + 1, 1])
        signs = [draw.getrandbits(1) << f.width - 1 for _ in range(3)]
        operands = [a | signs[0], b | signs[1], c | signs[2]]
        if draw.random() < 0.5:
            operands[:2] = operands[1::-1]
        rows.append(operands[:count])
    return [list(column) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize(
    ("t", "count", "opcodes"),
    [
        ("f32", 2, [f"{op}{r}.ftz.f32" for op in ("mul", "add", "sub") for r in ("", ".rn", ".rz", ".rm", ".rp")]),
        ("f32", 2, [f"div{r}.ftz.f32" for r in (".rn", ".rz", ".rm", ".rp")]),
        ("f32", 3, [f"fma{r}.ftz{s}.f32" for r in (".rn", ".rz", ".rm", ".rp") for s in ("", ".sat")]),
        ("f16", 2, ["mul.ftz.f16", "add.ftz.f16", "mul.rn.ftz.sat.f16"]),
        ("f16", 3, ["fma.rn.ftz.f16", "fma.rn.ftz.relu.f16"]),
    ],
)
def test_tiny_results(t: str, count: int, opcodes: list[str]) -> None:
    columns = _near(t, count, len(opcodes))
    for opcode, rows in zip(opcodes, execute(opcodes, [t], [t] * count, columns), strict=True):
        want = [evaluate(opcode, *operands) for operands in zip(*columns, strict=True)]
        assert rows == want, opcode
