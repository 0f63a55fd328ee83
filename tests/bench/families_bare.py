"""Families on a card without torch, for `families_on_gpu.py` where it cannot be imported: baseline, configurations.

Values, buffers and the warm clock are the trial's own. Every configuration must give the baseline's output, as near as
`families_bench` asks. There is no cold time here, and nothing of PyTorch's to compare with.
"""

import argparse
import json
import multiprocessing as mp
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from families_bench import DIFFERENCE, ROOT, Entry, built, entries_of
from families_shapes import FAMILIES, Shape

from kerneltrial.devices.cuda.clocks import Batch, call_each_set
from kerneltrial.devices.cuda.context import Context
from kerneltrial.devices.cuda.driver import CudaError
from kerneltrial.devices.cuda.launches import Module, TurnedDown
from kerneltrial.devices.cuda.probe import probe
from kerneltrial.devices.cuda.subjects import PlanSubject, SharedBuffers
from kerneltrial.inputs.contracts import read_contract
from kerneltrial.inputs.expressions import evaluate
from kerneltrial.inputs.resolve import resolve
from kerneltrial.inputs.values import generate
from kerneltrial.judge.precision import decode
from kerneltrial.records.case import Case
from kerneltrial.records.contract import Contract

BATCH_US, CALLS_AT_MOST, READINGS = 500.0, 64, 9
NAN = float("nan")


def measure(arguments: argparse.Namespace, folder: Path, until: float) -> None:
    """A child: every family in turn, a file each; what would begin after `until` is left out."""
    with ProcessPoolExecutor(14, mp_context=mp.get_context("fork")) as pool:
        pool.submit(int).result()  # forks, before the driver is there
        device = probe()
        entries = {
            name: entries_of(name, FAMILIES[name], device, arguments.limit, arguments.where) for name in arguments.names
        }
        futures = {}
        for name, found in entries.items():
            options = read_contract(ROOT / "kernels" / name / "contract.yaml").options
            futures[name] = [pool.submit(built, e.source, device.arch, options) for e in found]
        context = Context(device.arch)
        for name, found in entries.items():
            if time.perf_counter() > until:
                break
            report = {"family": name, "shapes": _family(context, name, found, futures[name], until)}
            report["entries"] = [
                {"name": e.name, "parameters": e.parameters, "us": e.us, "wrong": e.wrong} for e in found
            ]
            (folder / f"{name}.json").write_text(json.dumps(report))
        pool.shutdown(wait=False, cancel_futures=True)


def _family(context: Context, name: str, entries: list[Entry], futures: list[Any], until: float) -> dict[str, Any]:
    contract = read_contract(ROOT / "kernels" / name / "contract.yaml")
    for entry, future in zip(entries, futures, strict=True):
        try:
            entry.module = Module(future.result())
        except (RuntimeError, CudaError) as fault:
            entry.wrong = str(fault)[:400]
    shapes = {}
    for shape in FAMILIES[name].shapes:
        if time.perf_counter() < until:
            shapes["x".join(map(str, shape.values()))] = _shape(context, contract, entries, shape)
    return shapes


def _shape(context: Context, contract: Contract, entries: list[Entry], shape: Shape) -> dict[str, Any]:
    at = "x".join(map(str, shape.values()))
    values = [generate(contract, Case(name="bench", kind="performance", dimensions=shape, seed=7), 0)]
    shared = SharedBuffers(
        (resolve(entries[0].plan, contract, shape, "pointer"),), values, context.queue.stream
    )  # the baseline's
    wanted: dict[str, Any] = {}
    readers: dict[str, Callable[[], float]] = {}
    for entry in (e for e in entries if e.module is not None and not e.wrong):
        try:
            call = resolve(entry.plan, contract, shape, "pointer")
            subject = PlanSubject(entry.module, call, shared, context.queue)
            subject.grow(shared.cycle)
            call_each_set(context.queue, subject, shared)
            shapes = {buffer.name: buffer.shape for buffer in call.buffers}
            got = {
                o.name: decode(shared.outputs()[0][o.name], o.dtype, shapes[o.name]).astype(np.float64)
                for o in contract.outputs
            }
            wanted = wanted or got
            entry.wrong = _difference(contract, got, wanted, at)
            if not entry.wrong:
                readers[entry.name] = _reader(context, subject, shared)
                entry.us[at] = readers[entry.name]()
        except (TurnedDown, CudaError) as fault:
            if isinstance(fault, CudaError) and fault.is_fault:
                raise
            entry.wrong = f"{at}: {fault}"[:300]
    ranked = sorted(readers, key=lambda n: next(e.us[at] for e in entries if e.name == n))
    last = [*ranked[:3], *(n for n in ranked[3:] if n == "baseline")]
    rounds = [{n: readers[n]() for n in last} for _ in range(READINGS)]
    us = {n: {"warm_us": median(r[n] for r in rounds), "cold_us": NAN} for n in last}
    shared.free()
    return {
        "bytes": evaluate(contract.bytes, shape), "operations": evaluate(contract.operations, shape),
        "torch": {"eager": "torch cannot be imported"}, "us": us,
        "ranked": [(n, next(e.us[at] for e in entries if e.name == n), 0) for n in ranked[:10]],
    }  # fmt: skip


def _difference(contract: Contract, got: dict[str, Any], wanted: dict[str, Any], at: str) -> str:
    for output in contract.outputs:
        scale = float(np.linalg.norm(wanted[output.name])) or 1e-30
        far = float(np.linalg.norm(got[output.name] - wanted[output.name])) / scale
        if not far <= DIFFERENCE.get(output.dtype, 0.0):
            return f"{at}: {output.name} differs from the baseline's by {far:.1e}"
    return ""


def _reader(context: Context, subject: PlanSubject, shared: SharedBuffers) -> Callable[[], float]:
    """Microseconds of a call, of a batch that is long enough."""
    calls = shared.cycle
    batch = Batch(context.queue, subject, shared, calls)
    us = batch.span_us()
    if us < BATCH_US:
        batch.free()
        while us < BATCH_US and calls < CALLS_AT_MOST:
            us, calls = us * 2, calls * 2
        batch = Batch(context.queue, subject, shared, calls)
    return lambda: batch.span_us() / calls
