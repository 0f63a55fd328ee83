"""The lock: the scientific identity of a trial, fixed before the first proposal."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from kerneltrial.records.asking import Command, Model
from kerneltrial.records.case import Cases
from kerneltrial.records.contract import Contract
from kerneltrial.records.device import Device
from kerneltrial.records.protocol import Protocol
from kerneltrial.records.record import Digest, Name, Positive, Record
from kerneltrial.records.terms import ModelPrices, NoModelPrices


class Lock(Record):
    """What is tried, how it is judged and on what; stages read slices of it.

    `asked` holds the locked config keys as they were given, `device` what `auto` became. `files` maps each locked file,
    by its path relative to the config, to its digest. `toolchain` maps distributions to versions. `sandbox` says what
    confines children where the lock was made. `holdout_commitment` is the SHA-256 of the salt, which is revealed at the
    seal. `model_prices` are those that the model's budget is reckoned in: the terms' own when the trial was locked.
    """

    trial: Name
    asked: dict[str, Any]
    contract: Contract
    cases: Cases
    protocol: Protocol
    device: Device
    files: dict[str, Digest]
    oracle_author: str
    proposer: str
    languages: tuple[str, ...]
    candidates_per_iteration: Annotated[int, Meta(ge=1, le=64)]
    seed: int
    toolchain: dict[str, str]
    sandbox: dict[str, str]
    holdout_commitment: Digest
    holdout_count: Positive
    model: Model = Model()
    model_prices: ModelPrices | NoModelPrices = NoModelPrices()
    command: Command = Command()
    stop: Literal["fixed", "beats_compiler"] = "fixed"
