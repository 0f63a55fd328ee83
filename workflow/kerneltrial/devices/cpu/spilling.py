"""Which registers a thread need not store again when it waits: their place in its context holds them already.

What is live across a wait is stored there and loaded when the thread resumes. A register that nothing wrote since, on
any way to the next wait, lies there still; and one that is only carried through is then never loaded at all.
"""

from collections import Counter

from kerneltrial.devices.cpu.blocks import Block
from kerneltrial.devices.cpu.flow import Flow, bits


def live_across(flow: Flow, block: Block) -> int:
    """The registers that must outlive the wait at the end of `block`."""
    live = flow.blocks[block.index + 1].live_in if block.index + 1 < len(flow.blocks) else 0
    for register in block.last.reads:
        live |= 1 << register
    return live


def kept_in_context(flow: Flow) -> int:
    """Registers that are written once and outlive a wait: their place in the context is all that they have.

    So nothing of them is stored again when the thread waits, or loaded when it resumes before it is looked at.
    """
    written = Counter(register for block in flow.blocks for step in block.steps for register in step.writes)
    live = 0
    for block in flow.blocks:
        if block.ends == "sync":
            live |= live_across(flow, block)
        elif block.index in flow.spins:
            live |= flow.blocks[block.target].live_in
    kept = 0
    together = {register for lanes in flow.superwords.together for register in lanes}
    for register in bits(live & ~flow.blocks[0].live_in):
        kept |= (written[register] == 1 and register not in together) << register
    return kept


def stored_before_wait(flow: Flow) -> dict[int, int]:
    """For each block that ends in a wait, the registers whose place holds their value when the thread comes to it."""
    waits = [block for block in flow.blocks if block.ends == "sync"]
    if not waits:
        return {}
    every = 0
    for block in waits:
        every |= live_across(flow, block)
    before = dict.fromkeys(range(len(flow.blocks)), every)
    before[0] = 0
    changed = True
    while changed:
        changed = False
        for block in flow.blocks:
            after = _after(flow, block, before[block.index])
            for successor in flow.successors(block):
                joined = before[successor.index] & after
                if joined != before[successor.index]:
                    before[successor.index] = joined
                    changed = True
    return {block.index: _without_writes(block, before[block.index], len(block.steps) - 1) for block in waits}


def _after(flow: Flow, block: Block, stored: int) -> int:
    """What is stored behind a block; a wait under a guard may be passed by, so that it stores nothing for sure."""
    if block.ends != "sync":
        return _without_writes(block, stored, len(block.steps))
    stored = _without_writes(block, stored, len(block.steps) - 1)
    if block.last.instruction.guard is None:
        stored |= live_across(flow, block)
    for register in block.last.writes:
        stored &= ~(1 << register)
    return stored


def _without_writes(block: Block, stored: int, count: int) -> int:
    """`stored` without what the first `count` steps write."""
    for step in block.steps[:count]:
        for register in step.writes:
            stored &= ~(1 << register)
    return stored
