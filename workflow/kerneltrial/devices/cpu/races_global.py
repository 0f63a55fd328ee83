"""The check of global memory within one launch, between blocks and between threads of one, as LLVM IR.

Each granule of memory that the launch may write has a record of its last write, its last reads, and the block that read
before: who, and when. Two accesses of different threads conflict if one of them writes, unless both are strong (atomic,
volatile, relaxed, acquire, release), or the earlier one is ordered before the later:

- within a block by a barrier, within a warp by a barrier of the warp, or where its thread made a fence after it and the
  later thread a strong read;
- between blocks where a fence covers it, a strong write published that fence, and the later thread knows of a strong
  read of the same place, each by way of barriers where it is another thread's (`order`).

What cannot be told in these records counts as ordered, so that a race can be missed and an honest kernel is never
accused: of reads by several threads of a block, whether some fence covers them; of threads of one block, which place
their flag is at; beyond `order.MAX_PLACES` flags, which of them it was.
Two plain writes of the same value are no conflict (workflow/adr/0016). What a strong read gets that nothing orders is a
matter of its own (workflow/adr/0045).

Blocks run one after the other, so a finding does not depend on how a card would have interleaved them.
"""

from kerneltrial.devices.cpu import layout as at
from kerneltrial.devices.cpu import order
from kerneltrial.devices.cpu.granules import (
    BY_MANY,
    BY_STRONG,
    BY_WARP,
    READ,
    READ_TIME,
    READ_TIME_BEFORE,
    READER,
    READER_BEFORE,
    RECORD_BYTES,
    SAME,
    STRONG,
    STRONG_BEFORE,
    WRITE_TIME,
    WRITER,
    Granule,
    Slot,
    is_atomic,
)
from kerneltrial.devices.cpu.ir import LIKELY, UNLIKELY, Body

MAX_BLOCKS = 1 << 24
MAX_BYTES, MAX_RECORDS_BYTES = 256 << 20, 2 << 30
"""Of a call's memory and of what the blocks of a launch may publish; and of the records: larger launches are not looked
at."""


def _note_read(g: Granule, last: Slot) -> None:
    """Keep who reads in this epoch, and the last other block that read."""
    b = g.b
    with g.unless(last.here):
        strong = g.all_of(last.strong, g.not_(last.near))
        bit = b.op(f"select i1 {strong}, i32 {STRONG_BEFORE}, i32 0")
        b.set_field("%record", READER_BEFORE, "i32", b.op(f"or i32 {last.number}, {bit}"))
        b.set_field("%record", READ_TIME_BEFORE, "i32", last.time)
    plain_too = g.all_of(last.in_epoch, g.not_(last.strong))
    strong = b.op(f"select i1 {plain_too}, i32 0, i32 {g.strong_bit}")
    b.set_field("%record", READER, "i64", g.whole(b.op(f"or i32 {last.joined()}, {strong}")))
    b.set_field("%record", READ_TIME, "i32", g.now)


def _note_write(g: Granule, last: Slot) -> None:
    """A plain write is this thread's. A strong one joins others, unless this thread wrote plainly in this epoch: that
    stays on record, for other threads' strong ones conflict with it."""
    b = g.b
    own_plain = g.all_of(last.in_epoch, g.not_(last.strong), g.not_(last.other), g.not_(last.parted()))
    plain = b.op(f"or i1 {g.not_(g.strong)}, {own_plain}")
    code = b.op(f"select i1 {plain}, i32 {g.code}, i32 {b.op(f'or i32 {last.joined()}, {g.strong_bit}')}")
    b.set_field("%record", WRITER, "i64", g.whole(code))
    b.set_field("%record", WRITE_TIME, "i32", g.now)


