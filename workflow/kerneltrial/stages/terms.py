"""Terms: what a saving must be worth. The ledger keeps every version; a change after the lock is an amendment."""

from kerneltrial.dag.graph import ledger_path
from kerneltrial.records.terms import Agreed, Terms
from kerneltrial.stages.job import Job
from kerneltrial.store import ledger
from kerneltrial.store.canonical import convert


def run(job: Job) -> Terms:
    """The versions of the terms so far, with the one that the config states now as the last."""
    now = convert(Agreed, dict(job.given))
    versions = ledger.record(job.root / ledger_path(job.trial, "terms"), now)
    return Terms(first=versions[0], now=now, amendments=tuple(versions[1:]))
