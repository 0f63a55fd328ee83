"""The scheduler of a block's threads, as LLVM IR: the same for every kernel, made once a process.

Warp by warp, each runnable lane runs until it ends, waits or fails. Lanes that wait for each other are let go by
`collectives`. When nothing in the block can run, the threads wait at a barrier and are released together, or the block
is deadlocked. The order is fixed, so a run is deterministic. It can be turned round or shuffled (`turns`): blocks of a
grid, warps of a block and lanes of a warp then come as on a card they may.
"""

from kerneltrial.devices.cpu import layout as at
from kerneltrial.devices.cpu import order
from kerneltrial.devices.cpu.barriers import BARRIERS, BLOCK_PARAMETERS, bump, context_of, fault
from kerneltrial.devices.cpu.collectives import release
from kerneltrial.devices.cpu.ir import Body

SPINNING = 2
_WAITS_IN_WARP = 1 << at.AT_COLLECTIVE | 1 << at.AT_WARP_BARRIER | 1 << at.AT_MEETING


def _turned(b: Body, place: str, count: str, what: str) -> str:
    """Which of `count` blocks or warps (i64) takes this turn: see `turns`."""
    stride, shift = (b.field("%blk", at.BLOCK[f"{what}_{part}"], "i64") for part in ("stride", "shift"))
    far = b.op(f"mul i64 {place}, {stride}")
    return b.op(f"urem i64 {b.op(f'add i64 {far}, {shift}')}, {count}")


def run_warp() -> tuple[str, Body]:
    """Run the lanes of one warp until none can go on; gives the set of their statuses, as bits, or -1 after a fault.

    Lanes at status `go` can go on, too: they wait at a barrier that all threads of the block have come to, or spin.
    """
    b = Body()
    thread = b.field("%blk", at.BLOCK["thread"], "ptr")
    size = b.field("%blk", at.BLOCK["context_bytes"], "i64")
    backward = b.op(f"icmp ne i64 {b.field('%blk', at.BLOCK['backward'], 'i64')}, 0")
    step = b.op(f"select i1 {backward}, i64 {b.op(f'sub i64 0, {size}')}, i64 {size}")
    start = context_of(b, b.op(f"select i1 {backward}, i32 {b.op('sub i32 %hi, 1')}, i32 %lo"))
    go = b.variable("i32", "%go")
    seen, place = b.variable("i32", 0), b.variable("ptr", start)
    again, end = b.label(), b.label()
    b.jump(again)
    b.place(again)
    seen.set(0)
    place.set(start)
    with b.loop("%lo", "%hi"):
        context = place.get()
        status = b.variable("i32", b.field(context, at.STATUS, "i32"))
        released = b.op(f"icmp eq i32 {status.get()}, {go.get()}")
        passed = b.op(f"and i1 {released}, {b.op(f'icmp sge i32 {go.get()}, {at.AT_PLAIN}')}")
        runnable = b.op(f"icmp eq i32 {status.get()}, {at.RUNNABLE}")
        with b.when(b.op(f"or i1 {released}, {runnable}")):
            epoch = b.op(f"select i1 {passed}, i32 0, i32 {b.field(context, at.WARP_EPOCH, 'i32')}")
            b.set_field(context, at.WARP_EPOCH, "i32", epoch)
            status.set(b.op(f"call i32 {thread}(ptr %blk, ptr {context})"))
            b.set_field(context, at.STATUS, "i32", status.get())
            failed, on = b.label(), b.label()
            b.branch(b.op(f"icmp slt i32 {status.get()}, 0"), failed, on)
            b.place(failed)
            b.do("ret i32 -1")
            b.place(on)
        seen.set(b.op(f"or i32 {seen.get()}, {b.op(f'shl i32 1, {status.get()}')}"))
        place.set(b.op(f"getelementptr i8, ptr {context}, i64 {step}"))
    go.set(-1)
    after = b.field("%blk", at.BLOCK["after_pass"], "ptr")
    with b.when(b.op(f"icmp ne ptr {after}, null")):
        b.do(f"call void {after}(ptr %blk, i32 %lo, i32 %hi)")
    some, waits = b.label(), b.op(f"and i32 {seen.get()}, {_WAITS_IN_WARP}")
    b.branch(b.op(f"icmp eq i32 {waits}, 0"), end, some)
    b.place(some)
    more = b.op("call i1 @release(ptr %blk, ptr %contexts, i32 %lo, i32 %hi)")
    b.branch(more, again, end)
    b.place(end)
    b.do(f"ret i32 {seen.get()}")
    return b.function("define internal i32 @run_warp(ptr %blk, ptr %contexts, i32 %lo, i32 %hi, i32 %go)"), b


