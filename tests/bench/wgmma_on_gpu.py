"""Check and time the wgmma configurations of the half products on a Hopper card, beside cuBLAS.

    PYTHONPATH=workflow python tests/bench/wgmma_on_gpu.py [matmul_bf16 matmul_f16] [--limit N]

A process a configuration, so that one that hangs or faults is killed alone (after 7 s with the card). Each must come
within the rounding of its type of a float64 product, twice bit by bit, on whole, ragged and tiny shapes; then 1024,
2048, 4096 and 8192 cubed are timed warm, by CUDA graphs, with torch.matmul (cuBLAS) before and after. Prints a line a
configuration, best first at 4096; writes $OUT/wgmma.json. Needs torch; takes about 40 s.
"""

import argparse
import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from families_bench import ROOT, Bench, Bound, Entry, built
from families_import import Imported, torch_import

from kerneltrial.inputs.contracts import read_contract
from kerneltrial.propose.search.space import read_space
from kerneltrial.records.device import Device

CHECKED = (
    (128, 256, 64), (64, 64, 64), (1, 8, 8), (256, 256, 256), (131, 264, 200), (300, 520, 72), (1000, 1000, 1000),
    (129, 8, 1024), (31, 37, 29), (4096, 4096, 4096),
)  # fmt: skip
TIMED = (1024, 2048, 4096, 8192)
ROUNDING = {"matmul_bf16": 2**-8, "matmul_f16": 2**-11}
TRUNCATED = 2**-18  # of the sum of terms: what tensor cores lose of float32 sums, as the contracts allow
HOPPER = Device(kind="cuda", arch="sm_90a", name="", fingerprint={})
SECONDS, ALONE_S = 90, 7


def configurations(name: str, limit: int) -> list[dict[str, int]]:
    """One of each tile and cluster first, the deepest ring that fits and bands of 8; then the others."""
    space = read_space(ROOT / "kernels" / name / "space.yaml", HOPPER)
    found = [dict(c) for c in space.configurations if c["WGMMA"] == 1]
    deepest = {(c["BM"], c["BN"]): c["STAGES"] for c in sorted(found, key=lambda c: c["STAGES"])}
    order = sorted(
        found,
        key=lambda c: (c["BAND"] != 8 or c["STAGES"] < deepest[c["BM"], c["BN"]], -c["BM"] * c["BN"], -c["CLUSTER"]),
    )
    return order[:limit] if limit else order


def child(name: str, parameters: dict[str, int], lock: Path) -> dict[str, Any]:
    """What one configuration does."""
    import torch

    torch.set_grad_enabled(False)
    contract = read_contract(ROOT / "kernels" / name / "contract.yaml")
    space = read_space(ROOT / "kernels" / name / "space.yaml", HOPPER)
    entry = Entry("", space.source(parameters).decode(), space.plan(parameters), parameters)
    cubin = built(entry.source, HOPPER.arch, contract.options)
    kind = getattr(torch, contract.arrays[0].dtype)
    found: dict[str, Any] = {"errors": {}, "us": {}, "cublas_us": {}}
    torch.zeros(1, device="cuda")  # opens the card, which takes a while, before this child's turn
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        signal.alarm(ALONE_S)
        bench = Bench(torch)
        from kerneltrial.devices.cuda.launches import Module

        entry.module = Module(cubin)
        for m, n, k in CHECKED:
            print(f"at {m}x{n}x{k}", file=sys.stderr, flush=True)
            found["errors"][f"{m}x{n}x{k}"] = _error(bench, entry, contract, (m, n, k), kind)
        for size in TIMED:
            print(f"timing {size}", file=sys.stderr, flush=True)
            found["us"][size], found["cublas_us"][size] = _times(bench, entry, contract, size, kind)
        signal.alarm(0)
    return found


def _inputs(torch: Any, m: int, n: int, k: int, kind: Any) -> dict[str, Any]:
    generator = torch.Generator(device="cuda").manual_seed(m + n + k)
    a = torch.randn(m, k, generator=generator, device="cuda").to(kind)
    return {"a": a, "b": torch.randn(k, n, generator=generator, device="cuda").to(kind)}


