"""The check of global memory between the blocks of one launch, as LLVM IR.

Each granule of memory that the launch may write has a record of its last write and its last two reading blocks: who,
and when. Two accesses of different blocks conflict if one of them writes, unless both are strong (atomic, volatile,
relaxed, acquire, release), or the earlier one is ordered before the later: its block executed a fence of the whole card
after it and then a strong write, and the later block made a strong access since. (Which location carries the order is
not asked, so that a race between blocks that meet elsewhere can be missed; an honest kernel is never accused.)

Two plain writes of the same value are no conflict (workflow/adr/0016).

Blocks run one after the other, so a finding does not depend on how a card would have interleaved them.
"""

from kerneltrial.devices.cpu import layout as at
from kerneltrial.devices.cpu.ir import Body

WRITER, WRITE_TIME, READER, READ_TIME, READER_BEFORE, READ_TIME_BEFORE = range(0, 24, 4)
RECORD_BYTES = 24
READ, WRITE, ATOMIC, SAME, STRONG = 0, 1, 2, 3, 4
"""Kinds of an access; STRONG is or'ed to a read or a write. An atomic is a strong write that reads; SAME is a plain
write of what is there already."""
_STRONG_BIT = 1 << 30
_NUMBER = _STRONG_BIT - 1
MAX_BLOCKS = 1 << 24
MAX_BYTES = 256 << 20
"""Larger grids and calls with more memory are not checked for races between blocks."""


def _tick(b: Body) -> str:
    now = b.op(f"add i32 {b.field('%blk', at.BLOCK['time'], 'i32')}, 1")
    b.set_field("%blk", at.BLOCK["time"], "i32", now)
    return now


def kt_fence() -> tuple[str, Body]:
    """`kt_fence(block)`: what the block did so far is published by its next strong write."""
    b = Body()
    b.set_field("%blk", at.BLOCK["fence_time"], "i32", _tick(b))
    b.do("ret void")
    return b.function("define void @kt_fence(ptr %blk)"), b


class _Granule:
    """One granule of one access by block `me`."""

    def __init__(self, b: Body, record: str, me: str, strong: str) -> None:
        self.b, self.record, self.me, self.strong = b, record, me, strong
        self.acquired = b.field("%blk", at.BLOCK["acquired"], "i32")
        self.releases = b.field("%blk", at.BLOCK["releases"], "ptr")

    def conflicts(self, who_at: int, time_at: int) -> tuple[str, str]:
        """Whether the access on record is another block's, not ordered before; and that block's number."""
        b = self.b
        who, time = b.field(self.record, who_at, "i32"), b.field(self.record, time_at, "i32")
        number = b.op(f"and i32 {who}, {_NUMBER}")
        other = b.op(f"and i1 {b.op(f'icmp ne i32 {number}, 0')}, {b.op(f'icmp ne i32 {number}, {self.me}')}")
        was_strong = b.op(f"icmp ne i32 {b.op(f'and i32 {who}, {_STRONG_BIT}')}, 0")
        index = b.op(f"zext i32 {number} to i64")
        released = b.op(f"load i32, ptr {b.op(f'getelementptr i32, ptr {self.releases}, i64 {index}')}")
        published = b.op(f"icmp ult i32 {time}, {released}")
        seen = b.op(f"icmp ugt i32 {self.acquired}, {released}")
        plain = b.op(f"and i1 {published}, {seen}")
        met = b.op(f"icmp ugt i32 {self.acquired}, {time}")
        before = b.op(f"or i1 {plain}, {b.op(f'and i1 {was_strong}, {met}')}")
        fine = b.op(f"or i1 {before}, {b.op(f'and i1 {was_strong}, {self.strong}')}")
        return b.op(f"and i1 {other}, {b.op(f'xor i1 {fine}, true')}"), number

    def check(self, who_at: int, time_at: int) -> None:
        """Note a race and return, where there is one."""
        b = self.b
        bad, number = self.conflicts(who_at, time_at)
        stop, on = b.label(), b.label()
        b.branch(bad, stop, on, "!prof !2")
        b.place(stop)
        thread = b.op(f"zext i32 {b.field('%ctx', at.LINEAR, 'i32')} to i64")
        found = {
            "fault": str(at.GLOBAL_RACE), "fault_site": "%site", "fault_address": "%address", "fault_thread": thread,
            "fault_other": b.op(f"zext i32 {number} to i64"),
        }  # fmt: skip
        for name, value in found.items():
            b.set_field("%blk", at.BLOCK[name], "i64", value)
        b.do("ret i1 false")
        b.place(on)

    def note_read(self, who: str, now: str) -> None:
        """Keep the last two different blocks that read."""
        b = self.b
        last = b.field(self.record, READER, "i32")
        number = b.op(f"and i32 {last}, {_NUMBER}")
        with b.when(b.op(f"icmp ne i32 {number}, {self.me}")):
            b.set_field(self.record, READER_BEFORE, "i32", last)
            b.set_field(self.record, READ_TIME_BEFORE, "i32", b.field(self.record, READ_TIME, "i32"))
        b.set_field(self.record, READER, "i32", who)
        b.set_field(self.record, READ_TIME, "i32", now)


