"""Processor time of processes that work for this stage and are no children of it: the system's account lacks it."""

_seconds = [0.0]


def add(seconds: float) -> None:
    """Count so many seconds of the processor more."""
    _seconds[0] += seconds


def seconds() -> float:
    """Seconds of the processor so far."""
    return _seconds[0]