def _error(bench: Bench, entry: Entry, contract: Any, shape: tuple[int, int, int], kind: Any) -> float:
    """The largest difference from float64, over what rounding and float32 sums explain; infinite if bits differ."""
    torch = bench.torch
    arrays = _inputs(torch, *shape, kind)
    bound = Bound(torch, entry, contract, dict(zip("mnk", shape, strict=True)), arrays, bench.stream)
    torch.cuda.synchronize()
    with torch.cuda.stream(bench.stream):
        bound()
        first = bound.outputs["c"].clone()
        bound.outputs["c"].fill_(float("nan"))
        bound()
    torch.cuda.synchronize()
    a, b = arrays["a"].double(), arrays["b"].double()
    want, terms = a @ b, a.abs() @ b.abs()
    if not torch.equal(first, bound.outputs["c"]):
        return float("inf")
    off = (first.double() - want).abs() / (want.abs() * ROUNDING[contract.name] + terms * TRUNCATED)
    return float(off.max()) if bool(torch.isfinite(first).all()) else float("inf")


def _times(bench: Bench, entry: Entry, contract: Any, size: int, kind: Any) -> tuple[float, float]:
    torch = bench.torch
    arrays = _inputs(torch, size, size, size, kind)
    bound = Bound(torch, entry, contract, dict.fromkeys("mnk", size), arrays, bench.stream)
    out = torch.empty(size, size, device="cuda", dtype=kind)

    def vendor() -> None:
        torch.matmul(arrays["a"], arrays["b"], out=out)

    torch.cuda.synchronize()
    ours, theirs = [], []
    abouts = {"ours": bench.once(bound), "theirs": bench.once(vendor)}
    for _ in range(3):
        theirs.append(bench.coarse(vendor, abouts["theirs"]))
        ours.append(bench.coarse(bound, abouts["ours"]))
    return sorted(ours)[1], sorted(theirs)[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["matmul_bf16", "matmul_f16"])
    parser.add_argument("--limit", type=int, default=6, help="configurations a family; 0: all")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        name, parameters, lock = arguments.child
        sys.path[:] = json.loads(os.environ["MODULE_PATH"])
        print(json.dumps(child(name, json.loads(parameters), Path(lock))))
        return 0
    imported = torch_import()
    if not imported.version:
        print(f"importing torch failed\n{imported.why}")
        return 1
    return report({name: run(name, configurations(name, arguments.limit), imported) for name in arguments.names})


def run(name: str, wanted: list[dict[str, int]], imported: Imported) -> list[dict[str, Any]]:
    """All configurations, side by side but for the card."""
    environment = {**os.environ, "MODULE_PATH": json.dumps(imported.path)}
    environment |= {"PYTHONPYCACHEPREFIX": imported.pycache} if imported.pycache else {}
    with tempfile.NamedTemporaryFile() as lock:
        words = [[sys.executable, __file__, "--child", name, json.dumps(c), lock.name] for c in wanted]
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        children = [subprocess.Popen(one, env=environment, **pipes) for one in words]
        found = []
        for one, parameters in zip(children, wanted, strict=True):
            try:
                out, words_of_it = one.communicate(timeout=SECONDS)
            except subprocess.TimeoutExpired:
                one.kill()
                out, words_of_it = one.communicate()
            good = one.returncode == 0
            found.append(
                {"parameters": parameters, **(json.loads(out) if good else {})}
                | ({} if good else {"fault": f"status {one.returncode}: {words_of_it[-400:]}"})
            )
    return found


def report(families: dict[str, list[dict[str, Any]]]) -> int:
    if "OUT" in os.environ:
        (Path(os.environ["OUT"]) / "wgmma.json").write_text(json.dumps(families))
    bad = 0
    for name, found in families.items():
        print(f"{name}: TFLOP/s at {TIMED}, over cuBLAS; worst error over what is explained")
        for one in sorted(found, key=lambda f: f.get("us", {}).get("4096", 1e9)):
            p = one["parameters"]
            words = " ".join(f"{w}={p[w]}" for w in ("BM", "BN", "STAGES", "BAND", "CLUSTER"))
            if "fault" in one:
                bad += 1
                print(f"  {words}  FAULT {one['fault']}")
                continue
            off = {shape: error for shape, error in one["errors"].items() if not error <= 1}
            bad += bool(off)
            rates = (
                f"{2 * int(s) ** 3 / us / 1e6:.0f} ({one['cublas_us'][s] / us:.2f})" for s, us in one["us"].items()
            )
            print(f"  {words}  {' '.join(rates)}  {max(one['errors'].values()):.2f}  {off or 'right'}")
        right = [f for f in found if "us" in f and all(error <= 1 for error in f["errors"].values())]
        best = max((f["cublas_us"]["4096"] / f["us"]["4096"] for f in right), default=0.0)
        print(f"best at 4096: {name}, over cuBLAS ({best:.2f})")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
