"""A candidate: a proposed kernel and how to launch it."""

from typing import Literal

from kerneltrial.records.plan import LaunchPlan
from kerneltrial.records.record import Digest, Record

Language = Literal["cuda_cpp", "numba_cuda"]
Pattern = Literal["algebra", "fusion", "memory_access", "hardware", "library", "none"]


class Candidate(Record):
    """`id` is the SHA-256 of the canonical form of {language, source, plan}; `source` is the digest of an object."""

    id: Digest
    language: Language
    source: Digest
    plan: LaunchPlan
