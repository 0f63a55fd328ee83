"""What does a bare copy of 256 x 131072 float32 cost? Three forms of copying, by their sizes. Needs a card; ~20 s.

    PYTHONPATH=workflow python tests/bench/copies_on_gpu.py [--readings 5]

A kernel that reads each value once and writes each once can take no less time than a copy of as many bytes, so this is
what a very wide softmax is held against. Copied are 128 MiB, by

  plain     blocks that copy one piece and end: threads, floats a load, loads of a thread before its first store
  staying   as many such blocks a multiprocessor as are told, which take one piece after another
  bulk      one thread a block, which has cp.async.bulk bring chunks to a ring in shared memory and take them away
            again, mbarriers telling what has come: bytes a chunk, stages of the ring, blocks a multiprocessor (sm_90)

A reading is the time between two events around 40 launches, behind two that are not counted. Every configuration is
read once a round, in an order drawn anew; its figure is the median. Before each reading the target is zeroed, and after
it compared with the source word by word. Prints the best and the worst ten of each form; status 1 where a copy was
wrong. Writes all figures to $OUT/copies.json.
"""

import argparse
import ctypes
import json
import multiprocessing as mp
import os
import random
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from statistics import median

from copies_kernels import BLOCKS, BULK, CHECKS
from families_bench import built

from kerneltrial.devices.cuda.context import Context
from kerneltrial.devices.cuda.driver import call, release
from kerneltrial.devices.cuda.launches import BoundLaunch, Module, row_of_blocks
from kerneltrial.devices.cuda.probe import probe
from kerneltrial.inputs.calls import Pointer, Scalar
from kerneltrial.records.device import Device

NBYTES = 256 * 131072 * 4
LAUNCHES, SHOWN = 40, 10
PIECES = (1 << 12, 1 << 16)  # bytes that a block copies at once, from and to
LEAST_RING = 1 << 15  # bytes of a multiprocessor's rings: with less, memory waits for requests
OWN_SHARED = 1 << 10  # bytes that each block takes beside its ring (CUDA C++ programming guide, compute capability 9.0)


@dataclass
class Copy:
    """One configuration: `sizes` for a reader, `source` by macros, and how it is launched on a card."""

    form: str
    sizes: dict[str, int]
    source: str
    grid: int
    threads: int
    shared_bytes: int = 0
    pieces: int | None = None  # of a kernel that asks how many there are
    us: list[float] = field(default_factory=list)
    wrong: int = 0

    @property
    def words(self) -> str:
        return ", ".join(f"{size} {name}" for name, size in self.sizes.items())