def run_block() -> tuple[str, Body]:
    """Run a block whose contexts are set up, lanes at status `go` too: 0, 1 after a fault, 2 where some lanes spin."""
    b = Body()
    warps = b.op(f"lshr i32 {b.op('add i32 %n, 31')}, 5")
    go, seen = b.variable("i32", "%go"), b.variable("i32", 0)
    start, end, other = b.label(), b.label(), b.label()
    b.jump(start)
    b.place(start)
    seen.set(0)
    with b.loop(0, warps) as place:
        turn, of = (b.op(f"zext i32 {value} to i64") for value in (place, warps))
        warp = b.op(f"trunc i64 {_turned(b, turn, of, 'warp')} to i32")
        low = b.op(f"shl i32 {warp}, 5")
        high = b.call("i32", "llvm.smin.i32", ("i32", b.op(f"add i32 {low}, 32")), ("i32", "%n"))
        statuses = b.op(f"call i32 @run_warp(ptr %blk, ptr %contexts, i32 {low}, i32 {high}, i32 {go.get()})")
        _return_if_not(b, b.op(f"icmp sge i32 {statuses}, 0"))
        seen.set(b.op(f"or i32 {seen.get()}, {statuses}"))
    go.set(-1)
    with b.when(b.op(f"icmp ne i64 {b.field('%blk', at.BLOCK['suspect'], 'i64')}, 0")):
        b.set_field("%blk", at.BLOCK["fault"], "i64", at.NEVER_WRITTEN)
        for part in ("site", "address", "thread"):
            name = "suspect" if part == "site" else f"suspect_{part}"
            b.set_field("%blk", at.BLOCK[f"fault_{part}"], "i64", b.field("%blk", at.BLOCK[name], "i64"))
        b.do("ret i32 1")
        b.place(b.label())
    with b.when(b.op(f"icmp ne i32 {b.op(f'and i32 {seen.get()}, {1 << at.AT_SPIN}')}, 0")):
        b.do(f"ret i32 {SPINNING}")
        b.place(b.label())
    with b.when(_all_at_one(b, seen.get())):
        bump(b, "barriers")
        bump(b, "epoch")
        order.new_epoch(b)
        waiting = b.op(f"and i32 {seen.get()}, {-(1 << at.AT_PLAIN)}")
        go.set(b.call("i32", "llvm.cttz.i32", ("i32", waiting), ("i1", "false")))
        b.jump(start)
        b.place(other)
    waiting = b.op("call i32 @at_barrier(ptr %blk, ptr %contexts, i32 %n)")
    _return_if_not(b, b.op(f"icmp sge i32 {waiting}, 0"))
    bump(b, "epoch")
    order.new_epoch(b)
    b.branch(b.op(f"icmp eq i32 {waiting}, 0"), end, start)
    b.place(end)
    b.do("ret i32 0")
    return b.function(f"define internal i32 @run_block({BLOCK_PARAMETERS}, i32 %go)"), b


def resume_block() -> tuple[str, Body]:
    """Go on with a block some lanes of which spin; as `run_block`."""
    b = Body()
    b.do(f"ret i32 {b.op(f'call i32 @run_block({BLOCK_PARAMETERS}, i32 {at.AT_SPIN})')}")
    return b.function(f"define i32 @resume_block({BLOCK_PARAMETERS})"), b


def _all_at_one(b: Body, seen: str) -> str:
    """Whether all threads wait at one plain barrier, but for those that have ended where that is not looked at."""
    checked = b.op(f"trunc i64 {b.field('%blk', at.BLOCK['check_exits'], 'i64')} to i32")
    ended = b.op(f"and i32 {seen}, {b.op(f'xor i32 {checked}, 1')}")  # the bit of DONE, 0
    waiting = b.op(f"xor i32 {seen}, {ended}")
    one = b.op(f"icmp eq i32 {b.call('i32', 'llvm.ctpop.i32', ('i32', waiting))}, 1")
    return b.op(f"and i1 {one}, {b.op(f'icmp uge i32 {waiting}, {1 << at.AT_PLAIN}')}")


def _return_if_not(b: Body, condition: str) -> None:
    on, off = b.label(), b.label()
    b.branch(condition, on, off)
    b.place(off)
    b.do("ret i32 1")
    b.place(on)


