"""How many blocks of a kernel fit a multiprocessor at once, and what stands in the way, in one sentence.

The rules are those of the CUDA C++ Programming Guide, "Multiprocessor Level" under "Performance Guidelines": registers
are given out in units of 256 a warp, shared memory in units of 128 bytes with 1 KiB a block for the system.
"""

from kerneltrial.inputs.resolve import PlanProblem, resolve
from kerneltrial.propose.search.card import RESERVED_SHARED_BYTES, Card
from kerneltrial.records.build import Built
from kerneltrial.records.candidate import Candidate
from kerneltrial.records.contract import Contract

_WARP = 32


def occupancy_sentence(
    candidate: Candidate, built: Built, contract: Contract, dimensions: dict[str, int], card: Card
) -> str:
    """Say how full the card is at `dimensions`, by the entry that fits worst; empty where the plan has no launch."""
    try:
        call = resolve(candidate.plan, contract, dimensions, built.abi)
    except PlanProblem:
        return ""
    entries = {entry.name: entry for entry in built.entries}
    sentences = []
    for launch in call.launches:
        entry = entries.get(launch.entry)
        if entry is None:
            continue
        threads = launch.block[0] * launch.block[1] * launch.block[2]
        shared = entry.shared_bytes + launch.shared_bytes
        blocks, limiter = resident(threads, entry.registers, shared, card)
        share = 100 * blocks * threads / card.threads
        grid = launch.grid[0] * launch.grid[1] * launch.grid[2]
        sentences.append((share, _sentence(launch.entry, threads, (blocks, limiter), share, (grid, card))))
    return min(sentences)[1] if sentences else ""


def resident(threads: int, registers: int, shared_bytes: int, card: Card) -> tuple[int, str]:
    """Return how many blocks are resident, and the limiter: threads, blocks, registers or shared memory."""
    warps = -(-threads // _WARP)
    per_warp = -(-max(registers, 1) * _WARP // 256) * 256
    shared = -(-(shared_bytes + RESERVED_SHARED_BYTES) // 128) * 128
    limits = {
        "the threads that a multiprocessor holds": card.threads // (warps * _WARP),
        "the number of blocks that a multiprocessor holds": card.blocks,
        "registers": card.registers // (per_warp * warps),
        "shared memory": card.shared_bytes // shared,
    }
    limiter = min(limits, key=lambda name: limits[name])
    return limits[limiter], limiter


def _sentence(entry: str, threads: int, held: tuple[int, str], share: float, launch: tuple[int, Card]) -> str:
    blocks, limiter = held
    grid, card = launch
    filled = grid / max(blocks * card.multiprocessors, 1)
    whose = "an assumed card's" if card.assumed else "the card's"
    tail = f"; its {grid} blocks fill {whose} {card.multiprocessors} multiprocessors {filled:.2f} times"
    if not blocks:
        return f"{entry} with {threads} threads a block does not fit a multiprocessor: {limiter} are too few{tail}"
    full = f"({share:.0f} % of its threads), limited by {limiter}"
    return f"{entry} keeps {blocks} blocks of {threads} threads on a multiprocessor {full}{tail}"
