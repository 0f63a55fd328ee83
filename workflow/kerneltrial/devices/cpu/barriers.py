"""What happens when no thread of a block can run: barriers are released, or the block is deadlocked. As LLVM IR.

A barrier without a count waits for every thread of the block that still runs. One with a count is complete when as
many threads wait or have arrived; a warp that the block does not fill counts as a whole one, as on the card. Released
threads see how many of them brought a true predicate.
"""

from kerneltrial.devices.cpu import layout as at
from kerneltrial.devices.cpu.ir import Body, Slot

BARRIERS = 16
BLOCK_PARAMETERS = "ptr %blk, ptr %contexts, i32 %n"


def context_of(b: Body, thread: str) -> str:
    size = b.field("%blk", at.BLOCK["context_bytes"], "i64")
    wide = b.op(f"sext i32 {thread} to i64")
    return b.op(f"getelementptr i8, ptr %contexts, i64 {b.op(f'mul i64 {wide}, {size}')}")


def fault(b: Body, code: int, context: str) -> None:
    b.set_field("%blk", at.BLOCK["fault"], "i64", code)
    thread = b.op(f"zext i32 {b.field(context, at.LINEAR, 'i32')} to i64")
    b.set_field("%blk", at.BLOCK["fault_thread"], "i64", thread)


def bump(b: Body, name: str) -> str:
    more = b.op(f"add i64 {b.field('%blk', at.BLOCK[name], 'i64')}, 1")
    b.set_field("%blk", at.BLOCK[name], "i64", more)
    return more


def _count(b: Body, condition: str, counter: Slot, step: str = "1") -> None:
    counter.set(b.op(f"add i32 {counter.get()}, {b.op(f'select i1 {condition}, i32 {step}, i32 0')}"))


def weight(b: Body, context: str, threads: str) -> str:
    """What a thread counts for: 1, and for the first of a warp that is not full the lanes that it lacks as well."""
    lane, linear = b.field(context, at.LANE, "i32"), b.field(context, at.LINEAR, "i32")
    lacking = b.op(f"sub i32 {b.op(f'add i32 {linear}, 32')}, {threads}")
    short = b.op(f"and i1 {b.op(f'icmp eq i32 {lane}, 0')}, {b.op(f'icmp sgt i32 {lacking}, 0')}")
    return b.op(f"select i1 {short}, i32 {b.op(f'add i32 {lacking}, 1')}, i32 1")


def _arrivals(b: Body, number: str) -> str:
    offset = b.op(f"mul i64 {b.op(f'zext i32 {number} to i64')}, 8")
    start = at.BLOCK["arrived"]
    return b.op(f"getelementptr i8, ptr %blk, i64 {b.op(f'add i64 {offset}, {start}')}")


def kt_arrive() -> tuple[str, Body]:
    """`kt_arrive(block, context, number)`: a thread passes a barrier without waiting."""
    b = Body()
    place = _arrivals(b, "%number")
    threads = b.field("%blk", at.BLOCK["threads"], "i32")
    more = b.op(f"zext i32 {weight(b, '%ctx', threads)} to i64")
    before = b.op(f"load i64, ptr {place}")
    b.do(f"store i64 {b.op(f'add i64 {before}, {more}')}, ptr {place}")
    b.do("ret void")
    return b.function("define void @kt_arrive(ptr %blk, ptr %ctx, i32 %number)"), b