def copies(device: Device, nbytes: int) -> Iterator[Copy]:
    """All configurations that this card can hold."""
    multiprocessors = int(device.fingerprint["multiprocessors"])
    for threads, vector, loads in product((128, 256, 512, 1024), (1, 2, 4), (1, 2, 4, 8)):
        piece = 4 * threads * vector * loads
        if not PIECES[0] <= piece <= PIECES[1]:
            continue
        source = f"#define THREADS {threads}\n#define VECTOR {vector}\n#define LOADS {loads}\n{BLOCKS}"
        sizes = {"threads": threads, "floats": vector, "loads": loads}
        yield Copy("plain", sizes, source, nbytes // piece, threads)
        for blocks in (1, 2, 3, 4, 6, 8) if threads > 128 and vector > 1 and loads > 1 else ():
            if threads * blocks <= 2048:
                own, grid = {**sizes, "blocks": blocks}, blocks * multiprocessors
                yield Copy("staying", own, source, grid, threads, pieces=nbytes // piece)
    if int(device.fingerprint["compute_capability"].split(".")[0]) < 9:
        return
    a_block, in_all = (int(device.fingerprint[f"shared_bytes_per_{of}"]) for of in ("block", "multiprocessor"))
    for chunk, stages, blocks in product((1 << n for n in range(12, 17)), (2, 3, 4, 6, 8, 12, 16, 24), (1, 2, 3, 4)):
        ring = chunk * stages
        if ring + OWN_SHARED <= a_block and LEAST_RING <= blocks * ring <= in_all - 2 * blocks * OWN_SHARED:
            sizes = {"bytes": chunk, "stages": stages, "blocks": blocks}
            source = f"#define CHUNK {chunk}\n#define STAGES {stages}\n{BULK}"
            yield Copy("bulk", sizes, source, blocks * multiprocessors, 32, ring, nbytes // chunk)


def code_of(sources: list[str], arch: str, pool: ProcessPoolExecutor) -> dict[str, bytes]:
    """Machine code by source, each built once."""
    waiting = {source: pool.submit(built, source, arch, ()) for source in sources}
    return {source: future.result() for source, future in waiting.items()}


class Copying:
    """A source of distinct words, a target, and the launches between them."""

    def __init__(self, context: Context, nbytes: int, code: dict[str, bytes]) -> None:
        self._queue, self._nbytes = context.queue, nbytes
        self._addresses = {"x": int(call("cuMemAlloc", nbytes)), "y": int(call("cuMemAlloc", nbytes))}
        self._addresses["count"] = int(call("cuMemAlloc", 4))
        self._modules = {source: Module(cubin) for source, cubin in code.items()}
        self._check("number", "x").enqueue()
        self._differ = self._check("differ", "x", "y", "count")

    def read(self, copy: Copy) -> None:
        """One reading of a configuration, and whether the target then is the source."""
        launch = self._launch(copy)
        call("cuMemsetD8Async", self._addresses["y"], 0, self._nbytes, self._queue.stream)
        call("cuMemsetD8Async", self._addresses["count"], 0, 4, self._queue.stream)
        with self._queue.held():
            for number in range(2 + LAUNCHES):
                if number == 2:
                    self._queue.record(self._queue.start)
                launch.enqueue()
            self._queue.record(self._queue.end)
        self._differ.enqueue()
        self._queue.wait()
        copy.us.append(self._queue.elapsed_us() / LAUNCHES)
        found = ctypes.c_uint32()
        call("cuMemcpyDtoH", ctypes.addressof(found), self._addresses["count"], 4)
        copy.wrong = max(copy.wrong, found.value)

    def _launch(self, copy: Copy) -> BoundLaunch:
        counts = [] if copy.pieces is None else [Scalar(bytes=4, bits=copy.pieces)]
        parameters = (Pointer(buffer="x"), Pointer(buffer="y"), *counts)
        return self._bound(copy.source, copy.form, (copy.grid, copy.threads, copy.shared_bytes), parameters)

    def _check(self, entry: str, *buffers: str) -> BoundLaunch:
        x, *others = (Pointer(buffer=name) for name in buffers)
        words = Scalar(bytes=4, bits=self._nbytes // 4)
        parameters = (x, *others[:1], words, *others[1:])
        return self._bound(CHECKS, entry, (1024, 256, 0), parameters)

    def _bound(
        self, source: str, entry: str, sizes: tuple[int, int, int], parameters: tuple[Pointer | Scalar, ...]
    ) -> BoundLaunch:
        blocks, threads, shared_bytes = sizes
        resolved = row_of_blocks(entry, blocks, threads, parameters, shared_bytes)
        return BoundLaunch(self._modules[source], resolved, self._addresses, self._queue.stream)

    def free(self) -> None:
        for module in self._modules.values():
            module.unload()
        for address in self._addresses.values():
            release("cuMemFree", address)


def measured(context: Context, found: list[Copy], code: dict[str, bytes], nbytes: int, readings: int) -> None:
    """Read every configuration once a round; the first round warms the card up and is not kept."""
    copying = Copying(context, nbytes, code)
    order = random.Random(1)
    for turn in range(readings + 1):
        for copy in order.sample(found, len(found)):
            copying.read(copy)
            if turn == 0:
                copy.us.clear()
    copying.free()


def table(found: list[Copy], nbytes: int) -> list[str]:
    """The best and the worst ten of each form, and a line for the best alone."""
    lines = []
    for form in dict.fromkeys(copy.form for copy in found):
        ranked = sorted((copy for copy in found if copy.form == form), key=lambda copy: median(copy.us))
        best, rest = ranked[:SHOWN], ranked[SHOWN:]
        left_out = len(rest) - len(rest[-SHOWN:])
        lines += ["", f"{form}: {len(ranked)} configurations", f"{'us':>9}{'TB/s':>7}  sizes"]
        lines += [_row(copy, nbytes) for copy in best]
        lines += [f"{'...':>9}  {left_out} between"] * (left_out > 0)
        lines += [_row(copy, nbytes) for copy in rest[-SHOWN:]]
        lines.append(f"best {form}: {median(best[0].us):.2f} us, {best[0].words}")
    wrong = sum(copy.wrong > 0 for copy in found)
    return [*lines, "", f"{wrong} of {len(found)} configurations copied wrongly"]


def _row(copy: Copy, nbytes: int) -> str:
    us = median(copy.us)
    wrong = f"  WRONG: {copy.wrong} words differ" if copy.wrong else ""
    return f"{us:9.2f}{2 * nbytes / us / 1e6:7.2f}  {copy.words}{wrong}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--readings", type=int, default=5, help="of each configuration")
    readings = parser.parse_args().readings
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), mp_context=mp.get_context("fork")) as pool:
        pool.submit(int).result()  # forked before the driver is there
        device = probe()
        found = list(copies(device, NBYTES))
        code = code_of([CHECKS, *(copy.source for copy in found)], device.arch, pool)
    measured(Context(device.arch), found, code, NBYTES, readings)
    print(f"{device.name}, driver {device.fingerprint['driver']}; 256 x 131072 float32, medians of {readings} readings")
    print("\n".join(table(found, NBYTES)))
    if "OUT" in os.environ:
        rows = [{"form": copy.form, **copy.sizes, "us": copy.us, "wrong": copy.wrong} for copy in found]
        content = {"card": device.name, "fingerprint": device.fingerprint, "copies": rows}
        (Path(os.environ["OUT"]) / "copies.json").write_text(json.dumps(content))
    return int(any(copy.wrong for copy in found))


if __name__ == "__main__":
    sys.exit(main())