def _before(g: Granule) -> Slot:
    """The block that read before the last one, as if several of its threads had."""
    b = g.b
    packed = b.field("%record", READER_BEFORE, "i32")
    number = b.op(f"and i32 {packed}, {STRONG_BEFORE - 1}")
    strong = b.op(f"icmp ne i32 {packed}, {number}")
    low = b.op(f"select i1 {strong}, i64 {BY_MANY | BY_STRONG}, i64 {BY_MANY}")
    high = b.op(f"shl i64 {b.op(f'zext i32 {number} to i64')}, 32")
    who = b.op(f"or i64 {high}, {low}")
    there = b.op(f"select i1 {b.op(f'icmp eq i32 {packed}, 0')}, i64 0, i64 {who}")
    return Slot(g, there, b.field("%record", READ_TIME_BEFORE, "i32"))


def _may_be_stale(g: Granule, writer: Slot) -> str:
    """Whether `kt_stale` has to look: at a strong read of another block's strong write, where a launch is to give some
    the value before."""
    b = g.b
    older = b.op(f"icmp ne ptr {b.field('%blk', at.BLOCK['older'], 'ptr')}, null")
    return g.all_of(g.reads, g.strong, writer.strong, g.not_(writer.here), older)


def kt_stale() -> tuple[str, Body]:
    """`kt_stale(block, context, record, kind)`: count the granule if nothing orders the write before this read: a card
    may give the value before.

    Not where its own block has read there since, for it must never see an older value than before; nor behind a read of
    a third block, by way of which the new value would have to be seen (of several such, one cannot tell).
    """
    b = Body()
    g = Granule(b)
    writer, reader = g.slot(WRITER, WRITE_TIME), g.slot(READER, READ_TIME)
    several = b.op(f"icmp uge i32 {b.field('%record', READ_TIME_BEFORE, 'i32')}, {writer.time}")
    looked = g.all_of(b.op(f"icmp ne i64 {reader.who}, 0"), b.op(f"icmp uge i32 {reader.time}, {writer.time}"))
    with g.unless(several):
        seen = b.variable("i1", "false")
        with b.when(looked):
            seen.set(g.not_(reader.unordered_elsewhere()))
        stale = g.all_of(writer.unordered_elsewhere(), g.not_(seen.get()))
        count = b.field("%blk", at.BLOCK["stale"], "i64")
        b.set_field("%blk", at.BLOCK["stale"], "i64", b.op(f"add i64 {count}, {b.op(f'zext i1 {stale} to i64')}"))
    b.do("ret void")
    header = "define internal preserve_allcc void @kt_stale(ptr %blk, ptr %ctx, ptr %record, i64 %kind) noinline"
    return b.function(header), b


def kt_global_met() -> tuple[str, Body]:
    """`kt_global_met(block, context, record, address, kind, site)`: one granule that is not this thread's alone."""
    b = Body()
    g = Granule(b)
    writer, reader = g.slot(WRITER, WRITE_TIME), g.slot(READER, READ_TIME)
    nobody = b.op(f"icmp eq i64 {writer.who}, 0")
    earlier = g.all_of(writer.here, g.not_(writer.in_epoch))
    many = g.all_of(reader.in_epoch, b.op(f"icmp eq i32 {reader.code}, {BY_MANY}"), g.not_(reader.strong))
    on_record = g.all_of(g.reads, g.not_(g.strong), many, b.op(f"or i1 {nobody}, {earlier}"))
    with b.when(on_record):
        b.do("ret i1 true")
        b.place(b.label())
    again = g.all_of(b.op(f"icmp eq i64 %kind, {SAME}"), g.not_(writer.strong))
    seen_here = g.all_of(writer.strong, reader.here, reader.strong, g.not_(writer.here))
    writer.check(b.op(f"or i1 {again}, {seen_here}"))
    with b.when(_may_be_stale(g, writer), UNLIKELY):
        b.do("call preserve_allcc void @kt_stale(ptr %blk, ptr %ctx, ptr %record, i64 %kind)")
    reading, writing, on = b.label(), b.label(), b.label()
    b.branch(g.reads, reading, writing)
    b.place(reading)
    _note_read(g, reader)
    b.jump(on)
    b.place(writing)
    reader.check()
    _before(g).check()
    _note_write(g, writer)
    b.jump(on)
    b.place(on)
    b.do("ret i1 true")
    parameters = "ptr %blk, ptr %ctx, ptr %record, i64 %address, i64 %kind, i64 %site"
    return b.function(f"define internal preserve_allcc i1 @kt_global_met({parameters}) noinline"), b


