"""Time every kernel family on a card: baseline, the best of its space, torch eager, torch.compile, and what limits it.

    PYTHONPATH=workflow python tests/bench/families_on_gpu.py [NAME ...] [--limit 40] [--no-compile]

A process a family: all build their sources by NVRTC for the card's own architecture and have torch compile, side by
side; then one at a time has the card. Of each space its seeds, the prior's first and every so many-th configuration
are taken (`--limit` a family, about); each must give the baseline's outputs, twice bit by bit, on the values that are
timed. Times are of CUDA graphs of many calls, warm, and of graphs of one call behind a reading of 256 MB, cold (less
an empty pair of events); medians of interleaved rounds. torch.compile is the better of its default and
`max-autotune-no-cudagraphs`; what cannot be captured is timed call by call. Writes $OUT/families.json.
Needs torch and an NVIDIA card.
"""

import argparse
import json
import multiprocessing as mp
import os
import sys
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from families_bench import ROOT, Bench, Bound, Entry, built, checked, entries_of
from families_shapes import FAMILIES, Arrays, Shape, inputs_of
from families_torch import MODES, Beside, admit, prepared

from kerneltrial.inputs.contracts import read_contract
from kerneltrial.inputs.expressions import evaluate
from kerneltrial.records.contract import Contract

TORCH_NAMES = ("eager", "cuSPARSE", "scatter_add", "histc")


def key(shape: Shape) -> str:
    return "x".join(str(size) for size in shape.values())


def family(name: str, arguments: argparse.Namespace, folder: Path, ready: Any, turn: Any) -> None:
    """A child: prepare, wait for the others, take the card, leave `NAME.json`."""
    os.environ |= {"TORCHINDUCTOR_CACHE_DIR": f"{folder}/{name}", "TRITON_CACHE_DIR": f"{folder}/{name}/triton"}
    report: dict[str, Any] = {"family": name, "shapes": {}}
    try:
        _family(name, arguments, report, lambda: _wait(folder / f"{name}.ready", ready), turn)
    except Exception:
        report["fault"] = traceback.format_exc()[-3000:]
    (folder / f"{name}.part").write_text(json.dumps(report))
    (folder / f"{name}.part").rename(folder / f"{name}.json")


def _wait(mark: Path, ready: Any) -> None:
    mark.touch()
    ready.wait()


def _family(name: str, arguments: argparse.Namespace, report: dict[str, Any], wait: Any, turn: Any) -> None:
    import torch

    from kerneltrial.devices.cuda.probe import probe

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.set_grad_enabled(False)
    began = time.perf_counter()
    device = probe()
    contract = read_contract(ROOT / "kernels" / name / "contract.yaml")
    entries = entries_of(name, FAMILIES[name], device, arguments.limit)
    with ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(built, e, device.arch, contract.options) for e in entries]
        arrays = {key(s): inputs_of(torch, contract, s) for s in FAMILIES[name].shapes}
        beside = prepared(torch, contract, arrays, () if arguments.no_compile else tuple(MODES), arguments.until)
        _load(entries, futures)
    report["prepared_s"] = time.perf_counter() - began
    wait()
    with turn:
        began = time.perf_counter()
        bench = Bench(torch)
        for shape in FAMILIES[name].shapes:
            at = key(shape)
            try:
                report["shapes"][at] = _shape(bench, contract, entries, shape, arrays.pop(at), beside.pop(at))
            except Exception:
                report["shapes"][at] = {"fault": traceback.format_exc()[-2000:]}
            torch.cuda.empty_cache()
        report["card_s"] = time.perf_counter() - began
    report["entries"] = [{"name": e.name, "parameters": e.parameters, "us": e.us, "wrong": e.wrong} for e in entries]


def _load(entries: list[Entry], futures: list[Any]) -> None:
    from kerneltrial.devices.cuda.launches import Module

    for entry, future in zip(entries, futures, strict=True):
        try:
            entry.module = Module(future.result())
        except Exception as fault:
            entry.wrong = str(fault)[:400]


def _shape(
    bench: Bench, contract: Contract, entries: list[Entry], shape: Shape, arrays: Arrays, beside: list[Beside]
) -> dict[str, Any]:
    at = key(shape)
    wanted: dict[str, Any] = {}
    for entry in (e for e in entries if e.module is not None and not e.wrong):
        try:
            bound = Bound(bench.torch, entry, contract, shape, arrays, bench.stream)
            bench.torch.cuda.synchronize()
            about = bench.once(bound)
            wanted = wanted or {n: o.clone() for n, o in bound.outputs.items()}
            entry.wrong = checked(bench, bound, wanted)
            if entry.wrong:
                entry.wrong = f"{at}: {entry.wrong}"
                continue
            least = min((e.us[at] for e in entries if at in e.us), default=about)
            entry.us[at] = about if about > 3 * least + 5 else bench.coarse(bound, about)
        except Exception as fault:
            entry.wrong = f"{at}: {type(fault).__name__}: {fault}"[:300]
            if "TurnedDown" not in type(fault).__name__ and "CUDA" in str(fault):
                raise
    ranked = sorted((e for e in entries if at in e.us), key=lambda e: e.us[at])
    keep = [*ranked[:3], *(e for e in ranked[3:] if e.name == "baseline")]
    subjects = {e.name: (Bound(bench.torch, e, contract, shape, arrays, bench.stream), e.us[at]) for e in keep}
    notes: dict[str, Any] = {"family": contract.name}
    for one in beside:
        admit(bench, one, wanted, subjects, notes)
    return {
        "bytes": evaluate(contract.bytes, shape),
        "operations": evaluate(contract.operations, shape),
        "torch": notes,
        "us": bench.fine(subjects),
        "ranked": [(e.name, e.us[at]) for e in ranked[:8]],
    }


