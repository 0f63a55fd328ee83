"""Where things lie in memory that host and generated code share; and the addresses that a kernel sees.

A kernel never sees a host address: global memory begins at `GLOBAL_BASE`, the shared and local windows of the generic
address space at theirs, and every access is translated and checked.
"""

GLOBAL_BASE = 0x7E00_0000_0000
SHARED_BASE = 0x0100_0000_0000
LOCAL_BASE = 0x0200_0000_0000
WINDOW_BYTES = 1 << 24

_BLOCK_FIELDS = (
    "shared", "params", "ctaid.x", "ctaid.y", "ctaid.z", "nctaid.x", "nctaid.y", "nctaid.z", "ntid.x",
    "ntid.y", "ntid.z", "threads", "shared_bytes", "dynamic_bytes", "arena", "arena_bytes", "flags",
    "globals", "budget", "thread_budget", "fault", "fault_site", "fault_address", "fault_thread",
    "fault_other", "shadow", "granule_shift", "epoch", "block_epoch",
    "context_bytes", "public_bytes", "local_offset", "local_bytes", "thread", "poison", "unset", "check_exits",
    "counters", "log", "log_lengths", "log_stride", "log_capacity", "sizes", "totals", "barriers",
    "after_pass", "suspect", "suspect_address", "suspect_thread", "ring_offset",
    "time", "epoch_time", "acquired_last", "acquired_before", "knows", "knows_since", "fenced", "fenced_card", "fences",
    "fence_log", "covered", "covered_words", "covered_time", "published", "published_rows", "places", "places_used_at",
    "places_most", "block_number", "global_shadow", "global_shift",
    "arrived", *(f"arrived{n}" for n in range(1, 16)), "backward", "noncoherent", "stale", "older",
    "older_sites", "older_read", "older_wrote", "older_address",
    "block_stride", "block_shift", "warp_stride", "warp_shift",
    "first_block", "end_block", "read_mask", "marks", "workspace", "prints",
    *(f"arena_units{n}" for n in (1, 2, 4, 8, 16)),
)  # fmt: skip
BLOCK = {name: 8 * index for index, name in enumerate(_BLOCK_FIELDS)}
"""Byte offsets of the 64-bit fields of the block's state: one per launch and worker, reused from block to block.

Blocks `first_block` to before `end_block` are run. With bounds alone, a read of global memory looks at the flags in
`read_mask`, and of each byte written there is a note in `marks` unless that is null (see `parallel`).
"""
BLOCK_BYTES = 8 * len(_BLOCK_FIELDS)

STATE, STATUS, TID_X, TID_Y, TID_Z, LINEAR, LANE, MASK, WARP_EPOCH, GROUP = range(0, 40, 4)
COPY_HEAD, COPY_TAIL, COPY_GROUP, EXPECTED, VOTES, VOTERS = range(40, 64, 4)
"""Byte offsets of the 32-bit fields at the head of a thread's context.

`STATE` is where the thread resumes, `MASK` the lanes it waits for (or the number of its barrier), `WARP_EPOCH` counts
the warp barriers that it passed, `GROUP` the lanes that took part in its last collective. `COPY_HEAD` and
`COPY_TAIL` number the first and the next of its asynchronous copies, `COPY_GROUP` is the group that is open.
`EXPECTED` is how many threads its barrier waits for (0: all) and, from bit `VOTE_SHIFT` on, whether it brings a true
predicate; `VOTES` is how many of the `VOTERS` that its last barrier released brought one.
"""
VOTE_SHIFT = 16
ACQUIRED, MET, WARP_MET, FENCED, FENCE_AT, FENCED_AT_ALL = range(64, 88, 4)
"""Times (see `order`): when the thread last made a strong read, or met one that had; when it met others of its warp at
a collective or barrier, and at a barrier alone; when it fenced for the card (`FENCE_AT`: where that is in the log), or
at all."""
KNOWS = 88
"""64 bits: places of which the thread knows a strong read."""
PUBLIC = 96
"""Offset of the words that a lane hands to a collective; as many bytes of visible ones follow."""

DONE, AT_BARRIER, AT_COLLECTIVE, AT_WARP_BARRIER, RUNNABLE, AT_MEETING, AT_SPIN, FAILED = 0, 1, 2, 3, 4, 5, 6, -1
"""What a thread's function returns, and its status. `AT_SPIN` is the end of a loop that waits for memory to change, in
cooperative launches alone: the thread goes on when the other blocks have run."""
AT_PLAIN = 8
"""Beyond it by its number: a barrier of all threads whose number is a constant, as __syncthreads() is. Nothing else of
the context says so; where threads of a block wait for different things, the scheduler turns it into `AT_BARRIER`."""

AT_SITE, DEADLOCK, EXITED, RACE, NEVER_WRITTEN, EXHAUSTED, GLOBAL_RACE = 1, 2, 3, 4, 5, 6, 7
"""What the block's state says of a fault: at its site, or found by the scheduler or a check of races."""

READABLE, WRITABLE, WRITTEN, CONSTANT = 1, 2, 4, 8
"""Flags of each byte of the arena."""

ADDRESS_BITS = 48
"""Of an entry of the log of accesses; above are the site, and whether it lies in shared memory."""

MARGIN_BYTES = 4096
MAX_LOCAL_BYTES = 512 << 10
MAX_SHARED_BYTES = 163 << 10
MAX_THREADS = 1024


def align_up(value: int, alignment: int) -> int:
    """The smallest multiple of `alignment` that is at least `value`."""
    return -(-value // alignment) * alignment
