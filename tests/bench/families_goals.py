"""What issue 6/7 asks of the families, beside what `families_on_gpu.py` measured: a line a goal and shape."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any

from families_table import PRODUCTS, TORCH_NAMES, least, ours
from families_torch import MODES

VERSUS = {"torch.compile": tuple(MODES), "eager": TORCH_NAMES, "cuBLAS": ("eager",)}


@dataclass(frozen=True)
class Goal:
    """At each of `shapes`, the best of `families` (one product in two spaces) is at least so many times as fast."""

    families: tuple[str, ...]
    shapes: tuple[str, ...]
    versus: str
    least: float


_CUBES = {size: (f"{size}x{size}x{size}",) for size in (512, 1024, 2048, 4096)}
_AT_THE_LIMIT = (
    "layernorm_residual_f32", "rmsnorm_residual_f32", "reduce_rows_f32", "reduce_columns_f32", "transpose_f32",
)  # fmt: skip
GOALS = (
    *(Goal(("matmul_f32", "matmul_large_f32"), _CUBES[size], "cuBLAS", 0.95) for size in (512, 1024)),
    *(Goal(("matmul_f32", "matmul_large_f32"), _CUBES[size], "cuBLAS", 0.92) for size in (2048, 4096)),
    Goal(("matmul_bf16",), _CUBES[4096], "cuBLAS", 0.75),
    *(Goal((name,), ("8192x4096",), "torch.compile", 0.98) for name in _AT_THE_LIMIT),
    Goal(("softmax_wide_f32",), ("256x131072",), "torch.compile", 2.2),
    Goal(("histogram_u8",), ("67108864",), "torch.compile", 4.0),
    Goal(("cross_entropy_f32",), ("4096x32000",), "torch.compile", 1.4),
)
MEANS = {"torch.compile": 1.3, "eager": 2.2}


def ratio(reports: Sequence[dict[str, Any]], families: Sequence[str], at: str, versus: str, clock: str) -> float:
    """The other's time over our best, of all these families at a shape; not a number where one of both is absent."""
    found = [r["shapes"][at] for r in reports if r["family"] in families and "us" in r["shapes"].get(at, {})]
    best = [us for one in found if (us := least(one, ours(one), clock)) == us]
    others = [us for one in found if (us := least(one, VERSUS[versus], clock)) == us]
    return min(others) / min(best) if best and others else float("nan")


def mean(reports: Sequence[dict[str, Any]], versus: str, clock: str, without: Sequence[str] = ()) -> tuple[float, int]:
    """Geometric mean over all shapes that both have, and over how many."""
    every = ((r["family"], at) for r in reports if r["family"] not in without for at in r["shapes"])
    found = [one for name, at in every if (one := ratio(reports, (name,), at, versus, clock)) == one]
    return (exp(sum(map(log, found)) / len(found)), len(found)) if found else (float("nan"), 0)


def goals(reports: Sequence[dict[str, Any]]) -> list[str]:
    """Markdown lines: geometric means, the goals, and how many are missed; what was not measured is missed."""
    lines, missed, count = [], 0, 0
    for name, without in (("without plain products", PRODUCTS), ("over all", ())):
        for clock in ("warm", "cold"):
            means = {versus: mean(reports, versus, f"{clock}_us", without) for versus in MEANS}
            words = (f"{figure:.2f} x {versus} ({shapes} shapes)" for versus, (figure, shapes) in means.items())
            lines.append(f"Geometric mean {name}, {clock}: {', '.join(words)}")
    rows = [
        (" or ".join(g.families), at, g.versus, g.least, ratio(reports, g.families, at, g.versus, "warm_us"))
        for g in GOALS
        for at in g.shapes
    ]
    rows += [
        ("geometric mean without plain products", "all", versus, asked, mean(reports, versus, "warm_us", PRODUCTS)[0])
        for versus, asked in MEANS.items()
    ]
    lines += ["", "| family | shape | against | asked | measured | |", "| --- | --- | --- | --- | --- | --- |"]
    for name, at, versus, asked, measured in rows:
        count += 1
        bad = not measured >= asked
        missed += bad
        said = "not measured" if measured != measured else f"{measured:.2f}"
        lines.append(f"| {name} | {at} | {versus} | {asked:g} x | {said} | {'**missed**' if bad else ''} |")
    return [*lines, "", f"{missed} of {count} goals missed"]
