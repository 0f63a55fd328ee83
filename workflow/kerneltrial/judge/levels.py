"""How closely the device looks at each run: `all` (races, uninitialised reads) where that is cheap, else `bounds`.

On `cpu`, looking at everything costs up to ten times the time of a run, and a kernel is compiled anew for each level,
often the larger cost. So for the kernels that a plan launches together, cases get `all` in every run, cheapest first,
as long as a budget of operations lasts; where it lasts for none, the cheapest case gets it in its first run. The rest
get `bounds`, and what was not looked at is said in words.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from kerneltrial.inputs.calls import Call
from kerneltrial.judge.casework import Level, LevelOf
from kerneltrial.records.reason import Finding, Reason

BUDGET_OPERATIONS: Final = 150_000_000  # over all runs: about half a second with every check on
ONCE_OPERATIONS: Final = 100_000_000  # of one run
_CLOSELY: Final = "races, reads of memory that was never written, barriers that not all threads reach"


@dataclass(frozen=True)
class Sized:
    """A case's name, its work by the contract's `operations`, and its call."""

    case: str
    operations: int
    call: Call

    @property
    def kernels(self) -> tuple[str, ...]:
        """The kernels that the call launches, in order."""
        return tuple(launch.entry for launch in self.call.launches)


@dataclass(frozen=True)
class Levels:
    """`every`: cases that get `all` in every run; `once`: cases that get it in their first."""

    every: frozenset[str]
    once: frozenset[str]

    def of(self, case: str) -> LevelOf:
        """The level of each run of a case."""

        def level(draw: int, turn: int) -> Level:
            return "all" if case in self.every or (case in self.once and draw == turn == 0) else "bounds"

        return level


BOUNDS_ALONE = Levels(every=frozenset(), once=frozenset())


def choose(cases: Sequence[Sized], runs: int) -> Levels:
    """Levels for cases of one plan, each of which is run `runs` times."""
    every: set[str] = set()
    once: set[str] = set()
    for group in by_kernels(cases):
        left = BUDGET_OPERATIONS
        for case in sorted(group, key=lambda c: c.operations):
            left -= case.operations * runs
            if left >= 0:
                every.add(case.case)
        cheapest = min(group, key=lambda c: c.operations)
        if cheapest.case not in every and cheapest.operations <= ONCE_OPERATIONS:
            once.add(cheapest.case)
    return Levels(every=frozenset(every), once=frozenset(once))


def left_out(cases: Sequence[Sized], levels: Levels) -> tuple[Finding, ...]:
    """What was not looked at, in words, and in which cases; a device at `bounds` does not say it."""
    never = [c.case for c in cases if c.case not in levels.every and c.case not in levels.once]
    partly = [c.case for c in cases if c.case in levels.once]
    findings = []
    if never:
        where = "in any case" if len(never) == len(cases) else f"in {_listed(never)}"
        findings.append(_finding(f"{_CLOSELY}, {where}: too large to look at"))
    if partly:
        findings.append(_finding(f"{_CLOSELY}, in {_listed(partly)} beyond the first run: large"))
    return tuple(findings)


def by_kernels(cases: Sequence[Sized]) -> Iterable[list[Sized]]:
    """Cases in groups that launch the same kernels."""
    groups: dict[tuple[str, ...], list[Sized]] = {}
    for case in cases:
        groups.setdefault(case.kernels, []).append(case)
    return groups.values()


def _finding(detail: str) -> Finding:
    return Finding(reason=Reason.CHECK_ABSENT, detail=detail)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"
