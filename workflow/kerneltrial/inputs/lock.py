"""The lock, assembled from values: what is tried, how it is judged and on what."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kerneltrial.inputs.far import reaches, sealed_far_cases
from kerneltrial.inputs.holdout import sealed_performance
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.inputs.trial import TrialInputs
from kerneltrial.records.asking import Command, Model
from kerneltrial.records.device import Device
from kerneltrial.records.lock import Lock
from kerneltrial.records.protocol import Protocol
from kerneltrial.records.terms import ModelPrices, NoModelPrices
from kerneltrial.store.canonical import convert, digest


@dataclass(frozen=True)
class Identity:
    """Digests of the trial's files by path, versions by distribution, what confines children, the salt's commitment."""

    files: Mapping[str, str]
    toolchain: Mapping[str, str]
    sandbox: Mapping[str, str]
    holdout_commitment: str


def assemble(asked: Mapping[str, Any], inputs: TrialInputs, device: Device, identity: Identity) -> Lock:
    """Return the lock. `asked` holds the locked config keys in JSON types, `device` is what `auto` became.

    Beside them it holds `prices.model`, which the lock keeps as it was at first: later prices are terms.
    """
    return Lock(
        trial=asked["trial"],
        asked={key: value for key, value in asked.items() if key != "prices.model"},
        contract=inputs.contract,
        cases=inputs.cases,
        protocol=convert(Protocol, asked["protocol"]),
        device=device,
        files=dict(sorted(identity.files.items())),
        oracle_author=asked["oracle_author"],
        proposer=asked["proposer"],
        languages=tuple(asked["languages"]),
        candidates_per_iteration=asked["candidates_per_iteration"],
        seed=asked["seed"],
        toolchain=dict(sorted(identity.toolchain.items())),
        sandbox=dict(sorted(identity.sandbox.items())),
        holdout_commitment=identity.holdout_commitment,
        model=convert(Model, asked["model"]),
        model_prices=_prices(asked["prices.model"]),
        command=convert(Command, asked["command"]),
        stop=asked["stop"],
        holdout_count=_sealed_count(inputs),
    )


def _sealed_count(inputs: TrialInputs) -> int:
    """How many sealed cases each candidate meets; their number hangs on no salt."""
    far = sealed_far_cases(inputs.contract, reaches(inputs.contract, inputs.cases), b"", "")
    return inputs.holdout.count + len(far) + len(sealed_performance(inputs.cases, b"", ""))


def _prices(asked: Mapping[str, Any]) -> ModelPrices | NoModelPrices:
    return convert(ModelPrices, asked) if asked["kind"] == "tokens" else NoModelPrices()


def file_digests(files: Mapping[str, tuple[str, ...]], folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file of `sources`, by its path relative to `folder`; raises `InputProblem`."""
    found: dict[str, str] = {}
    for path in sorted({path for group in files.values() for path in group}):
        try:
            found[path] = digest((folder / path).read_bytes())
        except OSError as fault:
            raise InputProblem(f"{path}: cannot be read ({fault.strerror})") from None
    return found