def _order(b: Body, granules: tuple[str, str], reads: str, atomic: str, strong: str) -> None:
    """A flag is told by its granules, so that it may be written wider than it is read."""
    first, last = granules
    with b.when(strong, UNLIKELY):
        b.set_field("%blk", at.BLOCK["stale"], "i64", 0)
    with b.when(strong, UNLIKELY), b.loop(first, b.op(f"add i64 {last}, 1"), "i64") as granule:
        with b.when(b.op(f"or i1 {reads}, {atomic}")):
            order.acquire(b, granule)
        with b.when(b.op(f"xor i1 {reads}, true")):
            order.release(b, granule)


def kt_global() -> tuple[str, Body]:
    """`kt_global(block, context, offset, address, size, kind, site)`: false after a fault; `offset` in the arena.

    Most granules are used by one thread alone, plainly; those are noted in place.
    """
    b = Body()
    reads = b.op(f"icmp eq i64 {b.op('and i64 %kind, 3')}, {READ}")
    atomic = is_atomic(b)
    strong = b.op(f"or i1 {atomic}, {b.op(f'icmp uge i64 %kind, {STRONG}')}")
    shift = b.field("%blk", at.BLOCK["global_shift"], "i64")
    first = b.op(f"lshr i64 %offset, {shift}")
    end = b.op("add i64 %offset, %size")
    last = b.op(f"lshr i64 {b.op(f'sub i64 {end}, 1')}, {shift}")
    _order(b, (first, last), reads, atomic, strong)
    now = b.field("%blk", at.BLOCK["time"], "i32")
    high = b.op(f"shl i64 {b.field('%blk', at.BLOCK['block_number'], 'i64')}, 32")
    linear = b.field("%ctx", at.LINEAR, "i32")
    code = b.op(f"zext i32 {b.op(f'add i32 {linear}, 1')} to i64")
    me = b.op(f"or i64 {high}, {code}")
    shadow = b.field("%blk", at.BLOCK["global_shadow"], "ptr")
    who_at = b.op(f"select i1 {reads}, i64 {READER}, i64 {WRITER}")
    time_at = b.op(f"select i1 {reads}, i64 {READ_TIME}, i64 {WRITE_TIME}")
    with b.loop(first, b.op(f"add i64 {last}, 1"), "i64") as index:
        record = b.op(f"getelementptr i8, ptr {shadow}, i64 {b.op(f'mul i64 {index}, {RECORD_BYTES}')}")
        alone = b.op(f"xor i1 {strong}, true")
        for place in (WRITER, READER):
            who = b.field(record, place, "i64")
            mine = b.op(f"or i1 {b.op(f'icmp eq i64 {who}, 0')}, {b.op(f'icmp eq i64 {who}, {me}')}")
            alone = b.op(f"and i1 {alone}, {mine}")
        quick, look, bad, on = (b.label() for _ in range(4))
        b.branch(alone, quick, look)
        b.place(look)
        arguments = f"ptr %blk, ptr %ctx, ptr {record}, i64 %address, i64 %kind, i64 %site"
        b.branch(b.op(f"call preserve_allcc i1 @kt_global_met({arguments})"), on, bad, LIKELY)
        b.place(bad)
        b.do("ret i1 false")
        b.place(quick)
        b.set_field(record, who_at, "i64", me)
        b.set_field(record, time_at, "i32", now)
        b.jump(on)
        b.place(on)
    b.do("ret i1 true")
    parameters = "ptr %blk, ptr %ctx, i64 %offset, i64 %address, i64 %size, i64 %kind, i64 %site"
    return b.function(f"define internal i1 @kt_global({parameters}) alwaysinline"), b


def other_in_words(who: int) -> str:
    """Who of a block the other side of a race was, from `fault_other`."""
    code = who & (BY_STRONG - 1)
    if code & BY_MANY:
        return "threads of several warps"
    return f"lanes of warp {code & 0xFFFF}" if code & BY_WARP else f"thread {code - 1}"


PARTS = (kt_stale, kt_global_met, kt_global)