def release_barrier() -> tuple[str, Body]:
    """Release barrier `number` if it is complete; give the number of released threads, -1 after a fault."""
    b = Body()
    there, votes, expected, ended = (b.variable("i32", 0) for _ in range(4))
    have = b.variable("i32", 0)
    missed = b.variable("ptr", "null")
    with b.loop(0, "%n") as thread:
        context = context_of(b, thread)
        status = b.field(context, at.STATUS, "i32")
        done = b.op(f"icmp eq i32 {status}, {at.DONE}")
        _count(b, done, ended)
        first = b.op(f"and i1 {done}, {b.op(f'icmp eq ptr {missed.get()}, null')}")
        missed.set(b.op(f"select i1 {first}, ptr {context}, ptr {missed.get()}"))
        own = b.op(f"icmp eq i32 {b.field(context, at.MASK, 'i32')}, %number")
        waits = b.op(f"and i1 {b.op(f'icmp eq i32 {status}, {at.AT_BARRIER}')}, {own}")
        with b.when(waits):
            _count(b, "true", there)
            _count(b, "true", have, weight(b, context, "%n"))
            _count(b, "true", votes, b.field(context, at.PUBLIC, "i32"))
            expected.set(b.field(context, at.EXPECTED, "i32"))
    place = _arrivals(b, "%number")
    arrived = b.op(f"trunc i64 {b.op(f'load i64, ptr {place}')} to i32")
    counted = b.op(f"icmp ne i32 {expected.get()}, 0")
    enough = b.op(f"icmp sge i32 {b.op(f'add i32 {have.get()}, {arrived}')}, {expected.get()}")
    all_there = b.op(f"icmp eq i32 {b.op(f'add i32 {there.get()}, {ended.get()}')}, %n")
    complete = b.op(f"select i1 {counted}, i1 {enough}, i1 {all_there}")
    some = b.op(f"icmp ne i32 {there.get()}, 0")
    go, no = b.label(), b.label()
    b.branch(b.op(f"and i1 {complete}, {some}"), go, no)
    b.place(no)
    b.do("ret i32 0")
    b.place(go)
    checked = b.op(f"icmp ne i64 {b.field('%blk', at.BLOCK['check_exits'], 'i64')}, 0")
    strict = b.op(f"and i1 {checked}, {b.op(f'xor i1 {counted}, true')}")
    with b.when(b.op(f"and i1 {strict}, {b.op(f'icmp ne ptr {missed.get()}, null')}")):
        fault(b, at.EXITED, missed.get())
        b.do("ret i32 -1")
        b.place(b.label())
    b.do(f"store i64 0, ptr {place}")
    bump(b, "barriers")
    _set_free(b, votes.get(), there.get())
    b.do(f"ret i32 {there.get()}")
    return b.function(f"define internal i32 @release_barrier({BLOCK_PARAMETERS}, i32 %number)"), b


def _set_free(b: Body, votes: str, there: str) -> None:
    with b.loop(0, "%n") as thread:
        context = context_of(b, thread)
        waits = b.op(f"icmp eq i32 {b.field(context, at.STATUS, 'i32')}, {at.AT_BARRIER}")
        own = b.op(f"icmp eq i32 {b.field(context, at.MASK, 'i32')}, %number")
        with b.when(b.op(f"and i1 {waits}, {own}")):
            b.set_field(context, at.STATUS, "i32", at.RUNNABLE)
            b.set_field(context, at.WARP_EPOCH, "i32", 0)
            b.set_field(context, at.VOTES, "i32", votes)
            b.set_field(context, at.VOTERS, "i32", there)


def at_barrier() -> tuple[str, Body]:
    """Release what can be; give the number of released threads, 0 where all have ended, -1 after a fault."""
    b = Body()
    released = b.variable("i32", 0)
    with b.loop(0, BARRIERS) as number:
        more = b.op(f"call i32 @release_barrier(ptr %blk, ptr %contexts, i32 %n, i32 {number})")
        bad, on = b.label(), b.label()
        b.branch(b.op(f"icmp slt i32 {more}, 0"), bad, on)
        b.place(bad)
        b.do("ret i32 -1")
        b.place(on)
        released.set(b.op(f"add i32 {released.get()}, {more}"))
    with b.when(b.op(f"icmp eq i32 {released.get()}, 0")), b.loop(0, "%n") as thread:
        context = context_of(b, thread)
        stuck = b.op(f"icmp ne i32 {b.field(context, at.STATUS, 'i32')}, {at.DONE}")
        with b.when(stuck):
            fault(b, at.DEADLOCK, context)
            b.do("ret i32 -1")
            b.place(b.label())
    b.do(f"ret i32 {released.get()}")
    return b.function(f"define internal i32 @at_barrier({BLOCK_PARAMETERS})"), b


PARTS = (kt_arrive, release_barrier, at_barrier)
