"""`kerneltrial seal`: end the trial. The salt is revealed, and every file's digest written down and signed."""

import argparse
from collections.abc import Mapping
from pathlib import Path

from kerneltrial.commands.configuration import read_config
from kerneltrial.commands.trial_records import alone, record
from kerneltrial.dag import graph
from kerneltrial.inputs.config import Config, read
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.records.decision import Decision
from kerneltrial.records.lock import Lock
from kerneltrial.records.terms import Terms
from kerneltrial.store.canonical import canonical
from kerneltrial.store.files import write_atomic
from kerneltrial.store.signed import Signed


def run(given: argparse.Namespace, root: Path) -> int:
    """Verify, then seal; refuse where something is wrong, as a seal over broken evidence would say the contrary."""
    from kerneltrial.evidence.members import instructions
    from kerneltrial.evidence.signatures import SEAL, sign
    from kerneltrial.store.signed import is_sealed

    key = (root / given.sign).resolve() if given.sign else None
    config, root = read_config(given, root)
    results = alone(root, config.trial)
    signed = Signed(results)
    config = _of_run(config, root)
    _refuse_broken(config, root)  # a trial that was sealed before may have been changed since
    written: dict[Path, bytes] = {}
    if not is_sealed(results):
        written = {signed.folder / name: path.read_bytes() for name, path in instructions().items()}
        written[signed.seal] = canonical(_sealed(config, root, results))
    if not signed.sums.is_file():
        written[signed.sums] = _sums(config, root, written)
    if key is not None:
        sums = written[signed.sums] if signed.sums in written else signed.sums.read_bytes()
        written[signed.sums_signature] = sign(sums, key, SEAL)
    for path, content in written.items():  # nothing is written before all is made: a seal cannot be taken back
        write_atomic(path, content)
    print(f"sealed: {signed.sums.relative_to(root)}" + ("" if key else ", not signed (--sign KEY)"))
    print("the trial is over and its salt is revealed; `kerneltrial bundle` packs it for others")
    return 0


def _of_run(config: Config, root: Path) -> Config:
    """The config that the run wrote down: a bundle of the trial is read by it, so it has to be there."""
    path = root / graph.results(config.trial) / "config.json"
    if not path.is_file():
        raise InputProblem(
            f"{path.relative_to(root)} is missing: the trial has not run; run snakemake to the end, then seal"
        )
    return read(path, {}, root)


def _refuse_broken(config: Config, root: Path) -> None:
    from kerneltrial.commands.verify import look

    for stage, iteration in graph.jobs(config.iterations):
        if not (root / graph.record_path(config.trial, stage, iteration)).is_file():
            raise InputProblem(
                f"{graph.record_path(config.trial, stage, iteration)} is missing: the trial has not run to its end; "
                "run snakemake, then seal"
            )
    verdict = look(config, root)
    if not verdict.whole:
        raise InputProblem(f"{graph.results(config.trial)}: cannot be sealed: {verdict.lines[0]}")


def _sealed(config: Config, root: Path, results: Path) -> object:
    from kerneltrial.evidence.sealed import judged_candidates
    from kerneltrial.evidence.sealing import seal, sealed_cases
    from kerneltrial.inputs.holdout import read_holdout

    lock = record(root, config.trial, "lock", Lock)
    domain, salt = read_holdout(root / config.holdout), (results / "private" / "holdout-salt").read_bytes()
    cases = sealed_cases(lock, domain, salt, judged_candidates(results))
    terms, decision = record(root, config.trial, "terms", Terms), record(root, config.trial, "decide", Decision)
    return seal(results, lock, terms, decision, cases)


def _sums(config: Config, root: Path, written: Mapping[Path, bytes]) -> bytes:
    """SHA256SUMS of what lies there and of what will be `written` beside it."""
    from kerneltrial.evidence.members import evidence, instructions
    from kerneltrial.evidence.sealing import sums

    members = evidence(root, config.trial, record(root, config.trial, "lock", Lock).files)
    later = {path: content for path, content in written.items() if path.name not in instructions()}
    return sums(members, {path.relative_to(root).as_posix(): content for path, content in later.items()})