def ceilings(path: Path) -> None:
    """A child: the card's measured ceilings."""
    from kerneltrial.devices.cuda.ceilings import measure
    from kerneltrial.devices.cuda.context import Context
    from kerneltrial.devices.cuda.probe import probe

    context = Context(probe().arch)
    found = measure(context)
    fields = ("dram_bytes_per_s", "l2_bytes_per_s", "l2_bytes", "fp32_flop_per_s", "launch_us")
    content = {"card": context.device.name, "fingerprint": context.device.fingerprint}
    path.write_text(json.dumps(content | {name: getattr(found, name) for name in fields}))


def table(reports: list[dict[str, Any]], limits: dict[str, Any]) -> list[str]:
    """A line a family and shape; `x` columns are over the best of ours; `share` is the roofline's floor over it."""
    head = f"{'family':25s}{'shape':17s}{'base':>9s}{'best':>9s}{'eager':>9s}{'compile':>9s}"
    lines = [head + "  x base x eager x comp share  cold best/eager/compile  winner"]
    for report in reports:
        for at, found in report["shapes"].items():
            row = _row(found, limits) if "us" in found else str(found.get("fault", "").splitlines()[-1:])
            lines.append(f"{report['family']:25s}{at:17s}" + row)
        if "fault" in report:
            lines.append(f"{report['family']:25s}{report['fault'].splitlines()[-1]}")
        wrong = [e for e in report.get("entries", ()) if e["wrong"]]
        lines += [f"    {len(wrong)} wrong: {wrong[0]['name']}: {wrong[0]['wrong'][:160]}"] if wrong else []
    return lines


def _row(found: dict[str, Any], limits: dict[str, Any]) -> str:
    us, strange = found["us"], float("nan")
    ours = [n for n in us if n not in ("baseline", *TORCH_NAMES, *MODES)]

    def least(names: Any, clock: str) -> float:
        return min((us[n][clock] for n in names if n in us), default=strange)

    base, best, eager, compiled = (least(n, "warm_us") for n in (("baseline",), ours, TORCH_NAMES, MODES))
    eager = min([eager, *(v for k, v in found["torch"].items() if k.endswith("_us"))], key=lambda v: (v != v, v))
    floor = max(found["bytes"] / limits["dram_bytes_per_s"], found["operations"] / limits["fp32_flop_per_s"]) * 1e6
    cold = "/".join(f"{least(names, 'cold_us'):.1f}" for names in (ours, TORCH_NAMES, MODES))
    winner = min(ours, key=lambda n: us[n]["warm_us"]) if ours else ""
    ratios = f"{base / best:6.2f} {eager / best:7.2f} {compiled / best:6.2f} {floor / best:5.2f}"
    return f"{base:9.2f}{best:9.2f}{eager:9.2f}{compiled:9.2f}  {ratios}  {cold}  {winner}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(FAMILIES)}")
    parser.add_argument("--limit", type=int, default=40, help="configurations of a space, about")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument("--prepare", type=float, default=70, help="seconds after which nothing more is compiled")
    parser.add_argument("--seconds", type=float, default=220, help="after that the rest is left out")
    arguments = parser.parse_args()
    began = time.perf_counter()
    arguments.until = time.time() + arguments.prepare
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # no pool of compilers in each child
    import torch  # once, before the children are forked; nothing of it touches the card in this process

    folder = Path(tempfile.mkdtemp(prefix="families-"))
    forked = mp.get_context("fork")
    first = forked.Process(target=ceilings, args=(folder / "limits",))
    first.start()
    first.join()
    limits = json.loads((folder / "limits").read_text())
    print(f"{limits['card']}, driver {limits['fingerprint'].get('driver')}; microseconds, warm unless it says cold")
    names = arguments.names or list(FAMILIES)
    ready, turn = forked.Event(), forked.Lock()
    start = partial(forked.Process, target=family)
    children = {name: start(args=(name, arguments, folder, ready, turn)) for name in names}
    for child in children.values():
        child.start()
    while time.perf_counter() - began < arguments.seconds and any(child.is_alive() for child in children.values()):
        late = time.time() > arguments.until + 45
        if late or all((folder / f"{n}.ready").exists() or not c.is_alive() for n, c in children.items()):
            ready.set()
        time.sleep(0.1)
    for child in children.values():
        child.kill()
    lost = {"shapes": {}, "fault": "no time was left, or its process died"}
    paths = {name: folder / f"{name}.json" for name in names}
    reports = [json.loads(p.read_text()) if p.exists() else {"family": n, **lost} for n, p in paths.items()]
    print("\n".join(table(reports, limits)))
    spent = (f"{r['family']} {r.get('prepared_s', 0):.0f}+{r.get('card_s', 0):.0f}" for r in reports)
    print(f"{time.perf_counter() - began:.0f} s (prepared + on the card: {', '.join(spent)})")
    if "OUT" in os.environ:
        content = {"limits": limits, "torch": str(torch.__version__), "families": reports}
        (Path(os.environ["OUT"]) / "families.json").write_text(json.dumps(content))
    return 0


if __name__ == "__main__":
    sys.exit(main())
