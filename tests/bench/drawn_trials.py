"""Confirmations drawn from a pool of processes, by the trial's own plan, figures and rule.

A process of a pool is what it measured: the log ratios of its rounds (baseline over candidate) and those of A over A'.
`false_alarms.py` draws from processes that `process_pool.py` recorded on a card, the unit tests from made-up ones.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp, fsum
from random import Random
from statistics import median
from types import SimpleNamespace
from typing import Any

from kerneltrial.decide.rules_fast import confirmed_speedup
from kerneltrial.devices.device import Samples
from kerneltrial.measure.confirm import Figures, enough, figures
from kerneltrial.records.confirmation import Confirmation, Confirmed
from kerneltrial.records.decision import Passed
from kerneltrial.records.protocol import Protocol
from kerneltrial.records.terms import Policy

CASE = "case"


@dataclass(frozen=True)
class Process:
    """Log ratios by round; seconds by the clock and seconds that the card worked, 0 where it is made up."""

    rounds: tuple[float, ...]
    noise: tuple[float, ...]
    wall_s: float = 0.0
    gpu_s: float = 0.0

    def scaled(self, by: float) -> "Process":
        """The same process, had the candidate been so many times as fast."""
        return replace(self, rounds=tuple(value + by for value in self.rounds))

    @property
    def samples(self) -> Samples:
        """Latencies with these ratios, around 10 us."""
        a, a2 = (tuple(10 * exp(sign * value / 2) for value in self.noise) for sign in (1, -1))
        b = tuple(10 * exp(-value) for value in self.rounds)
        rows = {"a": a, "a2": a2, "b": b}
        return Samples(
            clock="pool", resolution_us=0.0, calls_per_sample=1, warm_us=rows, cold_us=rows, outputs=(),
            device_state={}, discarded=0,
        )  # fmt: skip


Pool = Sequence[Process]


def truth(pool: Pool) -> float:
    """The log ratio that the whole pool gives: the mean of its processes' medians."""
    return fsum(median(process.rounds) for process in pool) / len(pool)


def moved_to(pool: Pool, log_ratio: float) -> list[Process]:
    """The pool, scaled so that its truth is this log ratio."""
    by = log_ratio - truth(pool)
    return [process.scaled(by) for process in pool]


def turned(pool: Pool) -> list[Process]:
    """The pool, had baseline and candidate changed places; the noise stays that of what was the baseline."""
    return [replace(process, rounds=tuple(-value for value in process.rounds)) for process in pool]


@dataclass(frozen=True)
class Trial:
    """One confirmation: its figures, what its timings took by the clock, and how long the card worked for them."""

    figures: Figures
    wall_s: float
    gpu_s: float

    @property
    def passes(self) -> bool:
        """Whether the rule `confirmed_speedup` passes under the default policy."""
        outcome = Confirmed(
            winner="0" * 64, cases=self.figures.cases, geometric_mean=self.figures.geometric_mean,
            looked=self.figures.looked, valid=True, findings=(),
        )  # fmt: skip
        terms = SimpleNamespace(now=SimpleNamespace(policy=Policy()))
        grounds: Any = SimpleNamespace(confirmation=Confirmation(outcome=outcome), terms=terms)
        return isinstance(confirmed_speedup(grounds), Passed)

    @property
    def told_slower(self) -> bool:
        """The whole interval lies below 1."""
        return self.figures.geometric_mean.high < 1

    def covers(self, log_ratio: float) -> bool:
        """Whether the interval holds this log ratio."""
        interval = self.figures.geometric_mean
        return interval.low <= exp(log_ratio) <= interval.high


def confirmed(pool: Pool, random: Random, protocol: Protocol) -> Trial:
    """One confirmation of processes drawn from the pool without return, until the protocol's plan stops."""
    drawn: list[Process] = []
    for process in random.sample(list(pool), len(pool)):
        drawn.append(process)
        samples = {CASE: [one.samples for one in drawn]} if _is_look(len(drawn), protocol) else None
        if samples and enough(samples, protocol):
            found = figures(samples, {CASE: ["0" * 64] * len(drawn)}, protocol, {})
            return Trial(found, fsum(one.wall_s for one in drawn), fsum(one.gpu_s for one in drawn))
    raise ValueError(f"a pool of {len(pool)} processes is too small for the protocol's plan")


def _is_look(count: int, protocol: Protocol) -> bool:
    return count % protocol.confirmation_processes == 0


def best_of(clones: int, pool: Pool, random: Random, protocol: Protocol) -> tuple[float, Trial]:
    """A search over identical clones, one process each, and the confirmation of the one that seemed the fastest.

    Returns
    -------
    tuple of float and Trial
        The log ratio that the winner seemed to have in the search, which is luck, and its confirmation in processes
        that the search did not use.
    """
    shuffled = random.sample(list(pool), len(pool))
    search, fresh = shuffled[:clones], shuffled[clones:]
    return max(median(process.rounds) for process in search), confirmed(fresh, random, protocol)


def trials(pool: Pool, count: int, seed: int, protocol: Protocol) -> Iterator[Trial]:
    """So many confirmations."""
    random = Random(seed)
    return (confirmed(pool, random, protocol) for _ in range(count))
