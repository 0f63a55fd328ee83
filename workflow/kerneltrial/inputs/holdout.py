"""The holdout: the domain that sealed cases are drawn from, and how they are drawn.

The draw depends on a secret salt and on the candidate's digest, so nobody can know the cases of a candidate before it
is fixed, and anybody can repeat the draw once the salt is revealed.
"""

import hashlib
import hmac
from pathlib import Path

import msgspec
import numpy as np

from kerneltrial.inputs.digits import drawn, step_of
from kerneltrial.inputs.documents import read_document, to_record
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.records.case import Case, Cases, Generated, HoldoutDomain, Stored
from kerneltrial.records.contract import Contract, Range


def read_holdout(path: Path) -> HoldoutDomain:
    """Read the holdout's domain; raises `InputProblem` with file and field."""
    return to_record(read_document(path), HoldoutDomain, str(path))


def check_holdout(domain: HoldoutDomain, contract: Contract, path: Path) -> None:
    """Raise `InputProblem` unless the domain lies inside of the contract's, and has a distribution."""
    if set(domain.dimensions) != set(contract.dimensions):
        raise InputProblem(
            f"{path}: dimensions are {', '.join(sorted(domain.dimensions)) or 'none'}; "
            f"the contract has {', '.join(sorted(contract.dimensions))}"
        )
    for name, span in domain.dimensions.items():
        whole = contract.dimensions[name]
        if not (whole.minimum <= span.minimum and span.maximum <= whole.maximum):
            raise InputProblem(
                f"{path}: dimensions.{name}: {span.minimum} to {span.maximum} is not inside of the contract's "
                f"{whole.minimum} to {whole.maximum}"
            )
        if _choices(span, whole) < 1:
            step = step_of(span, whole)
            raise InputProblem(
                f"{path}: dimensions.{name}: no multiple of {step} from {span.minimum} to {span.maximum}"
            )
    if not domain.distributions:
        raise InputProblem(f"{path}: distributions: name at least one")


def draw_holdout(domain: HoldoutDomain, contract: Contract, salt: bytes, candidate_id: str) -> list[Case]:
    """Return the sealed cases of a candidate: `domain.count` shapes, and seeds for their values.

    The seed material is HMAC-SHA256(salt, candidate's digest). Every number of binary digits of a size is as likely, so
    that small ones, where guards matter, come as often as large ones; the domain's distributions are taken in turn.
    """
    if len(salt) < 16:
        raise ValueError(f"the salt has {len(salt)} bytes; at least 16 are needed to keep the cases secret")
    material = hmac.new(salt, candidate_id.encode(), hashlib.sha256).digest()
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(int.from_bytes(material, "little"))))
    inputs = [array.name for array in contract.arrays if array.role != "output"]
    cases: list[Case] = []
    for number in range(domain.count):
        dimensions = {
            name: drawn(domain.dimensions[name], span, rng) for name, span in sorted(contract.dimensions.items())
        }
        source = Generated(distribution=domain.distributions[number % len(domain.distributions)])
        cases.append(
            Case(
                name=f"holdout_{number + 1}",
                kind="correctness",
                dimensions=dimensions,
                seed=int(rng.integers(0, 2**53)),  # exact in every JSON reader
                inputs=dict.fromkeys(inputs, source),
            )
        )
    return cases


def sealed_seed(salt: bytes, purpose: str) -> int:
    """Return a seed that nobody can know without the salt: of HMAC-SHA256(salt, purpose) the first 48 bits."""
    return int.from_bytes(hmac.new(salt, purpose.encode(), hashlib.sha256).digest()[:6], "big")


def sealed_performance(cases: Cases, salt: bytes, candidate_id: str) -> list[Case]:
    """Return the performance cases with sealed values: a kernel that knows the public ones by heart fails here.

    Inputs that come from files stay what they are; a case in which all do has nothing to seal and is left out.
    """
    found = []
    for case in cases.cases:
        stored = {name: source for name, source in case.inputs.items() if isinstance(source, Stored)}
        if case.kind == "performance" and (not case.inputs or len(stored) < len(case.inputs)):
            seed = sealed_seed(salt, f"performance {candidate_id} {case.name}")
            found.append(msgspec.structs.replace(case, name=f"sealed_{case.name}", seed=seed, inputs=stored))
    return found


def commitment(salt: bytes) -> str:
    """Return what the lock says of the salt: its SHA-256."""
    return hashlib.sha256(salt).hexdigest()


def _choices(span: Range, whole: Range) -> int:
    step = step_of(span, whole)
    return span.maximum // step - -(-span.minimum // step) + 1
