"""`kerneltrial verify`: check a trial's evidence: a bundle, an unpacked one, or the trial of a config."""

import argparse
import contextlib
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from kerneltrial.commands.configuration import read_config
from kerneltrial.dag.graph import STAGES, record_path, reports, results
from kerneltrial.evidence.sealed import Brought, Evidence
from kerneltrial.evidence.verdict import Verdict, counted
from kerneltrial.inputs.config import Config, read
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.records.decision import Outcome
from kerneltrial.records.problem import Problem
from kerneltrial.store import envelopes
from kerneltrial.store.plain import require_plain
from kerneltrial.store.printed import printed
from kerneltrial.store.signed import Signed, is_sealed

ONLY_BYTES = 4  # the exit status where nothing is wrong with the bytes, and no more could be looked at


@dataclass(frozen=True)
class Place:
    """A trial and the folder that its paths are relative to; `bundle`: nothing else may lie there.

    `config` is None where the records are of another version, whose config this one cannot read.
    """

    trial: str
    root: Path
    config: Config | None = None
    bundle: bool = False


def run(given: argparse.Namespace, root: Path) -> int:
    """Print what was looked at, every problem, and whether the decision still holds here.

    0 without problems, 1 with some, `ONLY_BYTES` for records of another version whose bytes are whole. A decision that
    has expired is no problem of the evidence, which is as whole as before.
    """
    brought = Brought(
        keys=root / given.keys if given.keys else None,
        at=_day(given.at),
        heads=root / given.heads if given.heads else None,
        under_way=given.evidence is None,
    )
    for path, words in ((brought.keys, "--keys"), (brought.heads, "--heads")):
        if path is not None and not path.is_file():
            raise InputProblem(f"{words} {path}: there is no such file")
    with opened(given, root) as place:
        verdict = _looked(place, brought)
        if place.config is not None:
            _recompile(given, place, place.config, verdict)
            _rerun(given.rerun and root / given.rerun, place, place.config, verdict)
        for line in verdict.lines:
            print(printed(line))
        print("\n".join(map(printed, verdict.table())))
        print(
            f"{printed(results(place.trial))}: {verdict.records} records, {verdict.objects} objects, "
            f"{verdict.measurements} measurements, {verdict.journal_lines} journal lines: {_summary(verdict)}"
        )
        if place.config is not None and verdict.whole:  # of one that may be no decision of this trial nothing holds
            _say_where_it_holds(place)
    return 1 if not verdict.whole else ONLY_BYTES if verdict.other_version else 0


def _summary(verdict: Verdict) -> str:
    if verdict.lines:
        return counted(verdict.lines)
    if verdict.other_version:
        return "the bytes are whole; what they say was not looked into"
    return "all whole, every link holds"


def _recompile(given: argparse.Namespace, place: Place, config: Config, verdict: Verdict) -> None:
    if not verdict.records:
        return
    asked = given.recompile or ("winner" if given.evidence else "none")
    if asked == "none":
        verdict.note("derivation", "nothing was compiled again")
        return
    if verdict.problems["bytes"]:
        verdict.note("derivation", "not compiled again, as the bytes are not whole")
        return
    from kerneltrial.stages.recompiled import recompiled

    done = recompiled(config, place.root, every=asked == "all")
    verdict.look("derivation", done.problems)
    verdict.note("derivation", done.note)


def _rerun(oracle: Path | None, place: Place, config: Config, verdict: Verdict) -> None:
    if oracle is None:
        if is_sealed(place.root / results(place.trial)):
            verdict.note("rerun", "`--rerun ORACLE` judges winner and baseline again here")
        return
    if verdict.problems["bytes"]:
        verdict.note("rerun", "the bytes are not whole")
        return
    from kerneltrial.devices.device import DeviceProblem
    from kerneltrial.evidence.sealed import revealed_salt
    from kerneltrial.stages.judged_again import judged_again

    try:
        salt = revealed_salt(place.root / results(place.trial))
        verdict.look("rerun", list(judged_again(config, place.root, salt, oracle)))
    except DeviceProblem as problem:
        verdict.note("rerun", str(problem))


def _say_where_it_holds(place: Place) -> None:
    from kerneltrial.dag.environment import compared
    from kerneltrial.dag.locked import held

    lock = held(place.trial, place.root)
    if lock is not None and (place.root / record_path(place.trial, "decide")).is_file():
        print(printed(compared(lock).line))


def look(config: Config, root: Path, brought: Brought | None = None, bundle: bool = False) -> Verdict:
    """Look at all levels that need no device."""
    return _looked(Place(config.trial, root, config, bundle), brought or Brought())


