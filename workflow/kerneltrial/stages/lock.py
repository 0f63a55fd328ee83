"""Lock: fix what is tried, how it is judged and on what, before the first proposal."""

from typing import Any

import msgspec

from kerneltrial.dag.graph import fragment_path, ledger_path
from kerneltrial.dag.secrets import require_no_secret
from kerneltrial.devices.opening import detect
from kerneltrial.inputs.cases import check_room_in_l2
from kerneltrial.inputs.holdout import commitment
from kerneltrial.inputs.lock import Identity, assemble, file_digests
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.inputs.toolchain import toolchain
from kerneltrial.inputs.trial import read_trial
from kerneltrial.propose.search.search import open_search
from kerneltrial.records.device import Device
from kerneltrial.records.lock import Lock
from kerneltrial.sandbox import means
from kerneltrial.sandbox.problem import SandboxProblem
from kerneltrial.stages.job import Job
from kerneltrial.stages.oracle_apart import check_apart
from kerneltrial.stages.salt import ready_salt
from kerneltrial.store import journal, ledger
from kerneltrial.store.canonical import builtins, canonical, digest
from kerneltrial.store.problem import StoreProblem


def run(job: Job) -> Lock:
    """Read and compare all inputs, ask the oracle once, find the device, commit to the holdout's salt."""
    path = job.root / ledger_path(job.trial, "lock")
    earlier = ledger.versions(path, Lock)
    if not earlier:
        means.begin()  # it tries while inputs are read
    inputs = read_trial(job.sources, job.root)
    check_apart(job.source("oracle"), inputs, job.source("cases").parent)
    identity = Identity(
        files=file_digests(job.sources, job.root),
        toolchain=toolchain(),
        sandbox=earlier[-1].sandbox if earlier else _means(str(job.given["sandbox"])),
        holdout_commitment=commitment(ready_salt(job)),
    )
    lock = assemble(_given(job, earlier), inputs, _runs(job, _device(job, earlier)), identity)
    _require_goal(lock)
    require_no_secret(dict(lock.asked), lock.model.key_variable)
    if lock.proposer == "search":
        open_search(job.source("space"), lock.cases, lock.device, lock.seed)  # what is wrong with it is said now
    check_room_in_l2(lock.cases, lock.contract, int(lock.device.fingerprint.get("l2_bytes", 0)))
    if earlier and canonical(earlier[-1]) != canonical(lock):
        raise StoreProblem(
            f"{path.relative_to(job.root)}: holds another lock; start a new trial: `kerneltrial lock --new`"
        )
    _never_another(job, lock)
    ledger.record(path, lock)
    return lock


def _never_another(job: Job, lock: Lock) -> None:
    """A ledger may be removed with the lock; the journal still knows what was locked."""
    fragment = job.root / fragment_path(job.trial, "lock")
    bodies = {line.event.get("body") for line in journal.read(fragment)}
    if bodies - {digest(canonical(lock))}:
        raise StoreProblem(
            f"{fragment.relative_to(job.root)}: this folder was locked before, on other inputs; start a new trial: "
            "`kerneltrial lock --new`"
        )


def _runs(job: Job, device: Device) -> Device:
    """The device; raise InputProblem where it cannot run the baseline that is given."""
    baseline = job.sources["baseline"][0]
    if baseline.endswith(".cubin") and device.kind == "cpu":
        why = device.fingerprint.get("gpu", "there is no NVIDIA driver on this machine")
        raise InputProblem(f"{baseline}: is machine code, which only a card runs; give its PTX, or use a card ({why})")
    return device


def _require_goal(lock: Lock) -> None:
    """Raise InputProblem where `stop: beats_compiler` could never stop anything: no compiler's kernel will be timed."""
    if lock.stop != "beats_compiler":
        return
    if lock.device.kind == "cpu":
        why = "a trial on the cpu device times nothing"
    elif not lock.contract.torch.strip():
        why = "the contract gives no torch expression, of which torch.compile would make one"
    else:
        return
    raise InputProblem(f"config key stop: beats_compiler waits for a compiler's kernel, and {why}; take stop: fixed")


def _means(asked: str) -> dict[str, str]:
    """What confines children here; raise SandboxProblem where that is too little and the config asks for it."""
    absent = means.lacking()
    if absent and asked == "required":
        raise SandboxProblem(
            f"this system has no {absent}, so that candidates could not be confined; run in a disposable container or "
            "virtual machine, and say so by `sandbox: plain`"
        )
    return means.report()


def _given(job: Job, earlier: list[Lock]) -> dict[str, Any]:
    """What was asked for; the prices of a model stay those of the first lock, as later ones are terms."""
    first = {"prices.model": builtins(earlier[-1].model_prices)} if earlier else {}
    return {**job.given, **first}


def _device(job: Job, earlier: list[Lock]) -> Device:
    """What `auto` became at the first lock stays, also where the lock's record is made again."""
    if earlier:
        return earlier[-1].device
    device, arch = detect(job.given["device"]), str(job.given["arch"])
    return device if arch == "auto" else msgspec.structs.replace(device, arch=arch)
