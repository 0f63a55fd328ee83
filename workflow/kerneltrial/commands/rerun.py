"""`kerneltrial rerun FILE`: one case of a winner again, from its file alone: compile, run, compare, one line.

The file's source is run as any candidate is: compiled in a limited child, executed in another. Nothing else in the
file is executed; right values come with it, so no oracle is needed.
"""

import argparse
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from kerneltrial.inputs.problem import InputProblem
from kerneltrial.records.best_case import BestCase
from kerneltrial.store.canonical import decode, digest
from kerneltrial.store.printed import printed

if TYPE_CHECKING:
    from kerneltrial.devices.device import Binary, Run, Values
    from kerneltrial.records.build import Abi
    from kerneltrial.records.device import Device


def run(given: argparse.Namespace, root: Path) -> int:
    """Print the verdict; 0 right, 1 wrong or not built."""
    from kerneltrial.devices.opening import detect

    file = (root / given.file).resolve()
    told, inputs = _read(file, given.file), root / given.inputs if given.inputs else file.parent
    _check(told, given.file, file.parent, inputs)
    values = _values(told, inputs)
    device = detect(given.device)
    kernel = _built(told, device, file.parent)
    ran = kernel if isinstance(kernel, str) else _ran(told, device, kernel, values)
    right, line = _verdict(told, ran)
    print(printed(f"{line}; case {told.case.name} of {told.trial}, on {device.name} ({device.arch})"))
    return 0 if right else 1


def _read(file: Path, name: Path) -> BestCase:
    if file.exists() and not file.is_file():  # a pipe would be waited for, a device has no end
        raise InputProblem(f"{name}: is no plain file; name a best-case-N.json of a report")
    try:
        return decode(BestCase, file.read_bytes())
    except OSError as fault:
        raise InputProblem(f"{name}: cannot be read ({fault.strerror}); name a best-case-N.json of a report") from None
    except ValueError as fault:
        raise InputProblem(f"{name}: is no best case of a report ({fault})") from None


def _check(told: BestCase, name: Path, folder: Path, inputs: Path) -> None:
    """Refuse what cannot be run, or could not fail, before anything is compiled or drawn."""
    from kerneltrial.inputs.best_cases import check_best_case, total_bytes

    try:
        check_best_case(told, folder, inputs)
    except InputProblem as fault:
        raise InputProblem(f"{name}: {fault}") from None
    needed, here = total_bytes(told), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > here:
        raise InputProblem(
            f"{name}: case.dimensions: its arrays hold {needed / 2**30:.1f} GiB, this machine {here / 2**30:.1f} GiB"
        )


def _values(told: BestCase, folder: Path) -> "Values":
    """The case's inputs, drawn or read again; one line where they are not those that the file names."""
    import numpy as np

    from kerneltrial.inputs.dtypes import to_bytes
    from kerneltrial.inputs.values import generate

    values = generate(told.contract, told.case, 0, folder)
    dtypes = {array.name: array.dtype for array in told.contract.arrays}
    other = [name for name, array in values.items() if digest(to_bytes(array, dtypes[name])) != told.inputs.get(name)]
    if other:
        why = (
            "the file was changed, or comes from another version of kerneltrial"
            if told.numpy == np.__version__
            else f"they were drawn by numpy {told.numpy}, here is {np.__version__}; install that version"
        )
        raise InputProblem(f"inputs {', '.join(other)} are not those of the file: {why}")
    return values


def _built(told: BestCase, device: "Device", folder: Path) -> "tuple[Binary, Abi] | str":
    """The source compiled for the device here, or why it does not compile."""
    from kerneltrial.build.builder import Builder
    from kerneltrial.build.preloading import preload
    from kerneltrial.devices.device import Binary
    from kerneltrial.records.build import Cubin, NotBuilt
    from kerneltrial.records.candidate import Candidate
    from kerneltrial.sandbox.nursery import Nursery
    from kerneltrial.store.objects import Objects

    source = told.source.encode()
    candidate = Candidate(id=told.candidate, language=told.language, source=digest(source), plan=told.plan)
    with tempfile.TemporaryDirectory(prefix="kerneltrial-") as scratch, Nursery(preload({told.language})) as nursery:
        objects = Objects(Path(scratch))
        built = Builder(nursery, told.contract, device.arch, folder=folder).build(candidate, source, objects)
        if isinstance(built, NotBuilt):
            return built.detail.splitlines()[0]
        cubin = objects.get(built.cubin.digest) if isinstance(built.cubin, Cubin) else b""
        return Binary(ptx=objects.get(built.ptx).decode(), cubin=cubin), built.abi


def _ran(told: BestCase, device: "Device", kernel: "tuple[Binary, Abi]", values: "Values") -> "Run | str":
    from kerneltrial.devices.device import Conditions, Refused
    from kerneltrial.devices.preloading import preload
    from kerneltrial.devices.runner import Runner
    from kerneltrial.inputs.resolve import PlanProblem, resolve
    from kerneltrial.sandbox.nursery import Nursery

    binary, abi = kernel
    try:
        call = resolve(told.plan, told.contract, dict(told.case.dimensions), abi)
        with Nursery(preload(device.kind)) as nursery, Runner(nursery, device.kind, arch=device.arch) as runner:
            runner.load(binary)
            return runner.run(call, values, Conditions(poison="nan"))
    except PlanProblem as problem:
        return problem.finding.detail
    except Refused as refused:
        return refused.finding.detail


def _verdict(told: BestCase, ran: "Run | str") -> tuple[bool, str]:
    """Whether every kept element is right, and the line that says so."""
    from kerneltrial.inputs.dtypes import from_bytes, widen
    from kerneltrial.judge.kept import share_of_bound

    if isinstance(ran, str):
        return False, f"wrong: it was not built or does not run: {ran}"
    findings = [finding.detail for finding in ran.findings]
    if findings or not ran.completed:
        return False, f"wrong: {findings[0] if findings else 'the call did not end'}"
    worst, wrong, seen = 0.0, 0, 0
    for name, expected in told.expected.items():
        got = widen(from_bytes(ran.outputs[name], expected.dtype, expected.shape), expected.dtype)
        share, beyond = share_of_bound(got, expected)
        worst, wrong, seen = max(worst, share), wrong + beyond, seen + len(expected.places)
    if wrong:
        return False, f"wrong: {wrong} of {seen} elements looked at"
    return True, f"right: all {seen} elements looked at, the worst error {worst:.2g} of what is allowed"