def _looked(place: Place, brought: Brought) -> Verdict:
    from kerneltrial.dag import bound
    from kerneltrial.evidence import sealed
    from kerneltrial.evidence.verify import verify
    from kerneltrial.stages.rederived import differences

    verdict = verify(place.root / results(place.trial), place.root, lambda stage: stage in STAGES)
    if place.config is not None and not verdict.other_version:
        verdict.look("bytes", bound.differences(place.config, place.root))
    sealed.look(_evidence(place.trial, place.root, place.bundle), brought, verdict)
    if verdict.other_version:
        for level in ("derivation", "decision", "rerun"):
            verdict.note(level, verdict.other_version)
    elif verdict.records and place.config is not None:
        verdict.look("decision", differences(place.config, place.root))
        verdict.note("decision", _outcome(place))
        if not (place.root / record_path(place.trial, "decide")).is_file():
            verdict.leave("decision")
    return verdict


def _outcome(place: Place) -> str:
    """Which decision it is that was looked at, in the record's own words; a stranger may have written any there."""
    decided = envelopes.read(place.root / record_path(place.trial, "decide"))
    if decided is None:
        return "there is none"
    outcome = decided.body.get("outcome") if isinstance(decided.body, dict) else None
    return f"it says {outcome}" if outcome in get_args(Outcome) else "it says none of GO, NO-GO and INCONCLUSIVE"


def _evidence(trial: str, root: Path, bundle: bool) -> Evidence:
    from kerneltrial.evidence import members

    folder = root / results(trial)
    if bundle:
        return Evidence(folder, root, members.present(root), root / members.SUMS, root / members.SUMS_SIGNATURE)
    signed = Signed(folder)
    lock = envelopes.read(folder / "lock.json")
    sources = lock.body.get("files", ()) if lock and isinstance(lock.body, dict) else ()
    there = [path for path in sources if (root / path).is_file()]
    return Evidence(folder, root, members.evidence(root, trial, there), signed.sums, signed.sums_signature)


@contextlib.contextmanager
def opened(given: argparse.Namespace, root: Path) -> Iterator[Place]:
    """What is to be verified; a tar file is unpacked into a folder that is gone afterwards."""
    if given.evidence is None:
        config, root = read_config(given, root)
        require_plain(root, results(config.trial), reports(config.trial))
        effective = root / results(config.trial) / "config.json"
        if effective.is_file() and not given.set:  # the run's own, with its command line's keys
            config = read(effective, {}, root)
        from kerneltrial.evidence.versions import other_version

        readable = not other_version(root / results(config.trial))
        yield Place(config.trial, root, config if readable else None)
        return
    path = root / given.evidence
    if (path / "config.json").is_file() and path.resolve().parent.name == "results":  # a trial's own folder of results
        trial, folder = path.resolve().name, path.resolve().parents[1]
        require_plain(folder, results(trial), reports(trial))
        yield _place(path.resolve() / "config.json", bundle=False)
        return
    if path.is_dir():
        yield _unpacked(path)
        return
    if not path.is_file():
        raise InputProblem(f"{given.evidence}: there is no such file or folder")
    from kerneltrial.evidence.tarball import unpack

    with tempfile.TemporaryDirectory(prefix="kerneltrial-") as folder:
        yield _unpacked(unpack(path, Path(folder)))


def _unpacked(folder: Path) -> Place:
    from kerneltrial.evidence.members import SUMS, SUMS_SIGNATURE

    if any(os.path.lexists(folder / name) for name in (SUMS, SUMS_SIGNATURE)):  # whatever they are: a bundle
        require_plain(folder, ".", links=False)
    found = sorted(folder.glob("results/*/config.json"))
    if len(found) != 1:
        raise InputProblem(
            f"{folder.name}: holds {len(found)} trials (results/NAME/config.json), and a bundle holds one; "
            "give a bundle, or one trial's folder results/NAME"
        )
    trial = found[0].parent.name
    require_plain(folder, results(trial), reports(trial))
    return _place(found[0], bundle=(folder / SUMS).is_file())


def _place(config_path: Path, *, bundle: bool) -> Place:
    """The trial of a `results/NAME/config.json`."""
    from kerneltrial.evidence.versions import other_version

    trial, folder = config_path.parent.name, config_path.parents[2]
    if other_version(config_path.parent):
        return Place(trial, folder, None, bundle)
    try:
        config = read(config_path, {}, folder)
    except Problem as problem:
        raise InputProblem(f"{folder.name}: the bundle is broken: {problem}") from problem
    if config.trial != trial:
        raise InputProblem(f"{folder.name}: its config is of trial {config.trial}, not of {trial}")
    return Place(trial, folder, config, bundle)


def _day(text: str) -> str:
    """A day as ssh-keygen takes it."""
    if text and not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        raise InputProblem(f"--at {text}: write a day, such as 2026-12-01")
    return text.replace("-", "") + "120000" if text else ""
