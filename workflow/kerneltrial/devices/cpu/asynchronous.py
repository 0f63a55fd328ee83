"""cp.async with deferred completion, as LLVM IR: a copy is made when the thread waits for it, and not before.

Each thread keeps a ring of the copies that it started. A wait makes those of old enough groups, in order. Until then
shared memory holds what it held, and where shared memory is checked, its records say that a copy is under way: whoever
touches the bytes is found (`races`).
"""

from kerneltrial.devices.cpu import layout as at
from kerneltrial.devices.cpu.ir import Body
from kerneltrial.devices.cpu.races import RECORD_BYTES, UNDER_WAY, WRITE_EPOCH, WRITE_WARP_EPOCH, WRITER

ENTRIES = 256
"""Copies that one thread can have under way."""
ENTRY_BYTES = 32
RING_BYTES = ENTRIES * ENTRY_BYTES
_SOURCE, _TARGET, _SIZE, _LENGTH, _GROUP = 0, 8, 16, 20, 24


def _entry(b: Body, number: str) -> str:
    start = b.field("%blk", at.BLOCK["ring_offset"], "i64")
    index = b.op(f"zext i32 {b.op(f'and i32 {number}, {ENTRIES - 1}')} to i64")
    offset = b.op(f"add i64 {start}, {b.op(f'mul i64 {index}, {ENTRY_BYTES}')}")
    return b.op(f"getelementptr i8, ptr %ctx, i64 {offset}")


def _mark(b: Body, target: str, size: str, under_way: bool) -> None:
    """Note in the records of shared memory that these bytes are being written, or have been by this thread now."""
    checked = b.op(f"icmp ne i64 {b.field('%blk', at.BLOCK['check_exits'], 'i64')}, 0")
    with b.when(checked):
        shift = b.field("%blk", at.BLOCK["granule_shift"], "i64")
        shadow = b.field("%blk", at.BLOCK["shadow"], "ptr")
        behind = b.op(f"add i64 {target}, {size}")
        end = b.op(f"lshr i64 {b.op(f'sub i64 {behind}, 1')}, {shift}")
        first, stop = b.op(f"lshr i64 {target}, {shift}"), b.op(f"add i64 {end}, 1")
        me = b.op(f"add i32 {b.field('%ctx', at.LINEAR, 'i32')}, 1")
        who = b.op(f"or i32 {me}, {UNDER_WAY}") if under_way else me
        with b.loop(first, stop, "i64") as granule:
            record = b.op(f"getelementptr i8, ptr {shadow}, i64 {b.op(f'mul i64 {granule}, {RECORD_BYTES}')}")
            b.set_field(record, WRITER, "i32", who)
            b.set_field(record, WRITE_EPOCH, "i32", b.field("%blk", at.BLOCK["epoch"], "i32"))
            b.set_field(record, WRITE_WARP_EPOCH, "i32", b.field("%ctx", at.WARP_EPOCH, "i32"))


def kt_copy_start() -> tuple[str, Body]:
    """`kt_copy_start(block, context, target, source, size, length)`: false where the ring is full.

    `target` is an offset in shared memory, `source` a checked pointer; of `size` bytes, `length` are copied and the
    rest are zero.
    """
    b = Body()
    head, tail = b.field("%ctx", at.COPY_HEAD, "i32"), b.field("%ctx", at.COPY_TAIL, "i32")
    room, full = b.label(), b.label()
    b.branch(b.op(f"icmp ult i32 {b.op(f'sub i32 {tail}, {head}')}, {ENTRIES}"), room, full)
    b.place(full)
    b.do("ret i1 false")
    b.place(room)
    entry = _entry(b, tail)
    b.set_field(entry, _SOURCE, "ptr", "%source")
    b.set_field(entry, _TARGET, "i64", "%target")
    b.set_field(entry, _SIZE, "i32", "%size")
    b.set_field(entry, _LENGTH, "i32", "%length")
    b.set_field(entry, _GROUP, "i32", b.field("%ctx", at.COPY_GROUP, "i32"))
    b.set_field("%ctx", at.COPY_TAIL, "i32", b.op(f"add i32 {tail}, 1"))
    _mark(b, "%target", b.op("zext i32 %size to i64"), True)
    b.do("ret i1 true")
    parameters = "ptr %blk, ptr %ctx, i64 %target, ptr %source, i32 %size, i32 %length"
    return b.function(f"define i1 @kt_copy_start({parameters})"), b


def kt_copy_wait() -> tuple[str, Body]:
    """`kt_copy_wait(block, context, below)`: make all copies of groups with a number less than `below`."""
    b = Body()
    shared = b.field("%blk", at.BLOCK["shared"], "ptr")
    tail = b.field("%ctx", at.COPY_TAIL, "i32")
    test, look, work, end = (b.label() for _ in range(4))
    b.jump(test)
    b.place(test)
    head = b.field("%ctx", at.COPY_HEAD, "i32")
    b.branch(b.op(f"icmp eq i32 {head}, {tail}"), end, look)
    b.place(look)
    entry = _entry(b, head)
    b.branch(b.op(f"icmp slt i32 {b.field(entry, _GROUP, 'i32')}, %below"), work, end)
    b.place(work)
    target = b.field(entry, _TARGET, "i64")
    size, length = (b.op(f"zext i32 {b.field(entry, part, 'i32')} to i64") for part in (_SIZE, _LENGTH))
    place = b.op(f"getelementptr i8, ptr {shared}, i64 {target}")
    source = b.field(entry, _SOURCE, "ptr")
    b.call("void", "llvm.memset.p0.i64", ("ptr", place), ("i8", 0), ("i64", size), ("i1", "false"))
    b.call("void", "llvm.memcpy.p0.p0.i64", ("ptr", place), ("ptr", source), ("i64", length), ("i1", "false"))
    _mark(b, target, size, False)
    b.set_field("%ctx", at.COPY_HEAD, "i32", b.op(f"add i32 {head}, 1"))
    b.jump(test)
    b.place(end)
    b.do("ret void")
    return b.function("define void @kt_copy_wait(ptr %blk, ptr %ctx, i32 %below)"), b