def start_block() -> tuple[str, Body]:
    """Set up contexts and shared memory for the next block; false when the budget does not reach for it."""
    b = Body()
    threads = b.op("zext i32 %n to i64")
    cost = b.op(f"mul i64 {threads}, {b.field('%blk', at.BLOCK['thread_budget'], 'i64')}")
    left = b.op(f"sub i64 {b.field('%blk', at.BLOCK['budget'], 'i64')}, {cost}")
    b.set_field("%blk", at.BLOCK["budget"], "i64", left)
    on, off = b.label(), b.label()
    b.branch(b.op(f"icmp sgt i64 {left}, 0"), on, off)
    b.place(off)
    fault(b, at.EXHAUSTED, "%contexts")
    b.do("ret i1 false")
    b.place(on)
    arrivals = b.op(f"getelementptr i8, ptr %blk, i64 {at.BLOCK['arrived']}")
    b.call("void", "llvm.memset.p0.i64", ("ptr", arrivals), ("i8", 0), ("i64", 8 * BARRIERS), ("i1", "false"))
    b.set_field("%blk", at.BLOCK["block_epoch"], "i64", bump(b, "epoch"))
    order.start(b)
    poison = b.op(f"trunc i64 {b.field('%blk', at.BLOCK['poison'], 'i64')} to i8")
    shared = b.field("%blk", at.BLOCK["shared"], "ptr")
    size = b.field("%blk", at.BLOCK["shared_bytes"], "i64")
    b.call("void", "llvm.memset.p0.i64", ("ptr", shared), ("i8", poison), ("i64", size), ("i1", "false"))
    local, local_bytes = (b.field("%blk", at.BLOCK[name], "i64") for name in ("local_offset", "local_bytes"))
    with b.loop(0, "%n") as thread:
        context = context_of(b, thread)
        b.set_field(context, at.STATE, "i32", 0)
        b.set_field(context, at.STATUS, "i32", at.RUNNABLE)
        b.set_field(context, at.WARP_EPOCH, "i32", 0)
        for part in (at.COPY_HEAD, at.COPY_TAIL, at.COPY_GROUP):
            b.set_field(context, part, "i32", 0)
        order.forget(b, context)
        memory = b.op(f"getelementptr i8, ptr {context}, i64 {local}")
        b.call("void", "llvm.memset.p0.i64", ("ptr", memory), ("i8", poison), ("i64", local_bytes), ("i1", "false"))
    b.do("ret i1 true")
    return b.function(f"define internal i1 @start_block({BLOCK_PARAMETERS})"), b


def run_grid() -> tuple[str, Body]:
    """Run the state's range of blocks in order, x fastest; 0, or 1 after a fault (then the block's state says which).

    2 where lanes of a block spin: in cooperative launches, whose ranges are of one block.

    `block_number` counts from 1 in that order, whichever way the launch runs.
    """
    b = Body()
    size_x, size_y, size_z = (b.field("%blk", at.BLOCK[f"nctaid.{axis}"], "i64") for axis in "xyz")
    blocks = b.op(f"mul i64 {b.op(f'mul i64 {size_x}, {size_y}')}, {size_z}")
    first, end = (b.field("%blk", at.BLOCK[name], "i64") for name in ("first_block", "end_block"))
    with b.loop(first, end, "i64") as place:
        linear = _turned(b, place, blocks, "block")
        row = b.op(f"udiv i64 {linear}, {size_x}")
        indices = (f"urem i64 {linear}, {size_x}", f"urem i64 {row}, {size_y}", f"udiv i64 {row}, {size_y}")
        for axis, index in zip("xyz", indices, strict=True):
            b.set_field("%blk", at.BLOCK[f"ctaid.{axis}"], "i64", b.op(index))
        number = b.op(f"add i64 {linear}, 1")
        b.set_field("%blk", at.BLOCK["block_number"], "i64", number)
        _return_if_not(b, b.op(f"call i1 @start_block({BLOCK_PARAMETERS})"))
        result = b.op(f"call i32 @run_block({BLOCK_PARAMETERS}, i32 -1)")
        with b.when(b.op(f"icmp ne i32 {result}, 0")):
            b.do(f"ret i32 {result}")
            b.place(b.label())
    b.do("ret i32 0")
    return b.function(f"define i32 @run_grid({BLOCK_PARAMETERS})"), b


PARTS = (release, run_warp, start_block, run_block, resume_block, run_grid)
