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


class _Gathering:
    """What the threads of a block wait for: all barriers, or one of them."""

    def __init__(self, b: Body, number: str | None) -> None:
        self.b = b
        self.there, self.votes, self.ended, self.expected, self.extra = (b.variable("i32", 0) for _ in range(5))
        self.numbers = b.variable("i32", 0)
        self.missed = b.variable("ptr", "null")
        with b.loop(0, "%n") as thread:
            context = context_of(b, thread)
            status = b.field(context, at.STATUS, "i32")
            waits = b.op(f"icmp eq i32 {status}, {at.AT_BARRIER}")
            own = b.field(context, at.MASK, "i32")
            if number is not None:
                waits = b.op(f"and i1 {waits}, {b.op(f'icmp eq i32 {own}, {number}')}")
            with b.when(b.op(f"icmp eq i32 {status}, {at.DONE}")):
                _count(b, "true", self.ended)
                first = b.op(f"icmp eq ptr {self.missed.get()}, null")
                self.missed.set(b.op(f"select i1 {first}, ptr {context}, ptr {self.missed.get()}"))
            with b.when(waits):
                _count(b, "true", self.there)
                bit = b.op(f"shl i32 1, {b.op(f'and i32 {own}, {BARRIERS - 1}')}")
                self.numbers.set(b.op(f"or i32 {self.numbers.get()}, {bit}"))
                brought = b.field(context, at.EXPECTED, "i32")
                with b.when(b.op(f"icmp ne i32 {brought}, 0")):
                    _count(b, "true", self.votes, b.op(f"lshr i32 {brought}, {at.VOTE_SHIFT}"))
                    wanted = b.op(f"and i32 {brought}, {(1 << at.VOTE_SHIFT) - 1}")
                    self.expected.set(b.op(f"or i32 {self.expected.get()}, {wanted}"))
                    _count(b, "true", self.extra, b.op(f"sub i32 {weight(b, context, '%n')}, 1"))

    def all_there(self) -> str:
        b = self.b
        return b.op(f"icmp eq i32 {b.op(f'add i32 {self.there.get()}, {self.ended.get()}')}, %n")

    def release(self, number: str, counted: str) -> None:
        """Release and return how many threads it were; -1 where one ended before a barrier of all."""
        b = self.b
        checked = b.op(f"icmp ne i64 {b.field('%blk', at.BLOCK['check_exits'], 'i64')}, 0")
        strict = b.op(f"and i1 {checked}, {b.op(f'xor i1 {counted}, true')}")
        with b.when(b.op(f"and i1 {strict}, {b.op(f'icmp ne ptr {self.missed.get()}, null')}")):
            fault(b, at.EXITED, self.missed.get())
            b.do("ret i32 -1")
            b.place(b.label())
        bump(b, "barriers")
        _set_free(b, number, self.votes.get(), self.there.get())
        b.do(f"ret i32 {self.there.get()}")


def release_barrier() -> tuple[str, Body]:
    """Release barrier `number` if it is complete; give the number of released threads, -1 after a fault."""
    b = Body()
    found = _Gathering(b, "%number")
    place = _arrivals(b, "%number")
    arrived = b.op(f"trunc i64 {b.op(f'load i64, ptr {place}')} to i32")
    counted = b.op(f"icmp ne i32 {found.expected.get()}, 0")
    have = b.op(f"add i32 {b.op(f'add i32 {found.there.get()}, {found.extra.get()}')}, {arrived}")
    enough = b.op(f"icmp sge i32 {have}, {found.expected.get()}")
    complete = b.op(f"select i1 {counted}, i1 {enough}, i1 {found.all_there()}")
    go, no = b.label(), b.label()
    b.branch(complete, go, no)
    b.place(no)
    b.do("ret i32 0")
    b.place(go)
    b.do(f"store i64 0, ptr {place}")
    found.release("%number", counted)
    return b.function(f"define internal i32 @release_barrier({BLOCK_PARAMETERS}, i32 %number)"), b


def _set_free(b: Body, number: str, votes: str, there: str) -> None:
    """Make the threads at a barrier runnable. What all bring to one barrier is the same count."""
    with b.loop(0, "%n") as thread:
        context = context_of(b, thread)
        waits = b.op(f"icmp eq i32 {b.field(context, at.STATUS, 'i32')}, {at.AT_BARRIER}")
        own = b.op(f"icmp eq i32 {b.field(context, at.MASK, 'i32')}, {number}")
        with b.when(b.op(f"and i1 {waits}, {own}")):
            b.set_field(context, at.STATUS, "i32", at.RUNNABLE)
            b.set_field(context, at.WARP_EPOCH, "i32", 0)
            b.set_field(context, at.VOTES, "i32", votes)
            b.set_field(context, at.VOTERS, "i32", there)


def _settle(b: Body) -> None:
    """Plain barriers become such with a number, as the others are: no count, no predicate."""
    with b.loop(0, "%n") as thread:
        context = context_of(b, thread)
        number = b.op(f"sub i32 {b.field(context, at.STATUS, 'i32')}, {at.AT_PLAIN}")
        with b.when(b.op(f"icmp sge i32 {number}, 0")):
            for place, value in ((at.STATUS, str(at.AT_BARRIER)), (at.MASK, number), (at.EXPECTED, "0")):
                b.set_field(context, place, "i32", value)


def at_barrier() -> tuple[str, Body]:
    """Release what can be; give the number of released threads, 0 where all have ended, -1 after a fault."""
    b = Body()
    _settle(b)
    found = _Gathering(b, None)
    numbers = found.numbers
    first = b.call("i32", "llvm.cttz.i32", ("i32", numbers.get()), ("i1", "false"))
    rest = b.op(f"and i32 {numbers.get()}, {b.op(f'sub i32 {numbers.get()}, 1')}")
    one = b.op(f"and i1 {b.op(f'icmp ne i32 {numbers.get()}, 0')}, {b.op(f'icmp eq i32 {rest}, 0')}")
    of_all = b.op(f"icmp eq i32 {found.expected.get()}, 0")
    plain, general = b.label(), b.label()
    b.branch(b.op(f"and i1 {b.op(f'and i1 {one}, {of_all}')}, {found.all_there()}"), plain, general)
    b.place(plain)
    found.release(first, "false")
    b.place(general)
    released = b.variable("i32", 0)
    next_, work, done = b.label(), b.label(), b.label()
    b.jump(next_)
    b.place(next_)
    b.branch(b.op(f"icmp eq i32 {numbers.get()}, 0"), done, work)
    b.place(work)
    number = b.call("i32", "llvm.cttz.i32", ("i32", numbers.get()), ("i1", "false"))
    numbers.set(b.op(f"and i32 {numbers.get()}, {b.op(f'sub i32 {numbers.get()}, 1')}"))
    more = b.op(f"call i32 @release_barrier(ptr %blk, ptr %contexts, i32 %n, i32 {number})")
    bad, on = b.label(), b.label()
    b.branch(b.op(f"icmp slt i32 {more}, 0"), bad, on)
    b.place(bad)
    b.do("ret i32 -1")
    b.place(on)
    released.set(b.op(f"add i32 {released.get()}, {more}"))
    b.jump(next_)
    b.place(done)
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
