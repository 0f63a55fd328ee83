"""How closely the device looks at each run: `all` (races, uninitialised reads) where that is cheap, else `bounds`.

Looking at everything costs about ten times the time of a run, so it is done on small cases for every draw once, on
middling ones for the first draw. Which kernels a plan launches can depend on the shape, so kernels that none of these
launches are looked at on their cheapest case, if that is not too large. What stays is said in words.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kerneltrial.inputs.calls import Call
from kerneltrial.judge.casework import Level, LevelOf
from kerneltrial.records.reason import Finding, Reason

EVERY_DRAW_OPERATIONS: Final = 600_000  # such as a matmul of 64^3: milliseconds with every check on
FIRST_DRAW_OPERATIONS: Final = 5_000_000  # some 50 ms
AT_MOST_OPERATIONS: Final = 100_000_000  # about a second


@dataclass(frozen=True)
class Sized:
    """A case's name, its work by the contract's `operations`, and its call."""

    case: str
    operations: int
    call: Call


@dataclass(frozen=True)
class Levels:
    """`every`: cases whose draws all get `all` once; `once`: cases whose first draw does."""

    every: frozenset[str]
    once: frozenset[str]

    def of(self, case: str) -> LevelOf:
        """The level of each run of a case."""

        def level(draw: int, turn: int) -> Level:
            closely = turn == 0 and (case in self.every or (case in self.once and draw == 0))
            return "all" if closely else "bounds"

        return level


def choose(cases: Sequence[Sized]) -> Levels:
    """Levels for cases of one plan."""
    every = {c.case for c in cases if c.operations <= EVERY_DRAW_OPERATIONS}
    once = {c.case for c in cases if EVERY_DRAW_OPERATIONS < c.operations <= FIRST_DRAW_OPERATIONS}
    looked_at = {_kernels(c.call) for c in cases if c.case in every | once}
    for case in sorted(cases, key=lambda c: c.operations):
        kernels = _kernels(case.call)
        if kernels not in looked_at and case.operations <= AT_MOST_OPERATIONS:
            looked_at.add(kernels)
            once.add(case.case)
    return Levels(every=frozenset(every), once=frozenset(once))


def left_out(cases: Sequence[Sized], levels: Levels) -> tuple[Finding, ...]:
    """What was not looked at, in words."""
    bounds_only = [c.case for c in cases if c.case not in levels.every and c.case not in levels.once]
    partly = [c.case for c in cases if c.case in levels.once]
    findings = []
    if bounds_only:
        findings.append(_finding(f"races and uninitialised reads in {_listed(bounds_only)}: too large to look at"))
    if partly:
        findings.append(_finding(f"races and uninitialised reads in {_listed(partly)} beyond the first draw: large"))
    return tuple(findings)


def _finding(detail: str) -> Finding:
    return Finding(reason=Reason.CHECK_ABSENT, detail=detail)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"


def _kernels(call: Call) -> tuple[str, ...]:
    return tuple(launch.entry for launch in call.launches)
