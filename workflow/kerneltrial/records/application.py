"""The user's application: how it is run with a kernel, and what its runs took."""

from typing import Annotated, Literal

from msgspec import Meta

from kerneltrial.records.record import Count, Positive, Record


class EndToEndAsked(Record):
    """How the application is run with the baseline and with the winner. No words: it is not run.

    `words` are the command's, run in the config's `application` folder; `measure` says whether wall time counts or the
    last line `kerneltrial_ms: NUMBER` that it prints; one run makes `invocations` (requests). `environment` names
    variables that it needs beside the usual ones.
    """

    words: tuple[str, ...] = ()
    measure: Literal["wall", "printed"] = "wall"
    pairs: Annotated[int, Meta(ge=5, le=500)] = 10
    invocations: Positive = 1
    timeout_s: Annotated[int, Meta(ge=1, le=86400)] = 600
    environment: tuple[str, ...] = ()


class ApplicationRun(Record):
    """One run: with the baseline `a` or the winner `b`. `ms` is what counts, `wall_ms` the whole process.

    `calls` and `peak_bytes` (of device memory) are what the provided loader saw; 0 where the application has its own.
    """

    kernel: Literal["a", "b"]
    ms: float
    wall_ms: float
    calls: Count = 0
    peak_bytes: Count = 0


class ApplicationRuns(Record):
    """All runs in order, one of each kernel a pair; `failed` says what went wrong with the winner, if anything."""

    runs: tuple[ApplicationRun, ...]
    failed: str = ""
