"""Time kernel families on a card: baseline, the best of its space, torch eager, torch.compile, and what limits it.

    PYTHONPATH=workflow python tests/bench/families_on_gpu.py [--only PART,NAME,...] [--limit 16] [--no-compile]
    ... --only softmax_wide_f32 --where "WAY >= 4" --limit 200 --no-compile

Without `--only` all families; PART is `rows`, `products` or `others`. Made to fit in four minutes on 16 cores.
A process a family: all build their sources by NVRTC for the card's own architecture and have torch compile, side by
side; then each in its turn has the card, for 30 s at most. Of each space its seeds, the prior's first and every so
many-th configuration are taken (`--limit` a family, about), or with `--where` those that meet an expression; each must
give the baseline's outputs, twice bit by bit, on the values that are timed. Times are of CUDA graphs of many calls,
warm, and of graphs of one call behind a reading of 256 MB, cold (less an empty pair of events); medians of interleaved
rounds. torch.compile is the better of its default and `max-autotune-no-cudagraphs`; what cannot be captured is timed
alone. Writes $OUT/families_PARTS.json and .md, which ends with the ten best of each shape by one reading.
What of torch fails is a line below the table; where it cannot even be imported, ours are measured alone
(`families_bare`). Needs an NVIDIA card.
"""

import argparse
import fcntl
import json
import multiprocessing as mp
import os
import signal
import sys
import tempfile
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import families_bare
from families_bench import ROOT, Bench, Bound, Entry, built, checked, entries_of
from families_goals import goals
from families_import import torch_import
from families_shapes import FAMILIES, PARTS, Arrays, Shape, inputs_of
from families_table import HALVES, ranking, table
from families_torch import MODES, Beside, admit, one_at_a_time, prepared

from kerneltrial.inputs.contracts import read_contract
from kerneltrial.inputs.expressions import evaluate
from kerneltrial.records.contract import Contract

RANKED = 10
LATE_S, TURN_S = 20, 30  # how long those that still compile are waited for, and how long one has the card


def key(shape: Shape) -> str:
    return "x".join(str(size) for size in shape.values())


def family(name: str, arguments: argparse.Namespace, folder: Path, turn: Any) -> None:
    """A child: prepare, wait for its turn with the card, leave `NAME.json`; again after each shape."""
    os.environ |= {"TORCHINDUCTOR_CACHE_DIR": f"{folder}/{name}", "TRITON_CACHE_DIR": f"{folder}/{name}/triton"}
    arguments.imported.adopt()
    report: dict[str, Any] = {"family": name, "shapes": {}}

    def leave() -> None:
        (folder / f"{name}.part").write_text(json.dumps(report))
        (folder / f"{name}.part").rename(folder / f"{name}.json")

    def wait() -> None:
        (folder / f"{name}.ready").touch()
        turn.wait()

    try:
        _family(name, arguments, report, wait, leave)
    except Exception:
        report["fault"] = traceback.format_exc()[-3000:]
    leave()


