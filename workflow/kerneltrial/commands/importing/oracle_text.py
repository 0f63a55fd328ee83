"""The oracle of an imported problem as a Python file that stands alone: NumPy in float64, and the scale of rounding."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kerneltrial.commands.importing.graph import Graph, Op, Operand

TEMPLATE = Path(__file__).with_name("templates") / "numpy_ops.py"


def oracle_text(graph: Graph, outputs: dict[str, str], story: str) -> str:
    """Return the text of oracle.py; `outputs` maps the contract's names to the graph's."""
    runtime = TEMPLATE.read_text().partition('"""\n\n')[2]
    lines = [f"    {g.name} = Val({_wide(g.name, g.dtype)})" for g in graph.given]
    freed = graph.freed()
    for op in graph.ops:
        lines.append(f"    {op.name} = {_line(op)}")
        lines += [f"    del {', '.join(freed[op.name])}"] if freed[op.name] else []
    found = ", ".join(f'"{mine}": {theirs}' for mine, theirs in outputs.items())
    shapes = {mine: repr(graph.shapes[theirs] or (1,)) for mine, theirs in outputs.items()}
    whole = {mine: graph.kinds[theirs] for mine, theirs in outputs.items()}
    values = ", ".join(
        f'"{m}": got["{m}"].v.reshape({shapes[m]})' + ("" if k == "float32" else ".astype(np.int64)")
        for m, k in whole.items()
    )
    terms = ", ".join(
        f'"{m}": (got["{m}"].e + np.abs(_kept(got["{m}"].v))).reshape({shapes[m]})'
        for m, k in whole.items()
        if k == "float32"
    )
    body = "\n".join(lines)
    return (
        f'"""{story}\n\nValues in float64; terms: what float32 may lose, in epsilons, to first order.\n"""\n\n'
        f"{runtime}\n\ndef _graph(inputs):\n{body}\n    return {{{found}}}\n\n\n"
        "def _kept(v):\n    return np.where(np.isfinite(v), v, 0.0)\n\n\n"
        f"def oracle(inputs, dims):\n    got = _graph(inputs)\n    return {{{values}}}\n\n\n"
        f"def terms(inputs, dims):\n    got = _graph(inputs)\n    return {{{terms}}}\n"
    )


def _wide(name: str, kind: str) -> str:
    given = f'inputs["{name}"]'
    if kind == "bool":
        return f"{given} != 0"
    return f"{given}.astype(np.float64)" if kind == "float32" else f"{given}.astype(np.int64)"


def _word(value: Operand) -> str:
    if isinstance(value, str):
        return value
    text = repr(value)
    return {"inf": "np.inf", "-inf": "-np.inf", "nan": "np.nan"}.get(text, text)


def _line(op: Op) -> str:
    a, words = op.attributes, [_word(one) for one in op.operands]
    shape = repr(tuple(op.shape))
    match op.form:
        case "constant":
            values = ", ".join(_word(v) for v in a["values"])
            return f'Val(_of_kind(np.array([{values}]).reshape({shape}), "{op.kind}"))'
        case "point":
            return f'point("{a["fn"]}", "{op.kind}", {", ".join(words)})'
        case "reshape":
            return f"each({words[0]}, lambda a: a.reshape({shape}))"
        case "permute":
            return f"each({words[0]}, lambda a: np.transpose(a, {tuple(a['dims'])}))"
        case "expand":
            return f"each({words[0]}, lambda a: np.broadcast_to(a, {shape}))"
        case "slice":
            before = ":, " * a["dim"]
            stop = a["start"] + (op.shape[a["dim"]] - 1) * a["step"] + 1
            return f"each({words[0]}, lambda a: a[{before}{a['start']}:{stop}:{a['step']}])"
        case "flip":
            return f"each({words[0]}, lambda a: np.flip(a, {tuple(a['dims'])}))"
        case "pad":
            return f"pad({words[0]}, {tuple(a['low'])}, {shape}, {_word(a['value'])})"
        case "cat":
            parts = (f"np.concatenate([{', '.join(f'{w}.{part}' for w in words)}], axis={a['dim']})" for part in "ve")
            return f"Val({', '.join(parts)})"
        case "iota":
            return f'Val(_of_kind({a["start"]!r} + {a["step"]!r} * np.arange({op.size}), "{op.kind}"))'
        case "reduce":
            return f'reduce("{a["fn"]}", "{op.kind}", {words[0]}, {tuple(a["dims"])}, {a["correction"]!r}, {shape})'
        case "matmul":
            return f"matmul({', '.join(words)})"
        case "conv":
            rest = _rest(a, ("stride", "padding", "dilation", "transposed", "groups"))
            return f"conv({', '.join(words)}, {shape}, {rest})"
        case "pool":
            rest = _rest(a, ("kernel", "stride", "padding", "dilation", "include", "divisor"))
            return f'pool("{a["fn"]}", {words[0]}, {shape}, {rest})'
        case "scan":
            return f'scan("{a["fn"]}", "{op.kind}", {words[0]}, {a["dim"]})'
        case "take":
            return f"take({', '.join(words)}, {a['dim']})"
        case "index":
            return f"index({words[0]}, {a['at']}, {', '.join(words[1:])})"


def _rest(attributes: Mapping[str, Any], keys: Sequence[str]) -> str:
    values = (attributes[key] for key in keys)
    return ", ".join(repr(tuple(value) if isinstance(value, list) else value) for value in values)