def kt_global() -> tuple[str, Body]:
    """`kt_global(block, context, offset, address, size, kind, site)`: false after a fault; `offset` in the arena."""
    b = Body()
    me = b.field("%blk", at.BLOCK["block_number"], "i32")
    reads = b.op(f"icmp eq i64 {b.op('and i64 %kind, 3')}, {READ}")
    atomic = b.op(f"icmp eq i64 %kind, {ATOMIC}")
    strong = b.op(f"or i1 {atomic}, {b.op(f'icmp uge i64 %kind, {STRONG}')}")
    with b.when(strong):
        with b.when(b.op(f"or i1 {reads}, {atomic}")):
            b.set_field("%blk", at.BLOCK["acquired"], "i32", _tick(b))
        with b.when(b.op(f"xor i1 {reads}, true")):
            _tick(b)
            releases = b.field("%blk", at.BLOCK["releases"], "ptr")
            mine = b.op(f"getelementptr i32, ptr {releases}, i64 {b.op(f'zext i32 {me} to i64')}")
            b.do(f"store i32 {b.field('%blk', at.BLOCK['fence_time'], 'i32')}, ptr {mine}")
    now = b.field("%blk", at.BLOCK["time"], "i32")
    who = b.op(f"or i32 {me}, {b.op(f'select i1 {strong}, i32 {_STRONG_BIT}, i32 0')}")
    shift = b.field("%blk", at.BLOCK["global_shift"], "i64")
    shadow = b.field("%blk", at.BLOCK["global_shadow"], "ptr")
    first = b.op(f"lshr i64 %offset, {shift}")
    end = b.op("add i64 %offset, %size")
    last = b.op(f"lshr i64 {b.op(f'sub i64 {end}, 1')}, {shift}")
    with b.loop(first, b.op(f"add i64 {last}, 1"), "i64") as index:
        record = b.op(f"getelementptr i8, ptr {shadow}, i64 {b.op(f'mul i64 {index}, {RECORD_BYTES}')}")
        granule = _Granule(b, record, me, strong)
        with b.when(b.op(f"icmp ne i64 %kind, {SAME}")):
            granule.check(WRITER, WRITE_TIME)
        reading, writing, on = b.label(), b.label(), b.label()
        b.branch(reads, reading, writing)
        b.place(reading)
        granule.note_read(who, now)
        b.jump(on)
        b.place(writing)
        granule.check(READER, READ_TIME)
        granule.check(READER_BEFORE, READ_TIME_BEFORE)
        b.set_field(record, WRITER, "i32", who)
        b.set_field(record, WRITE_TIME, "i32", now)
        b.jump(on)
        b.place(on)
    b.do("ret i1 true")
    parameters = "ptr %blk, ptr %ctx, i64 %offset, i64 %address, i64 %size, i64 %kind, i64 %site"
    return b.function(f"define internal i1 @kt_global({parameters}) alwaysinline"), b


PARTS = (kt_fence, kt_global)
