"""What the `cpu` device counts in place of time."""

from kerneltrial.records.record import Count, Record


class Counts(Record):
    """Counts over all launches of one call of a plan.

    `instructions` counts executed thread instructions by class; transactions are 32-byte sectors touched by a warp's
    access; conflicts are extra shared-memory passes of a warp's access beyond the first.
    """

    instructions: dict[str, Count]
    global_transactions: Count
    shared_accesses: Count
    shared_conflicts: Count
    barriers: Count
    blocks: Count
    threads_per_block: Count
    shared_bytes: Count
