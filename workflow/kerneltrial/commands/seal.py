"""`kerneltrial seal`: end the trial. The salt is revealed, and every file's digest written down and signed."""

import argparse
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
    from kerneltrial.evidence.sealing import is_sealed
    from kerneltrial.evidence.signatures import SEAL, sign

    key = (root / given.sign).resolve() if given.sign else None
    config, root = read_config(given, root)
    results = alone(root, config.trial)
    signed = Signed(results)
    config = read(results / "config.json", {}, root) if (results / "config.json").is_file() else config
    if not is_sealed(results):
        _refuse_broken(config, root)
        write_atomic(signed.seal, canonical(_sealed(config, root, results)))
    if not signed.sums.is_file():
        write_atomic(signed.sums, _sums(config, root))
    if key is not None:
        write_atomic(signed.sums_signature, sign(signed.sums.read_bytes(), key, SEAL))
    print(f"sealed: {signed.sums.relative_to(root)}" + ("" if key else ", not signed (--sign KEY)"))
    print("the trial is over and its salt is revealed; `kerneltrial bundle` packs it for others")
    return 0


def _refuse_broken(config: Config, root: Path) -> None:
    from kerneltrial.commands.verify import look

    verdict = look(config, root)
    if not verdict.whole:
        raise InputProblem(f"{graph.results(config.trial)}: cannot be sealed: {verdict.lines[0]}")
    for stage, iteration in graph.jobs(config.iterations):
        if not (root / graph.record_path(config.trial, stage, iteration)).is_file():
            raise InputProblem(
                f"{graph.record_path(config.trial, stage, iteration)} is missing; run snakemake to the end, then seal"
            )


def _sealed(config: Config, root: Path, results: Path) -> object:
    from kerneltrial.evidence.sealed import judged_candidates
    from kerneltrial.evidence.sealing import seal, sealed_cases
    from kerneltrial.inputs.holdout import read_holdout

    lock = record(root, config.trial, "lock", Lock)
    domain, salt = read_holdout(root / config.holdout), (results / "private" / "holdout-salt").read_bytes()
    cases = {name: sealed_cases(lock, domain, salt, name) for name in judged_candidates(results)}
    terms, decision = record(root, config.trial, "terms", Terms), record(root, config.trial, "decide", Decision)
    return seal(results, lock, terms, decision, cases)


def _sums(config: Config, root: Path) -> bytes:
    from kerneltrial.evidence.members import evidence
    from kerneltrial.evidence.sealing import sums

    return sums(evidence(root, config.trial, record(root, config.trial, "lock", Lock).files))
