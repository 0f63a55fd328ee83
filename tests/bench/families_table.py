"""The table of `families_on_gpu.py`, in Markdown: a line a family and shape."""

from typing import Any

from families_torch import MODES

TORCH_NAMES = ("eager", "cuSPARSE", "scatter_add", "histc")
PRODUCTS = ("matmul_f32", "matmul_large_f32", "matmul_f16", "matmul_bf16")  # there, eager is cuBLAS
HALVES = ("matmul_f16", "matmul_bf16")
NAN = float("nan")
_HEAD = (
    "family", "shape", "baseline", "best", "eager", "compile", "÷ base", "÷ eager", "÷ compile", "limit", "share",
    "cold best / eager / compile", "cold share", "best configuration",
)  # fmt: skip


def least(found: dict[str, Any], names: Any, clock: str) -> float:
    """The smallest of so many entrants' times; not a number where none was timed."""
    times = [found["us"][n][clock] for n in names if n in found["us"]]
    if clock == "warm_us":
        times += [v for k, v in found["torch"].items() if k.endswith("_us") and k.removesuffix("_us") in names]
    return min(times, default=NAN)


def ours(found: dict[str, Any]) -> list[str]:
    return [n for n in found["us"] if n not in ("baseline", *TORCH_NAMES, *MODES)]


def floors(found: dict[str, Any], family: str, limits: dict[str, float]) -> tuple[str, float, float]:
    """What bounds a warm call, its least microseconds, and those of a cold one."""
    warm_rate, memory = limits["dram_bytes_per_s"], "dram"
    if found["bytes"] < limits["l2_bytes"] / 2:
        warm_rate, memory = limits["l2_bytes_per_s"], "L2"
    unit = "tensor" if family in HALVES else "fp32"
    rate = limits.get(f"{unit}_flop_per_s", NAN)
    arithmetic = found["operations"] / rate * 1e6 if rate == rate else 0.0
    warm, cold = found["bytes"] / warm_rate * 1e6, found["bytes"] / limits["dram_bytes_per_s"] * 1e6
    return (memory, warm, max(cold, arithmetic)) if warm > arithmetic else (unit, arithmetic, max(cold, arithmetic))


def row(found: dict[str, Any], family: str, at: str, limits: dict[str, float]) -> list[str]:
    base, best, eager, compiled = (least(found, n, "warm_us") for n in (("baseline",), ours(found), TORCH_NAMES, MODES))
    limit, warm, cold = floors(found, family, limits)
    cold_best, *others = (least(found, n, "cold_us") for n in (ours(found), TORCH_NAMES, MODES))
    winner = min(ours(found), key=lambda n: found["us"][n]["warm_us"], default="")
    return [
        family, at, *(f"{us:.2f}" for us in (base, best, eager, compiled)),
        *(f"{us / best:.2f}" for us in (base, eager, compiled)), limit, f"{warm / best:.2f}",
        " / ".join(f"{us:.1f}" for us in (cold_best, *others)), f"{cold / cold_best:.2f}", winner,
    ]  # fmt: skip


def table(reports: list[dict[str, Any]], limits: dict[str, Any]) -> list[str]:
    """Markdown lines; what is absent or wrong is said below."""
    lines = ["| " + " | ".join(_HEAD) + " |", "|" + " --- |" * len(_HEAD)]
    below: list[str] = []
    for report in reports:
        rates = limits | report.get("rates", {})
        for at, found in report["shapes"].items():
            if "us" not in found:
                below.append(f"- {report['family']} {at}: {str(found.get('fault', '')).splitlines()[-1:]}")
                continue
            lines.append("| " + " | ".join(row(found, report["family"], at, rates)) + " |")
            below += [f"- {report['family']} {at} {n}: {why}" for n, why in found["torch"].items() if _odd(n, why)]
        below += [f"- {report['family']}: {report['fault'].splitlines()[-1]}"] if "fault" in report else []
        wrong = [e for e in report.get("entries", ()) if e["wrong"]]
        below += [f"- {report['family']}: {len(wrong)} wrong, {wrong[0]['name']}: {wrong[0]['wrong']}"] if wrong else []
    return [*lines, "", *below]


def _odd(name: str, why: Any) -> bool:
    """Whether a note says more than by how little a result differs."""
    return isinstance(why, str) and name != "family" and not why.startswith("differs from the baseline by")


def ranking(reports: list[dict[str, Any]]) -> list[str]:
    """A line a shape: the best configurations by one warm reading each; values alone, in the order that is named first.

    Behind a time, in brackets: how many clusters the card holds at once, of kernels that have them.
    """
    lines = []
    for report in reports:
        for at, found in report["shapes"].items():
            cells = []
            for name, us, clusters in found.get("ranked", ()):
                values = " ".join(word.partition("=")[2] or word for word in name.split())
                cells.append(f"{us:.2f}{f' ({clusters})' * bool(clusters)}: {values}")
            named = next((n for n, _, _ in found.get("ranked", ()) if "=" in n), "")
            names = " ".join(word.partition("=")[0] for word in named.split())
            if cells:
                lines.append(f"- {report['family']} {at}, {names}: {'; '.join(cells)}")
    return ["Best by one warm reading, microseconds:", "", *lines] if lines else []
