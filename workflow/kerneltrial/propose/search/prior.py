"""The analytic prior: a first guess at how long a configuration takes, before anything was measured.

It counts what bounds a kernel on one multiprocessor (instructions issued, bytes from the level-2 cache, round trips
that nothing hides) and how often that repeats (waves of blocks, from occupancy). It ranks; its cycles are no
prediction. The model in `model` corrects it from results.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from kerneltrial.inputs.expressions import names
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.propose.search.card import RESERVED_SHARED_BYTES, Card
from kerneltrial.propose.search.columns import Columns, Integers, column
from kerneltrial.propose.search.space_file import PriorTerms, SpaceFile, bare
from kerneltrial.records.plan import Variant

Dimensions = Mapping[str, int]

# Rounded figures of one Hopper multiprocessor (CUDA C++ Programming Guide, table of compute capability 9.0; cycles of
# latency and bytes a cycle as microbenchmarks of the architecture give them). Other cards differ by factors that hardly
# change an order.
ISSUE_PER_CYCLE = 4
CYCLES_PER_DEPENDENT_ISSUE = 2
BYTES_PER_CYCLE = 48
CYCLES_PER_STEP = 700
LAUNCH_CYCLES = 2500


@dataclass(frozen=True)
class Estimate:
    """The prior of n configurations for one case: cycles and blocks of one call, each of shape (n,)."""

    cycles: NDArray[np.float64]
    blocks: Integers


@dataclass(frozen=True)
class Reports:
    """What the compiler reported of n configurations, each of shape (n,): it stands in for the space's own guess.

    Registers a thread, static shared memory a block, bytes a thread that are spilled (stores and loads).
    """

    registers: Integers
    shared_bytes: Integers
    spilled_bytes: Integers

    def at(self, rows: NDArray[np.intp]) -> "Reports":
        return Reports(self.registers[rows], self.shared_bytes[rows], self.spilled_bytes[rows])


def estimate(
    file: SpaceFile, table: Columns, dimensions: Dimensions, card: Card, reports: Reports | None = None
) -> Estimate:
    """Return cycles and blocks of one call of every configuration in `table` (parameters and derived names).

    With `reports`, one for each configuration, occupancy is the compiler's and spills cost instructions.

    Raises
    ------
    InputProblem
        Where the plan has no launch for this case, or an expression has no value.
    """
    rows = len(next(iter(table.values())))
    known = {**table, **{name: np.full(rows, size, dtype=np.int64) for name, size in dimensions.items()}}
    cycles, blocks = np.zeros(rows), np.zeros(rows, dtype=np.int64)
    left = np.arange(rows)
    for variant in file.plan.variants:
        holds = column(bare(variant.when), {name: held[left] for name, held in known.items()}) != 0
        taken, left = left[holds], left[~holds]
        if taken.size:
            columns = {name: held[taken] for name, held in known.items()}
            found = _estimate(file.prior, variant, columns, card, reports.at(taken) if reports else None)
            cycles[taken], blocks[taken] = found.cycles, found.blocks
    if left.size:
        shape = ", ".join(f"{name}={size}" for name, size in dimensions.items())
        raise InputProblem(f"the plan has no launch for {shape}; add a variant, or correct a `when`")
    return Estimate(cycles, blocks)


def log_cycles(
    file: SpaceFile, table: Columns, cases: Sequence[Dimensions], card: Card, reports: Reports | None = None
) -> NDArray[np.float64]:
    """Return the mean over cases of the natural logarithm of the estimated cycles, shape (n,)."""
    logs = [np.log(estimate(file, table, case, card, reports).cycles) for case in cases]
    mean: NDArray[np.float64] = np.mean(logs, axis=0)
    return mean


def _estimate(terms: PriorTerms, variant: Variant, known: Columns, card: Card, reports: Reports | None) -> Estimate:
    blocks: Integers = np.zeros(1, dtype=np.int64)
    cycles = np.full(1, float(LAUNCH_CYCLES))
    instructions, traffic, steps, tail = (
        _term(terms, name, known).astype(np.float64)  # products below may leave what int64 holds
        for name in ("instructions", "traffic_bytes", "steps", "tail_bytes")
    )
    registers, shared = _term(terms, "registers", known), _term(terms, "shared_bytes", known)
    if reports is not None:
        registers = reports.registers
        # Spilled bytes are counted where they stand in the code: as often as registers are spilled, a thread moves one
        # more word for each that it keeps.
        instructions = instructions * (1 + reports.spilled_bytes / (4 * np.maximum(registers, 1)))
    for launch in variant.launches:
        if reports is not None:
            shared = reports.shared_bytes + column(bare(launch.shared_bytes), known)
        grid, threads = _product(launch.grid, known), _product(launch.block, known)
        occupancy = _occupancy(card, threads, registers, shared)
        on_busiest = -(-grid // card.multiprocessors)
        resident = np.minimum(occupancy, on_busiest)
        issue = instructions * threads / 32 * resident / ISSUE_PER_CYCLE
        alone = instructions * CYCLES_PER_DEPENDENT_ISSUE
        bound = np.maximum(np.maximum(issue, alone), traffic * resident / BYTES_PER_CYCLE)
        waves = -(-on_busiest // occupancy)
        cycles = cycles + waves * (steps * CYCLES_PER_STEP + bound)
        blocks = blocks + grid
    return Estimate(cycles + tail / BYTES_PER_CYCLE, blocks)


def _term(terms: PriorTerms, name: str, known: Columns) -> Integers:
    """A term's column. Costs are never negative: a guess below zero would rank everything by nonsense."""
    expression: str = getattr(terms, name)
    values = column(expression, known)
    if (values < 0).any():
        row = int(np.argmin(values))
        there = ", ".join(f"{other}={known[other][row]}" for other in sorted(names(expression)))
        where = f" at {there}" if there else ""
        raise InputProblem(f"prior.{name}: {expression!r} is {values[row]}{where}; it must be at least 0")
    return values


def _occupancy(card: Card, threads: Integers, registers: Integers, shared_bytes: Integers) -> Integers:
    """Return how many blocks fit a multiprocessor at once; at least one, since every configuration is ranked."""
    rounded = -(-np.maximum(registers, 1) // 8) * 8
    by_registers = card.registers // (rounded * np.maximum(threads, 1))
    by_shared = card.shared_bytes // (shared_bytes + RESERVED_SHARED_BYTES)
    by_threads = np.minimum(card.threads // np.maximum(threads, 1), card.blocks)
    fits: Integers = np.maximum(1, np.minimum(np.minimum(by_registers, by_shared), by_threads))
    return fits


def _product(expressions: Sequence[str], known: Columns) -> Integers:
    product: Integers = reduce(np.multiply, [np.maximum(0, column(bare(e), known)) for e in expressions])
    return product
