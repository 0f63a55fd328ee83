"""Random CUDA programs on the `cpu` device and on a card: the same PTX must give the same bits.

    PYTHONPATH=workflow python tests/bench/cpu_random.py [--modules 250] [--kernels 40] [--seed 1] [--no-card]

Modules of `random_programs.py` are built by NVRTC for sm_90 with `--fmad=false`, so that PTX defines every bit. Each
kernel runs on the `cpu` device with bounds alone, each fourth under all checks too, in as many processes as there are
cores, and once on the card. Prints every program that differs, that is refused, or that the checks accuse (they are
honest), and exits 1 if there is one. `--contracted N` adds N modules with contraction, which PTX leaves to the
assembler: their differences are counted apart. With OUT set, digests and differences go to $OUT/cpu_random.json, and
so do the texts of the first `--keep N` modules with the card's digests.
"""

import argparse
import base64
import hashlib
import json
import os
import sys
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "unit" / "devices_cpu")]

from ptx_runner import array, call_of, out
from random_programs import ENTRIES, RESULTS, Program, module_of

from kerneltrial.build.nvrtc import received
from kerneltrial.devices.cpu.device import open_cpu
from kerneltrial.devices.device import Binary, Conditions, Refused

SCALAR = 11
"""What the kernels get as `n`."""
BUDGET = 200_000_000
CHECKED = 4
"""One kernel of so many runs under all checks too."""
Inputs = dict[str, NDArray[np.generic]]


@dataclass(frozen=True)
class Job:
    """One module to build and to run on the `cpu` device."""

    seed: int
    number: int
    kernels: int
    contracted: bool


@dataclass(frozen=True)
class Done:
    """What became of a module: its texts, and for each kernel a digest or a word that says why there is none."""

    job: Job
    ptx: str
    cubin: bytes
    programs: tuple[Program, ...]
    outcomes: tuple[str, ...]
    seconds: tuple[float, float]


