"""What a device makes of the corpus and of every instruction of the `cpu` device's table: build, run, compare.

The PTX that the `cpu` device runs (sm_80) is assembled for the card by nvJitLink; nothing is compiled a second time.
The text of an instruction's kernel is raised to the card's architecture, where bf16 has all of its arithmetic.
"""

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from corpus_build import cubin_of, ptx_of
from corpus_table import Kernel, kernels
from instruction_cases import Case, cases
from numpy.typing import NDArray
from ptx_models import FORMATS, is_nan
from ptx_runner import InstructionKernel, instruction_kernel

from kerneltrial.devices.device import Binary, Conditions, Loaded, Opened, Refused, Run

Json = dict[str, Any]
_VERSION = re.compile(r"^\.version (\d+\.\d+)$", re.M)
_REFUSED = re.compile(r"Unsupported \.version \d+\.\d+; current version is '(\d+\.\d+)'")


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def packed(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content, 9)).decode()


def build_key(kernel: Kernel) -> str:
    """Kernels of one CUDA file share a text; one of numba has its own."""
    return kernel.source if not kernel.source.endswith(".py") else f"{kernel.source} {kernel.entry}"


def stored_ptx(path: Path) -> dict[str, tuple[str, str]]:
    """The texts that a card ran, by kernel, each with its entry's name."""
    stored = json.loads(path.read_text())
    texts = {key: unpacked(text).decode() for key, text in stored["texts"].items()}
    return {k.name: (texts[build_key(k)], stored["entries"][k.name]) for k in kernels()}


def store_ptx(path: Path) -> None:
    """What this compiler makes, in the form of `stored_ptx`."""
    built = {kernel.name: ptx_of(kernel) for kernel in kernels()}
    texts = {build_key(k): packed(built[k.name][0].encode()) for k in kernels()}
    entries = {name: entry for name, (_, entry) in built.items()}
    path.write_text(json.dumps({"texts": texts, "entries": entries}, indent=0, sort_keys=True) + "\n")


def unpacked(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text))


# -- instructions


def instruction_kernels(approximate: bool) -> Iterator[tuple[Case, list[str], InstructionKernel]]:
    """Each part of each case, with its kernel."""
    for case in cases(approximate):
        columns, immediates = case.operands()
        tail = "".join(f", {i}" for i in immediates)
        for part in case.parts():
            yield case, part, instruction_kernel(part, case.results, case.sources, columns, tail)


def one_by_one(case: Case, part: list[str]) -> list[InstructionKernel]:
    columns, immediates = case.operands()
    tail = "".join(f", {i}" for i in immediates)
    return [instruction_kernel([opcode], case.results, case.sources, columns, tail) for opcode in part]


def settled(rows: list[tuple[int, ...]], types: list[str]) -> NDArray[np.uint64]:
    """Results as words; a NaN of f64, whose payload PTX leaves open, becomes one and the same."""

    def word(value: int, t: str) -> int:
        return 0x7FF8 << 48 if t == "f64" and is_nan(value, "f64") else value

    return np.array([[word(v, t) for v, t in zip(row, types, strict=True)] for row in rows], np.uint64)


def instruction_entries(case: Case, part: list[str], kernel: InstructionKernel, content: bytes) -> Iterator[
    tuple[str, NDArray[np.uint64]]
]:  # fmt: skip
    for opcode, rows in zip(part, kernel.read(content), strict=True):
        yield f"{opcode} {case.name}", settled(rows, case.results)


# -- build