def _family(name: str, arguments: argparse.Namespace, report: dict[str, Any], wait: Any, leave: Any) -> None:
    from kerneltrial.devices.cuda.probe import probe

    began = time.perf_counter()
    contract = read_contract(ROOT / "kernels" / name / "contract.yaml")
    # Processes, as NVRTC compiles one source at a time in each; forked before the driver and torch are there.
    compilers = arguments.compilers * (2 if name.startswith("matmul") else 1)  # long unrolled loops
    with ProcessPoolExecutor(compilers, mp_context=mp.get_context("fork")) as pool:
        pool.submit(int).result()
        device = probe()
        entries = entries_of(name, FAMILIES[name], device, arguments.limit, arguments.where)
        futures = [pool.submit(built, e.source, device.arch, contract.options) for e in entries]
        import torch

        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.set_grad_enabled(False)
        report["beside"] = one_at_a_time(arguments.lock)
        arrays = {key(s): inputs_of(torch, contract, s) for s in FAMILIES[name].shapes}
        beside = prepared(torch, contract, arrays, () if arguments.no_compile else tuple(MODES), arguments.until)
        _load(entries, futures)
    report["prepared_s"] = time.perf_counter() - began
    wait()
    began = time.perf_counter()
    bench = Bench(torch)
    if name in HALVES:
        report["rates"] = {"tensor_flop_per_s": bench.product_rate(contract.arrays[0].dtype)}
    for shape in FAMILIES[name].shapes:
        at = key(shape)
        try:
            report["shapes"][at] = _shape(bench, contract, entries, shape, arrays.pop(at), beside.pop(at))
        except Exception:
            report["shapes"][at] = {"fault": traceback.format_exc()[-2000:]}
        torch.cuda.empty_cache()
        report["entries"] = [
            {"name": e.name, "parameters": e.parameters, "us": e.us, "wrong": e.wrong} for e in entries
        ]
        report["card_s"] = time.perf_counter() - began
        leave()


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
            entry.clusters[at] = bound.clusters()
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
        "ranked": [(e.name, e.us[at], e.clusters.get(at, 0)) for e in ranked[:RANKED]],
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


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help=f"of {', '.join((*PARTS, *FAMILIES))}; by commas")
    parser.add_argument("--limit", type=int, default=16, help="configurations of a space, about")
    parser.add_argument("--where", default="", help='those of a space alone that meet this: "WAY >= 4"')
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument("--prepare", type=float, default=80, help="seconds after which nothing more is compiled")
    parser.add_argument("--seconds", type=float, default=215, help="after that the rest is left out")
    arguments = parser.parse_args()
    words = arguments.only.split(",")
    arguments.names = list(dict.fromkeys(name for word in words for name in PARTS.get(word, (word,))))
    arguments.compilers = max(2, 24 // max(1, len(arguments.names)))
    unknown = [name for name in arguments.names if name not in FAMILIES]
    if unknown:
        parser.error(f"{unknown[0]!r} is neither a part nor a family: {', '.join((*PARTS, *FAMILIES))}")
    return arguments


def _measured(arguments: argparse.Namespace, folder: Path, began: float) -> list[dict[str, Any]]:
    """Every family's report, of children that prepare side by side and have the card in turn."""
    forked = mp.get_context("fork")
    if not arguments.imported.version:
        alone = forked.Process(target=families_bare.measure, args=(arguments, folder, began + arguments.seconds))
        alone.start()
        alone.join(arguments.seconds + 10)
        alone.kill()
        return _left(arguments.names, folder)
    turns = {name: forked.Event() for name in arguments.names}
    start = partial(forked.Process, target=family)
    children = {name: start(args=(name, arguments, folder, turn)) for name, turn in turns.items()}
    for child in children.values():
        child.start()

    def ready(name: str) -> bool:
        return (folder / f"{name}.ready").exists() or not children[name].is_alive()

    while not all(map(ready, children)) and time.time() < arguments.until + LATE_S:
        time.sleep(0.1)
    waiting = list(children)
    with arguments.lock.open() as held:  # none is stopped while it has the lock
        fcntl.flock(held, fcntl.LOCK_EX)
        late = [child for name, child in children.items() if not ready(name)]
        for child in late:  # they would disturb those that are timed
            os.kill(child.pid, signal.SIGSTOP)
    while waiting and time.perf_counter() - began < arguments.seconds:
        name = next(filter(ready, waiting), waiting[0])
        waiting.remove(name)
        turns[name].set()
        if children[name] in late:
            os.kill(children[name].pid, signal.SIGCONT)
        children[name].join(min(TURN_S, began + arguments.seconds - time.perf_counter()))
        children[name].kill()
    for child in children.values():
        child.kill()
    return _left(arguments.names, folder)


def _left(names: list[str], folder: Path) -> list[dict[str, Any]]:
    lost = {"shapes": {}, "fault": "no time was left, or its process died"}
    paths = {name: folder / f"{name}.json" for name in names}
    return [json.loads(p.read_text()) if p.exists() else {"family": n, **lost} for n, p in paths.items()]


def main() -> int:
    arguments = _arguments()
    began = time.perf_counter()
    os.environ["CUDA_CACHE_DISABLE"] = "1"  # NVRTC is not to talk to the driver in forked processes
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # no pool of compilers in each child
    imported = arguments.imported = torch_import()
    if imported.why:
        print(f"importing torch failed\n{imported.why}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="families-"))
    arguments.lock = folder / "lock"
    arguments.lock.touch()
    first = mp.get_context("fork").Process(target=ceilings, args=(folder / "limits",))
    first.start()
    first.join()
    if not (folder / "limits").exists():
        print("no card, or its ceilings could not be measured: see above")
        return 1
    limits = json.loads((folder / "limits").read_text())
    arguments.until = time.time() + arguments.prepare
    reports = _measured(arguments, folder, began)
    stem = Path(os.environ.get("OUT", folder)) / f"families_{arguments.only.replace(',', '_')[:60]}"
    content = {"limits": limits, "torch": imported.version, "families": reports}
    stem.with_suffix(".json").write_text(json.dumps(content))  # before anything is made of it
    version = imported.version or "absent"
    driver = limits["fingerprint"].get("driver")
    head = f"{limits['card']}, driver {driver}, torch {version}; microseconds, warm unless it says cold"
    spent = (f"{r['family']} {r.get('prepared_s', 0):.0f}+{r.get('card_s', 0):.0f}" for r in reports)
    last = f"{time.perf_counter() - began:.0f} s (prepared + on the card: {', '.join(spent)})"
    text = "\n".join([head, "", *table(reports, limits), "", *goals(reports), "", *ranking(reports), "", last])
    stem.with_suffix(".md").write_text(text + "\n")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