@cache
def inputs() -> Inputs:
    """The same for every program: words, floats and doubles, a quarter of them special."""
    draw, tens = np.random.default_rng(7), np.array([float(f"1e{exponent}") for exponent in range(-40, 40)])
    # numpy's `10.0 **` has other last bits by processor: these three are as it gave them where the card's digests began
    tens[[40 - 5, 40 - 17, 40 - 30]] = np.nextafter(tens[[40 - 5, 40 - 17, 40 - 30]], 0)
    words = draw.integers(0, 1 << 32, ENTRIES, np.uint32)
    floats = (draw.standard_normal(ENTRIES) * tens[40 + draw.integers(-12, 12, ENTRIES)]).astype(np.float32)
    doubles = draw.standard_normal(ENTRIES) * tens[40 + draw.integers(-40, 40, ENTRIES)]
    special = [0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, 1e-45, -1e-40, 3.4e38, 0.5, 1.5, 2147483648.0]
    floats[::4], doubles[::4] = (np.resize(special, ENTRIES // 4) for _ in range(2))
    words[::8], words[1::8] = np.arange(ENTRIES // 8), np.resize([0, 0x80000000, 0x7FFFFFFF, 0xFFFFFFFF], ENTRIES // 8)
    return {"in_u": words, "in_f": floats, "in_d": doubles}


def build(source: str, contracted: bool) -> tuple[str, bytes]:
    """PTX and machine code for sm_90, of one compile."""
    from cuda.bindings import nvrtc

    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"random.cu", 0, [], [])
    options = [b"--gpu-architecture=sm_90", b"--std=c++17", b"-w", b"--fmad=true" if contracted else b"--fmad=false"]
    (code,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    if int(code):
        log = received(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
        raise RuntimeError(log.decode(errors="replace"))
    text = received(program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
    cubin = received(program, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
    nvrtc.nvrtcDestroyProgram(program)
    return text.rstrip(b"\0").decode(), cubin


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def on_cpu(ptx: str, programs: tuple[Program, ...]) -> list[str]:
    """Each program's digest; its findings or its refusal where there is none."""
    loaded = open_cpu().load(Binary(ptx=ptx, cubin=b""))
    found = []
    for number, p in enumerate(programs):
        buffers = [array(name, values) for name, values in inputs().items()]
        result = out("out", "uint64", p.grid * p.block, RESULTS)
        call = call_of([*buffers, result, SCALAR], (p.grid,), (p.block,), entry=p.entry)
        try:
            runs = [
                loaded.run(call, inputs(), Conditions(poison="nan", checks=level, budget_instructions=BUDGET))
                for level in (("bounds", "all") if number % CHECKED == 0 else ("bounds",))
            ]
        except Refused as refused:
            found.append(f"refused: {refused}")
            continue
        accused = [f"accused: {f.reason.value} {f.detail}" for done in runs for f in done.findings]
        digests = {digest(done.outputs["out"]) for done in runs}
        found.append(accused[0] if accused else digests.pop() if len(digests) == 1 else "accused: levels differ")
    return found


def work(job: Job) -> Done:
    """Build a module and run it on the `cpu` device."""
    module = module_of(job.seed, job.number, job.kernels)
    start = time.process_time()
    ptx, cubin = build(module.source, job.contracted)
    middle = time.process_time()
    outcomes = on_cpu(ptx, module.programs)
    took = (middle - start, time.process_time() - middle)
    return Done(job, ptx, cubin, module.programs, tuple(outcomes), took)


class Card:
    """The card, through the driver alone."""

    def __init__(self) -> None:
        from cuda.bindings import driver

        self.driver = driver
        self._do(driver.cuInit(0))
        device = self._do(driver.cuDeviceGet(0))
        self.name = self._do(driver.cuDeviceGetName(128, device)).split(b"\0")[0].decode().strip()
        self._do(driver.cuCtxSetCurrent(self._do(driver.cuDevicePrimaryCtxRetain(device))))
        self._inputs = [self._upload(values) for values in inputs().values()]
        self._words = np.empty(4 * 128 * RESULTS, np.uint64)
        self._out = self._do(driver.cuMemAlloc(self._words.nbytes))

    def _do(self, reply: tuple[Any, ...]) -> Any:
        if int(reply[0]):
            raise RuntimeError(f"the driver says {reply[0]!r}")
        return reply[1] if len(reply) > 1 else None

    def _upload(self, values: NDArray[np.generic]) -> Any:
        place = self._do(self.driver.cuMemAlloc(values.nbytes))
        self._do(self.driver.cuMemcpyHtoD(place, values.ctypes.data, values.nbytes))
        return place

    def digests(self, cubin: bytes, programs: tuple[Program, ...]) -> list[str]:
        """What each program's output hashes to."""
        d = self.driver
        module = self._do(d.cuModuleLoadData(cubin))
        found = []
        arguments = [np.array([int(p)], np.uint64) for p in (*self._inputs, self._out)] + [np.array([SCALAR], np.int32)]
        pointers = np.array([a.ctypes.data for a in arguments], np.uint64)
        for p in programs:
            function = self._do(d.cuModuleGetFunction(module, p.entry.encode()))
            size = 8 * RESULTS * p.grid * p.block
            self._do(d.cuMemsetD8(self._out, 0xFF, self._words.nbytes))
            self._do(d.cuLaunchKernel(function, p.grid, 1, 1, p.block, 1, 1, 0, 0, pointers.ctypes.data, 0))
            self._do(d.cuMemcpyDtoH(self._words.ctypes.data, self._out, size))
            found.append(digest(self._words.tobytes()[:size]))
        self._do(d.cuModuleUnload(module))
        return found


def jobs(options: argparse.Namespace) -> list[Job]:
    exact = [Job(options.seed, n, options.kernels, contracted=False) for n in range(options.modules)]
    return exact + [Job(options.seed, n, options.kernels, contracted=True) for n in range(options.contracted)]


def compared(done: Done, card: list[str] | None) -> Iterator[tuple[str, str]]:
    """A word for each program's outcome, and its name."""
    for k, outcome in enumerate(done.outcomes):
        name = f"seed {done.job.seed}, module {done.job.number}, k{k}"
        if ":" in outcome:
            yield outcome.split(":")[0], f"{name}: {outcome}"
        elif card is not None and card[k] != outcome:
            yield "differs", f"{name}: differs from the card"
        else:
            yield "agrees" if card else "ran", name


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("modules", 250), ("kernels", 40), ("seed", 1), ("contracted", 0), ("keep", 2)):
        options.add_argument(f"--{name}", type=int, default=default)
    options.add_argument("--processes", type=int, default=os.cpu_count())
    options.add_argument("--no-card", action="store_true")
    chosen = options.parse_args()
    start = time.perf_counter()
    counts: dict[bool, Counter[str]] = {False: Counter(), True: Counter()}
    listed: list[str] = []
    kept: list[dict[str, Any]] = []
    digests: dict[str, list[str]] = {}
    seconds = np.zeros(2)
    with ProcessPoolExecutor(chosen.processes) as pool:  # forked before the card's context is made
        replies = pool.map(work, jobs(chosen))
        card = None
        for done in replies:
            card = card or (None if chosen.no_card else Card())
            theirs = card.digests(done.cubin, done.programs) if card else None
            seconds += done.seconds
            for word, name in compared(done, theirs):
                counts[done.job.contracted][word] += 1
                if word not in ("agrees", "ran"):
                    listed.append(("contracted, " if done.job.contracted else "") + name)
            if not done.job.contracted:
                digests[str(done.job.number)] = theirs or list(done.outcomes)
                if done.job.number < chosen.keep:
                    packed = base64.b64encode(zlib.compress(done.ptx.encode(), 9)).decode()
                    shapes = [(p.grid, p.block) for p in done.programs]
                    kept.append(
                        {"ptx": packed, "shapes": shapes, "digests": theirs}
                    )  # of tests/golden/random_h200.json
    print(*listed[:200], sep="\n")
    where = f"{card.name} and {chosen.processes} processes" if card else f"no card, {chosen.processes} processes"
    print(f"{where}: {counts[False].total()} programs: {dict(counts[False])}")
    if chosen.contracted:
        print(f"contracted, which PTX leaves open: {counts[True].total()} programs: {dict(counts[True])}")
    print(f"{seconds[0]:.0f} s of the processors to build, {seconds[1]:.0f} s on the cpu device, "
          f"{time.perf_counter() - start:.0f} s in all")  # fmt: skip
    if "OUT" in os.environ:
        report = {"device": card.name if card else "", "seed": chosen.seed, "counts": dict(counts[False]),
                  "contracted": dict(counts[True]), "listed": listed, "digests": digests, "kept": kept}  # fmt: skip
        Path(os.environ["OUT"], "cpu_random.json").write_text(json.dumps(report))
    return int(bool([name for name in listed if not name.startswith("contracted")]))


if __name__ == "__main__":
    sys.exit(main())