def build(folder: Path, arch: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    store_ptx(folder / "corpus_ptx.json")
    index: Json = {"arch": arch, "kernels": {}, "instructions": [], "refused": {}}
    for kernel in kernels():
        ptx, entry = ptx_of(kernel)
        cubin = cubin_of(ptx, arch)
        (folder / f"{digest(cubin)[:24]}.cubin").write_bytes(cubin)
        index["kernels"][kernel.name] = {"cubin": digest(cubin)[:24], "entry": entry, "ptx": digest(ptx.encode())}
    for approximate in (False, True):
        for case, part, kernel in instruction_kernels(approximate):
            _build_instructions(folder, arch, index, (case, part, kernel))
    (folder / "index.json").write_text(json.dumps(index, indent=1))
    print(f"{len(index['kernels'])} kernels, {len(index['instructions'])} kernels of instructions, "
          f"{len(index['refused'])} opcodes that the assembler refuses")  # fmt: skip


def _build_instructions(
    folder: Path, arch: str, index: Json, piece: tuple[Case, list[str], InstructionKernel]
) -> None:  # fmt: skip
    """All opcodes of a part at once, or one by one where the assembler refuses one of them."""
    case, part, kernel = piece

    def keep(opcodes: list[str], made: InstructionKernel) -> None:
        cubin = cubin_of(made.ptx.replace(".target sm_80", f".target {arch}"), arch)
        (folder / f"{digest(cubin)[:24]}.cubin").write_bytes(cubin)
        index["instructions"].append({"case": case.name, "opcodes": opcodes, "cubin": digest(cubin)[:24]})

    try:
        keep(part, kernel)
    except RuntimeError:
        for opcode, single in zip(part, one_by_one(case, part), strict=True):
            try:
                keep([opcode], single)
            except RuntimeError as problem:
                index["refused"][f"{opcode} {case.name}"] = str(problem)[:200]


# -- run


def run(folder: Path, target: Path) -> None:
    from kerneltrial.devices.cuda.device import open_cuda
    from kerneltrial.devices.cuda.probe import probe

    index = json.loads((folder / "index.json").read_text())
    device = probe()
    card = open_cuda(device.arch)
    found: Json = {"device": device.name, "fingerprint": device.fingerprint, "kernels": {}, "instructions": {},
                   "approximate": {}, "refused": index["refused"]}  # fmt: skip
    for kernel in kernels():
        built = index["kernels"][kernel.name]
        loaded = _load(card, folder, built["cubin"])
        done = loaded.run(kernel.call(built["entry"]), kernel.values(), Conditions(poison="nan"))
        entry = {"ptx": built["ptx"], "findings": [f.detail for f in done.findings], "inputs": _inputs(kernel)}
        entry |= _outputs(kernel, done.outputs)
        found["kernels"][kernel.name] = entry
    by_name = {case.name: case for approximate in (False, True) for case in cases(approximate)}
    for built in index["instructions"]:
        case = by_name[built["case"]]
        columns, immediates = case.operands()
        tail = "".join(f", {i}" for i in immediates)
        made = instruction_kernel(built["opcodes"], case.results, case.sources, columns, tail)
        loaded = _load(card, folder, built["cubin"])
        done = loaded.run(made.call, made.values, Conditions(poison="nan"))
        for key, words in instruction_entries(case, built["opcodes"], made, done.outputs["out"]):
            # the words themselves, so that a difference can be looked at; they compress well
            kind = "approximate" if case.form.group == "special" else "instructions"
            found[kind][key] = packed(words.tobytes())
    target.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n")
    print(f"{device.name}: {len(found['kernels'])} kernels, {len(found['instructions'])} exact and "
          f"{len(found['approximate'])} approximate instructions, {target.stat().st_size} bytes")  # fmt: skip


def run_one(name: str, texts: Path, target: Path) -> None:
    """One kernel's stored text on the first card, with its outputs whole: for one that gets a bound."""
    from kerneltrial.devices.cuda.device import open_cuda
    from kerneltrial.devices.cuda.probe import probe

    kernel = next(k for k in kernels() if k.name == name)
    ptx, entry = stored_ptx(texts)[name]
    device = probe()
    cubin, version = assembled(ptx, "sm_90")
    loaded = open_cuda(device.arch).load(Binary(ptx="", cubin=cubin))
    done = loaded.run(kernel.call(entry), kernel.values(), Conditions(poison="nan"))
    found = {"ptx": digest(ptx.encode()), "assembled_as": version, "inputs": _inputs(kernel),
             "findings": [f.detail for f in done.findings],
             "outputs": {name: packed(content) for name, content in sorted(done.outputs.items())},
             "sha256": {name: digest(content) for name, content in sorted(done.outputs.items())}}  # fmt: skip
    target.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n")
    print(f"{device.name}: {name}: {found['sha256']}")


def assembled(ptx: str, arch: str) -> tuple[bytes, str]:
    """Machine code of a stored text, and the version of PTX that it was taken for.

    An older assembler refuses the version that a newer compiler wrote, which says nothing of the instructions: the text
    is taken for the newest that it knows, and what it does not know in there it still refuses.
    """
    version = _VERSION.search(ptx)
    assert version is not None
    try:
        return cubin_of(ptx, arch), version[1]
    except RuntimeError as problem:
        known = _REFUSED.search(str(problem))
        if known is None:
            raise
    return cubin_of(_VERSION.sub(f".version {known[1]}", ptx, count=1), arch), known[1]


def _load(card: Opened, folder: Path, name: str) -> Loaded:
    return card.load(Binary(ptx="", cubin=(folder / f"{name}.cubin").read_bytes()))


def _inputs(kernel: Kernel) -> str:
    values = kernel.values()
    return digest(b"".join(values[name].tobytes() for name in sorted(values)))


def _outputs(kernel: Kernel, outputs: dict[str, bytes]) -> Json:
    """Digests where the bits must agree, the bytes where a bound holds."""
    if kernel.bound:
        return {"outputs": {name: packed(content) for name, content in sorted(outputs.items())}}
    return {"sha256": {name: digest(content) for name, content in sorted(outputs.items())}}


# -- compare


def run_kernel(kernel: Kernel, ptx: str, entry: str) -> Run:
    """On the `cpu` device, with all checks; raises `Refused`."""
    from kerneltrial.devices.cpu.device import open_cpu

    loaded = open_cpu().load(Binary(ptx=ptx, cubin=b""))
    return loaded.run(kernel.call(entry), kernel.values(), Conditions(poison="nan"))


def compare_kernel(kernel: Kernel, known: Json, done: Run) -> list[str]:
    """What differs between a run on the `cpu` device and a card's; empty where nothing does."""
    if known["inputs"] != _inputs(kernel):
        return [f"{kernel.name}: other inputs than on the card"]
    wrong = [f"{kernel.name}: {finding.reason.value} {finding.detail}" for finding in done.findings]
    mine = _outputs(kernel, done.outputs)
    if not kernel.bound:
        return wrong + [f"{kernel.name}: {name} has other bits" for name, value in mine["sha256"].items()
                        if known["sha256"].get(name) != value]  # fmt: skip
    for name, text in known["outputs"].items():
        away = distance(kernel, name, done.outputs[name], unpacked(text))
        if not away <= 1.0:
            wrong.append(f"{kernel.name}: {name} is {away:.3g} times its bound away")
    return wrong


def distance(kernel: Kernel, name: str, mine: bytes, theirs: bytes) -> float:
    """The largest difference in units of the kernel's bound; infinite where only one is a NaN or an infinity."""
    assert kernel.bound is not None
    a, b = (_floats(kernel, name, content) for content in (mine, theirs))
    relative, absolute = kernel.bound
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        away = np.where(same, 0.0, np.abs(a - b) / (absolute + relative * np.abs(b)))
    return float(np.nan_to_num(away, nan=np.inf).max())


def _floats(kernel: Kernel, name: str, content: bytes) -> NDArray[np.float64]:
    place = kernel.places[name]
    if place.read_as == "bfloat16":
        return (np.frombuffer(content, np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return np.frombuffer(content, place.dtype).astype(np.float64)


def compare_instructions(case: Case, known: Json) -> list[str]:
    """Opcodes of a case whose results differ from the card's, each with the first row that does."""
    wrong = []
    columns, _ = case.operands()
    for key, mine, theirs in both(case, known):
        rows = np.nonzero((mine != theirs).any(1))[0]
        if len(rows):
            row = int(rows[0])
            wrong.append(f"{key}: {len(rows)} rows differ, first {[hex(c[row]) for c in columns]}: "
                         f"{[hex(v) for v in mine[row]]}, the card {[hex(v) for v in theirs[row]]}")  # fmt: skip
    return wrong


def both(case: Case, known: Json) -> Iterator[tuple[str, NDArray[np.uint64], NDArray[np.uint64]]]:
    """The results of each opcode that the card ran, here and there."""
    from ptx_runner import run as run_here

    columns, immediates = case.operands()
    tail = "".join(f", {i}" for i in immediates)
    for part in case.parts():
        made = instruction_kernel(part, case.results, case.sources, columns, tail)
        content = run_here(made.ptx, made.call, made.values, checks="bounds").outputs["out"]
        for key, mine in instruction_entries(case, part, made, content):
            if key in known:
                yield key, mine, np.frombuffer(unpacked(known[key]), np.uint64).reshape(mine.shape)


def units_away(case: Case, mine: NDArray[np.uint64], theirs: NDArray[np.uint64]) -> int:
    """The largest distance in units of the last place, over results that are finite on both sides."""
    t = case.results[0].removesuffix("x2")
    f = FORMATS[t]
    most = 0
    for a, b in zip(mine[:, 0].tolist(), theirs[:, 0].tolist(), strict=True):
        for k in range(2 if case.results[0].endswith("x2") else 1):
            x, y = (v >> f.width * k & (1 << f.width) - 1 for v in (a, b))
            ordered = [-(v & (f.top - 1)) if v & f.top else v for v in (x, y)]
            if max(v & (f.top - 1) for v in (x, y)) < f.infinity:
                most = max(most, abs(ordered[0] - ordered[1]))
    return most


def compare(source: Path, texts: Path) -> int:
    known = json.loads(source.read_text())
    stored = stored_ptx(texts)
    wrong: list[str] = []
    for kernel in kernels():
        try:
            done = run_kernel(kernel, *stored[kernel.name])
        except Refused as refused:
            wrong.append(f"{kernel.name}: {refused}")
            continue
        wrong += compare_kernel(kernel, known["kernels"][kernel.name], done)
    for case in cases():
        wrong += compare_instructions(case, known["instructions"])
    for case in cases(approximate=True):
        for key, mine, theirs in both(case, known["approximate"]):
            print(f"approximate {key}: at most {units_away(case, mine, theirs)} units of the last place away")
    print(*wrong, sep="\n")
    print(f"{len(wrong)} differences")
    return int(bool(wrong))
