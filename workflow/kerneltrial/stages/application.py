"""Run the user's application with the baseline and with the winner, interleaved, each run a process of its own.

The application is the user's, so it runs as it does elsewhere: no sandbox, the usual variables and those that
the config names. A kernel reaches it as files: on `cpu` the provided loader runs it in a limited child.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import kerneltrial
from kerneltrial.loader import COUNTS, CUBIN, KERNEL, PLAN, PTX, Told
from kerneltrial.measure.application import end_to_end, order
from kerneltrial.records.application import ApplicationRun, ApplicationRuns, EndToEndAsked
from kerneltrial.records.confirmation import EndToEnd, EndToEndFailed, NoEndToEnd
from kerneltrial.records.problem import Problem
from kerneltrial.stages.ground import Ground, binary_of
from kerneltrial.stages.measuring import Kernel
from kerneltrial.store.canonical import canonical, convert, decode

_PRINTED = re.compile(r"^kerneltrial_ms: ([0-9]+(?:\.[0-9]+)?)\s*$", re.MULTILINE)
_USUAL = re.compile(
    r"^(PATH|HOME|USER|LANG|LC_.*|TZ|TMPDIR|LD_LIBRARY_PATH|PYTHON.*|CUDA_.*|NVIDIA_.*|OMP_.*|.*_NUM_THREADS)$"
)
_LONGEST_OUTPUT = 1 << 20
_TRIED = 2  # runs of a kernel before the pairs, not counted: caches and clocks warm up


class ApplicationProblem(Problem):
    """The application does not run, with the baseline it has in production."""

    is_of_what_is_locked = True


class Stopped(Exception):
    """One run ended badly; the text says how."""


@dataclass(frozen=True)
class Application:
    """The command, and where it runs."""

    asked: EndToEndAsked
    folder: Path


def applied(g: Ground, pair: tuple[Kernel, Kernel]) -> EndToEnd | EndToEndFailed | NoEndToEnd:
    """End-to-end evidence on the (baseline, winner) pair: drawn once and found again, as all measurements are.

    Raises
    ------
    ApplicationProblem
        It does not run with the baseline: nothing can be said of the winner.
    """
    asked = convert(EndToEndAsked, g.lock.asked["end_to_end"])
    if not asked.words:
        return NoEndToEnd()
    files = g.job.sources.get("application", ())
    key = {
        "application": asked,
        "files": {path: g.lock.files[path] for path in files},
        "kernels": [{"binary": _digest(kernel), "plan": kernel.plan} for kernel in pair],
        "device": g.lock.device,
    }
    application = Application(asked, g.job.root / str(g.lock.asked["application"]))
    stored = g.job.measurements.once(key, lambda: _runs(g, application, pair), ApplicationRuns)
    return end_to_end(stored.value, asked, float(g.lock.protocol.confidence), stored.digest)


def tried(g: Ground, baseline: Kernel) -> None:
    """Run the application once with the baseline, so that one which does not run stops the trial before it began.

    Raises
    ------
    ApplicationProblem
        It does not run.
    """
    asked = convert(EndToEndAsked, g.lock.asked["end_to_end"])
    if not asked.words:
        return
    with tempfile.TemporaryDirectory(prefix="kerneltrial-") as scratch:
        folder = Path(scratch) / "a"
        hand_over(g, baseline, folder)
        try:
            run_once(Application(asked, g.job.root / str(g.lock.asked["application"])), "a", folder)
        except Stopped as stopped:
            raise _not_running(stopped) from None


def _not_running(stopped: Stopped) -> ApplicationProblem:
    return ApplicationProblem(
        f"end_to_end: the application does not run with the baseline: {stopped}; correct it (it must call the kernel "
        "as the contract says, as loaded by kerneltrial.loader, which works within a trial alone), or set "
        "end_to_end.words: [] in a new trial"
    )


def _digest(kernel: Kernel) -> str:
    return getattr(kernel.built.cubin, "digest", kernel.built.ptx)


def _runs(g: Ground, application: Application, pair: tuple[Kernel, Kernel]) -> ApplicationRuns:
    with tempfile.TemporaryDirectory(prefix="kerneltrial-") as scratch:
        folders = {name: Path(scratch) / name for name in "ab"}
        for kernel, folder in zip(pair, folders.values(), strict=True):
            hand_over(g, kernel, folder)
        return interleaved(application, folders)


def hand_over(g: Ground, kernel: Kernel, folder: Path) -> None:
    """Write what the loader, or an application with its own, needs: contract, plan, binaries."""
    folder.mkdir()
    binary = binary_of(kernel.built, g.job.objects)
    told = Told(contract=g.lock.contract, plan=kernel.plan, abi=kernel.built.abi, device=g.lock.device)
    (folder / "kernel.json").write_bytes(canonical(told))
    (folder / "plan.json").write_bytes(canonical(kernel.plan))
    (folder / "kernel.ptx").write_text(binary.ptx)
    (folder / "kernel.cubin").write_bytes(binary.cubin)


def interleaved(application: Application, folders: Mapping[str, Path]) -> ApplicationRuns:
    """All runs in order, after two of each kernel that are not counted."""
    runs: list[ApplicationRun] = []
    warm = order(_TRIED)
    for number, name in enumerate(warm + order(application.asked.pairs)):
        try:
            run = run_once(application, name, folders[name])
        except Stopped as stopped:
            if name == "a":
                raise _not_running(stopped) from None
            return ApplicationRuns(runs=(), failed=f"the application does not run with the winner: {stopped}")
        if number >= len(warm):
            runs.append(run)
    return ApplicationRuns(runs=tuple(runs))


def run_once(application: Application, name: str, folder: Path) -> ApplicationRun:
    """One process; raises `Stopped` where it fails, takes too long, or prints no number where one is asked for."""
    asked = application.asked
    counts = folder / "counts.json"
    counts.unlink(missing_ok=True)
    started = time.perf_counter()
    output = _output(application, folder)
    wall_ms = 1000 * (time.perf_counter() - started)
    ms = wall_ms
    if asked.measure == "printed":
        printed = _PRINTED.findall(output)
        if not printed:
            raise Stopped("it printed no line such as 'kerneltrial_ms: 12.5'")
        ms = float(printed[-1])
    seen = _counted(counts)
    return ApplicationRun(kernel="a" if name == "a" else "b", ms=ms, wall_ms=wall_ms, **seen)


def _output(application: Application, folder: Path) -> str:
    asked = application.asked
    words = [sys.executable if word == "python3" else word for word in asked.words]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                words,
                cwd=application.folder,
                env=environment(asked, folder),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=errors,
                start_new_session=True,
            )
        except OSError as fault:
            raise Stopped(f"{words[0]}: {fault.strerror}") from None
        try:
            status = process.wait(asked.timeout_s)
        except subprocess.TimeoutExpired:
            raise Stopped(f"it took longer than {asked.timeout_s} s") from None
        finally:
            _end(process)
        if status:
            errors.seek(0)
            lines = errors.read(_LONGEST_OUTPUT).decode(errors="replace").strip().splitlines()
            raise Stopped(f"exit status {status}" + (f", {lines[-1][:300]}" if lines else ""))
        out.seek(0)
        return out.read(_LONGEST_OUTPUT).decode(errors="replace")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the run's whole session, so that nothing of it disturbs the next."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def environment(asked: EndToEndAsked, folder: Path) -> dict[str, str]:
    """The usual variables, those that the config names, and where the kernel lies."""
    kept = {name: text for name, text in os.environ.items() if _USUAL.match(name) or name in asked.environment}
    package = str(Path(kerneltrial.__path__[0]).parent)
    paths = [package, *filter(None, [kept.get("PYTHONPATH")])]
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONDONTWRITEBYTECODE": "1",  # the application's folder is locked as it is
        KERNEL: str(folder),
        PLAN: str(folder / "plan.json"),
        PTX: str(folder / "kernel.ptx"),
        CUBIN: str(folder / "kernel.cubin"),
        COUNTS: str(folder / "counts.json"),
    }


def _counted(path: Path) -> dict[str, int]:
    """What the loader wrote at the end, if it was used."""
    try:
        found = decode(dict[str, int], path.read_bytes())
        return {name: found[name] for name in ("calls", "peak_bytes")}
    except (OSError, ValueError, KeyError):
        return {}
