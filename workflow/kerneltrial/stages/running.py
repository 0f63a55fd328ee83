"""Run one stage: hand it what it may read, write its record, then its journal line and what it used."""

import contextlib
import dataclasses
import importlib
import os
import resource
import socket
import time
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from kerneltrial.dag import graph
from kerneltrial.dag.freshness import Digests, made_from
from kerneltrial.evidence import chain, links
from kerneltrial.inputs.config import Config
from kerneltrial.records.envelope import Envelope
from kerneltrial.records.usage import Usage
from kerneltrial.sandbox import spent
from kerneltrial.stages import card, early
from kerneltrial.stages.job import Job
from kerneltrial.store import envelopes, journal
from kerneltrial.store.canonical import builtins, canonical, digest
from kerneltrial.store.problem import StoreProblem
from kerneltrial.store.signed import Signed, is_sealed


def run_stage(config: Config, stage: str, iteration: int, code: str, root: Path) -> Path:
    """Run a stage and return the path of its record.

    Raises
    ------
    StoreProblem
        A record that the stage reads is missing or was changed; nothing is written.
    """
    started = time.monotonic()
    if is_sealed(root / graph.results(config.trial)):
        raise StoreProblem(
            f"{graph.results(config.trial)} is sealed: nothing is made in it any more; `kerneltrial lock --new` sets "
            "it aside and starts a new trial"
        )
    digests = Digests(root)
    want = made_from(config, stage, iteration, digests, code)
    job = job_of(config, stage, iteration, digests)
    on_card = early.device_kind(job) == "cuda"
    with early.nursery(job) as nursery, card.held(stage) if on_card else contextlib.nullcontext():
        alone = time.monotonic()
        ready = dataclasses.replace(job, nursery=nursery)
        body = importlib.import_module(f"kerneltrial.stages.{stage}").run(ready)
    # A proposer's tries hold the card one by one; a stage of the device holds it to its end.
    device_s = time.monotonic() - alone if on_card else card.seconds_held()
    envelope = envelopes.seal(stage, iteration, want, body)
    path = root / graph.record_path(config.trial, stage, iteration)
    usage = _usage(time.monotonic() - started, device_s)
    key = {"usage": stage, "iteration": iteration, "made_from": digest(canonical(want))}
    event = _event(envelope, usage)
    if stage == "propose":  # so that the journal shows what a reviewer had signed when it was made
        event["receipt"] = Signed(job.folder).receipt_digest()
    # In this order, as a kill may come between: usage that is there has its line in the journal, a record has both.
    journal.append(root / graph.fragment_path(config.trial, stage, iteration), event)
    job.usage_store(stage, iteration).once(key, lambda: usage, Usage)
    envelopes.write(path, envelope)
    if stage == "decide":
        chain.extend(job.folder)
    return path


def _event(envelope: Envelope, usage: Usage) -> dict[str, object]:
    """The journal's line on a record: digests of the whole, of its body, and of the config keys that it read.

    And of the measurements that it rests on, so that one which was removed and drawn anew is missed.
    """
    rests_on = sorted(links.measurements(envelope.body))
    return {
        "stage": envelope.stage,
        "iteration": envelope.iteration,
        "record": envelope.sha256,
        "body": envelopes.body_digest(envelope),
        "config": digest(canonical(envelope.made_from.config)),
        "process": os.getpid(),
        "usage": builtins(usage),
        **({"measurements": rests_on} if rests_on else {}),
    }


def job_of(config: Config, stage: str, iteration: int, digests: Digests) -> Job:
    """The job with everything that it may read; raise StoreProblem where a record is missing."""
    spec = graph.STAGES[stage]
    files, root = digests.files(config), digests.root
    paths = graph.record_inputs(config.trial, stage, iteration, config.iterations)
    return Job(
        stage=stage,
        iteration=iteration,
        root=root,
        trial=config.trial,
        iterations=config.iterations,
        given=config.slice(spec.reads),
        sources={group: files.get(group, ()) for group in spec.sources},
        inputs={path: _read(root, path, stage) for path in paths},
    )


def _read(root: Path, path: str, stage: str) -> bytes:
    try:
        return (root / path).read_bytes()
    except FileNotFoundError:
        raise StoreProblem(
            f"{path} is missing, and {stage} reads it; run the stage that makes it, or snakemake"
        ) from None


def _usage(wall_s: float, device_s: float) -> Usage:
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    cpu_s = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime + spent.seconds()
    return Usage(
        wall_s=_seconds(wall_s),
        cpu_s=_seconds(cpu_s),
        device_s=_seconds(device_s),
        finished_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        host=socket.gethostname(),
    )


def _seconds(value: float) -> Decimal:
    return Decimal(f"{value:.3f}")
