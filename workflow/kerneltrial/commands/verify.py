"""`kerneltrial verify`: check a trial's evidence: a bundle, an unpacked one, or the trial of a config."""

import argparse
import contextlib
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kerneltrial.commands.configuration import read_config
from kerneltrial.dag.graph import STAGES, record_path, results
from kerneltrial.evidence.sealed import Brought, Evidence
from kerneltrial.evidence.verdict import Verdict
from kerneltrial.inputs.config import Config, read
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.records.problem import Problem
from kerneltrial.store import envelopes
from kerneltrial.store.signed import Signed


@dataclass(frozen=True)
class Place:
    """A trial's config and the folder that its paths are relative to; `bundle`: nothing else may lie there."""

    config: Config
    root: Path
    bundle: bool = False


def run(given: argparse.Namespace, root: Path) -> int:
    """Print what was looked at, every problem, and whether the decision still holds here; 0 without problems, else 1.

    A decision that has expired is no problem of the evidence, which is as whole as before.
    """
    brought = Brought(
        keys=root / given.keys if given.keys else None,
        at=_day(given.at),
        heads=root / given.heads if given.heads else None,
    )
    with opened(given, root) as place:
        verdict = look(place.config, place.root, brought, place.bundle)
        _recompile(given, place, verdict)
        _rerun(given.rerun and root / given.rerun, place, verdict)
        for line in verdict.lines:
            print(line)
        print("\n".join(verdict.table()))
        print(
            f"{results(place.config.trial)}: {verdict.records} records, {verdict.objects} objects, "
            f"{verdict.measurements} measurements, {verdict.journal_lines} journal lines: "
            + (f"{len(verdict.lines)} problems" if verdict.lines else "all whole, every link holds")
        )
        _say_where_it_holds(place)
    return 0 if verdict.whole else 1


def _recompile(given: argparse.Namespace, place: Place, verdict: Verdict) -> None:
    asked = given.recompile or ("winner" if given.evidence else "none")
    if asked == "none":
        verdict.note("derivation", "nothing was compiled again")
        return
    if verdict.problems["bytes"]:
        verdict.note("derivation", "not compiled again, as the bytes are not whole")
        return
    from kerneltrial.stages.recompiled import recompiled

    done = recompiled(place.config, place.root, every=asked == "all")
    verdict.look("derivation", done.problems)
    verdict.note("derivation", done.note)


def _rerun(oracle: Path | None, place: Place, verdict: Verdict) -> None:
    if oracle is None:
        return
    if verdict.problems["bytes"]:
        verdict.note("rerun", "the bytes are not whole")
        return
    from kerneltrial.devices.device import DeviceProblem
    from kerneltrial.evidence.sealed import revealed_salt
    from kerneltrial.stages.judged_again import judged_again

    try:
        salt = revealed_salt(place.root / results(place.config.trial))
        verdict.look("rerun", list(judged_again(place.config, place.root, salt, oracle)))
    except DeviceProblem as problem:
        verdict.note("rerun", str(problem))


def _say_where_it_holds(place: Place) -> None:
    from kerneltrial.dag.environment import compared
    from kerneltrial.dag.locked import held

    lock = held(place.config.trial, place.root)
    if lock is not None and (place.root / record_path(place.config.trial, "decide")).is_file():
        print(compared(lock).line)


def look(config: Config, root: Path, brought: Brought | None = None, bundle: bool = False) -> Verdict:
    """Look at all levels that need no device."""
    from kerneltrial.evidence import sealed
    from kerneltrial.evidence.verify import verify
    from kerneltrial.stages.rederived import differences

    verdict = verify(root / results(config.trial), root, lambda stage: stage in STAGES)
    sealed.look(_evidence(config.trial, root, bundle), brought or Brought(), verdict)
    if verdict.records:
        verdict.look("decision", differences(config, root))
    return verdict


def _evidence(trial: str, root: Path, bundle: bool) -> Evidence:
    from kerneltrial.evidence import members

    folder = root / results(trial)
    if bundle:
        return Evidence(folder, root, members.present(root), root / members.SUMS, root / members.SUMS_SIGNATURE)
    signed = Signed(folder)
    lock = envelopes.read(folder / "lock.json")
    sources = lock.body["files"] if lock else ()
    there = [path for path in sources if (root / path).is_file()]
    return Evidence(folder, root, members.evidence(root, trial, there), signed.sums, signed.sums_signature)


@contextlib.contextmanager
def opened(given: argparse.Namespace, root: Path) -> Iterator[Place]:
    """What is to be verified; a tar file is unpacked into a folder that is gone afterwards."""
    if given.evidence is None:
        config, root = read_config(given, root)
        effective = root / results(config.trial) / "config.json"
        if effective.is_file() and not given.set:  # the run's own, with its command line's keys
            config = read(effective, {}, root)
        yield Place(config, root)
        return
    path = root / given.evidence
    if path.is_dir():
        yield _unpacked(path)
        return
    if not path.is_file():
        raise InputProblem(f"{given.evidence}: there is no such file or folder")
    from kerneltrial.evidence.tarball import unpack

    with tempfile.TemporaryDirectory(prefix="kerneltrial-") as folder:
        yield _unpacked(unpack(path, Path(folder)))


def _unpacked(folder: Path) -> Place:
    found = sorted(folder.glob("results/*/config.json"))
    if len(found) != 1:
        raise InputProblem(f"{folder.name}: holds {len(found)} trials (results/NAME/config.json); a bundle holds one")
    try:
        config = read(found[0], {}, folder)
    except Problem as problem:
        raise InputProblem(f"{folder.name}: the bundle is broken: {problem}") from problem
    if config.trial != found[0].parent.name:
        raise InputProblem(f"{folder.name}: its config is of trial {config.trial}, not of {found[0].parent.name}")
    return Place(config, folder, bundle=(folder / "SHA256SUMS").is_file())


def _day(text: str) -> str:
    """A day as ssh-keygen takes it."""
    if text and not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        raise InputProblem(f"--at {text}: write a day, such as 2026-12-01")
    return text.replace("-", "") + "120000" if text else ""
