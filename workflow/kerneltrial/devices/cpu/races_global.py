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

from collections.abc import Iterator
from contextlib import contextmanager

from kerneltrial.devices.cpu import layout as at
from kerneltrial.devices.cpu import order
from kerneltrial.devices.cpu.ir import LIKELY, UNLIKELY, Body

WRITER, READER, WRITE_TIME, READ_TIME, READER_BEFORE, READ_TIME_BEFORE = 0, 8, 16, 20, 24, 28
RECORD_BYTES = 32
READ, WRITE, ATOMIC, SAME, STRONG, NEAR = 0, 1, 2, 3, 4, 8
"""Kinds of an access; STRONG is or'ed to a read or a write, NEAR to a strong one that is so within its block alone
(.cta). An atomic is a strong write that reads; SAME is a plain write of what is there already."""
_WARP, _MANY, _STRONG, _NEAR = 0x10000, 0x20000, 0x40000, 0x80000
"""Who: the block's number above 32 bits, and below a thread's number plus 1; or one warp's lanes (its number plus
_WARP); or lanes of several warps. Or'ed: strong, and whether for the block alone. Of the block that read before, its
number alone, and in bit 30 whether strong."""
_STRONG_BEFORE = 1 << 30
MAX_BLOCKS = 1 << 24
MAX_BYTES, MAX_RECORDS_BYTES = 256 << 20, 2 << 30
"""Of a call's memory and of what the blocks of a launch may publish; and of the records: larger launches are not looked
at."""


def _is_atomic(b: Body) -> str:
    return b.op(f"icmp eq i64 {b.op('and i64 %kind, 3')}, {ATOMIC}")


class _Granule:
    """One granule of one access."""

    def __init__(self, b: Body) -> None:
        self.b = b
        linear = b.field("%ctx", at.LINEAR, "i32")
        self.code = b.op(f"add i32 {linear}, 1")
        self.warp = b.op(f"or i32 {b.op(f'lshr i32 {linear}, 5')}, {_WARP}")
        self.number = b.field("%blk", at.BLOCK["block_number"], "i32")
        self.epoch = b.field("%blk", at.BLOCK["epoch_time"], "i32")
        self.warp_met = b.field("%ctx", at.WARP_MET, "i32")
        self.now = b.field("%blk", at.BLOCK["time"], "i32")
        self.acquired = order.acquired(b)
        self.reads = b.op(f"icmp eq i64 {b.op('and i64 %kind, 3')}, {READ}")
        self.strong = b.op(f"or i1 {_is_atomic(b)}, {b.op(f'icmp uge i64 %kind, {STRONG}')}")
        self.near = b.op(f"icmp uge i64 %kind, {NEAR}")
        how = b.op(f"select i1 {self.near}, i32 {_STRONG | _NEAR}, i32 {_STRONG}")
        self.strong_bit = b.op(f"select i1 {self.strong}, i32 {how}, i32 0")

    def slot(self, who_at: int, time_at: int) -> "_Slot":
        return _Slot(self, self.b.field("%record", who_at, "i64"), self.b.field("%record", time_at, "i32"))

    def all_of(self, *conditions: str) -> str:
        result = conditions[0]
        for condition in conditions[1:]:
            result = self.b.op(f"and i1 {result}, {condition}")
        return result

    def not_(self, condition: str) -> str:
        return self.b.op(f"xor i1 {condition}, true")

    def whole(self, code: str) -> str:
        """A code (i32) of this block as `who`."""
        b = self.b
        high = b.op(f"shl i64 {b.op(f'zext i32 {self.number} to i64')}, 32")
        return b.op(f"or i64 {high}, {b.op(f'zext i32 {code} to i64')}")

    @contextmanager
    def unless(self, condition: str) -> Iterator[None]:
        with self.b.when(self.not_(condition)):
            yield

    def report(self, bad: str, who: str) -> None:
        """Note a race and return, where there is one."""
        b = self.b
        with b.when(bad, UNLIKELY):
            thread = b.op(f"zext i32 {b.field('%ctx', at.LINEAR, 'i32')} to i64")
            found = {
                "fault": str(at.GLOBAL_RACE), "fault_site": "%site", "fault_address": "%address",
                "fault_thread": thread, "fault_other": who,
            }  # fmt: skip
            for name, value in found.items():
                b.set_field("%blk", at.BLOCK[name], "i64", value)
            b.do("ret i1 false")
            b.place(b.label())


class _Slot:
    """An access on record."""

    def __init__(self, granule: _Granule, who: str, time: str) -> None:
        self.g, self.who, self.time = granule, who, time
        self.b = b = granule.b
        self.number = b.op(f"trunc i64 {b.op(f'lshr i64 {who}, 32')} to i32")
        low = b.op(f"trunc i64 {who} to i32")
        self.code = b.op(f"and i32 {low}, {~(_STRONG | _NEAR)}")
        self.strong = b.op(f"icmp ne i32 {b.op(f'and i32 {low}, {_STRONG}')}, 0")
        self.near = b.op(f"icmp ne i32 {b.op(f'and i32 {low}, {_NEAR}')}, 0")
        self.here = b.op(f"icmp eq i32 {self.number}, {granule.number}")
        self.in_epoch = granule.all_of(self.here, b.op(f"icmp uge i32 {time}, {granule.epoch}"))
        self.single = b.op(f"icmp ult i32 {self.code}, {_WARP}")
        self.other = b.op(f"icmp ne i32 {self.code}, {granule.code}")

    def same_warp(self) -> str:
        b = self.b
        linear = b.op(f"sub i32 {self.code}, 1")
        of_single = b.op(f"or i32 {b.op(f'lshr i32 {linear}, 5')}, {_WARP}")
        group = b.op(f"select i1 {self.single}, i32 {of_single}, i32 {self.code}")
        return b.op(f"icmp eq i32 {group}, {self.g.warp}")

    def parted(self) -> str:
        """Whether it was made by this warp before its last barrier."""
        return self.g.all_of(self.same_warp(), self.b.op(f"icmp ult i32 {self.time}, {self.g.warp_met}"))

    def thread(self) -> str:
        """The thread that made it; 0 where several did."""
        b = self.b
        return b.op(f"select i1 {self.single}, i32 {b.op(f'sub i32 {self.code}, 1')}, i32 0")

    def unordered_here(self) -> str:
        """Whether it was another thread's of this block, with nothing between that orders it before this access."""
        b, g = self.b, self.g
        size = b.field("%blk", at.BLOCK["context_bytes"], "i64")
        mine = b.op(f"zext i32 {b.op(f'sub i32 {g.code}, 1')} to i64")
        far = b.op(f"sub i64 {b.op(f'zext i32 {self.thread()} to i64')}, {mine}")
        context = b.op(f"getelementptr i8, ptr %ctx, i64 {b.op(f'mul i64 {far}, {size}')}")
        by_it = b.field(context, at.FENCED_AT_ALL, "i32")
        fenced = b.op(f"select i1 {self.single}, i32 {by_it}, i32 {b.field('%blk', at.BLOCK['fenced'], 'i32')}")
        by_flag = g.all_of(b.op(f"icmp ugt i32 {fenced}, {self.time}"), b.op(f"icmp ugt i32 {g.acquired}, {self.time}"))
        return g.all_of(self.in_epoch, self.other, g.not_(self.parted()), g.not_(by_flag))

    def unordered_elsewhere(self) -> str:
        """Whether it was another block's, and nowhere published where this thread knows of a strong read."""
        b, g = self.b, self.g
        warp, own = order.words_of_thread(b, self.thread())
        block = b.op(f"zext i32 {self.number} to i64")
        until, known = b.variable("i32", 0), b.variable("i64", order.knows(b))
        test, look, end = b.label(), b.label(), b.label()
        b.jump(test)
        b.place(test)
        b.branch(b.op(f"icmp eq i64 {known.get()}, 0"), end, look)
        b.place(look)
        place = b.call("i64", "llvm.cttz.i64", ("i64", known.get()), ("i1", "false"))
        known.set(b.op(f"and i64 {known.get()}, {b.op(f'sub i64 {known.get()}, 1')}"))
        words = order.published_at(b, place, block)
        several = self._latest(words, order.MOST)
        some = b.op(f"select i1 {self.single}, i32 {self._latest(words, warp, own)}, i32 {several}")
        for time in (some, self._latest(words, order.ALL)):
            until.set(b.call("i32", "llvm.umax.i32", ("i32", until.get()), ("i32", time)))
        b.jump(test)
        b.place(end)
        published = b.op(f"icmp ult i32 {self.time}, {until.get()}")
        ordered = g.all_of(published, b.op(f"icmp ugt i32 {g.acquired}, {self.time}"))
        return g.all_of(g.not_(self.here), g.not_(ordered))

    def _latest(self, words: str, *indices: str | int) -> str:
        b = self.b
        loaded = [b.op(f"load i32, ptr {b.op(f'getelementptr i32, ptr {words}, i64 {n}')}") for n in indices]
        result = loaded[0]
        for time in loaded[1:]:
            result = b.call("i32", "llvm.umax.i32", ("i32", result), ("i32", time))
        return result

    def check(self, fine: str = "false") -> None:
        """Note a race with it and return, where there is one; `fine`: there is none whatever the order."""
        b, g = self.b, self.g
        apart = g.all_of(g.not_(self.here), b.op(f"or i1 {self.near}, {g.near}"))
        no_matter = b.op(f"or i1 {fine}, {g.all_of(self.strong, g.strong, g.not_(apart))}")
        none = b.op(f"icmp eq i64 {self.who}, 0")
        with g.unless(b.op(f"or i1 {none}, {no_matter}")):
            bad = b.op(f"or i1 {self.unordered_here()}, {self.unordered_elsewhere()}")
            g.report(bad, self.who)

    def joined(self) -> str:
        """The code of this thread together with those on record that no barrier parts from it."""
        b, g = self.b, self.g
        several = b.op(f"select i1 {self.same_warp()}, i32 {g.warp}, i32 {_MANY}")
        group = b.op(f"select i1 {self.parted()}, i32 {g.code}, i32 {several}")
        return b.op(f"select i1 {g.all_of(self.in_epoch, self.other)}, i32 {group}, i32 {g.code}")


def _note_read(g: _Granule, last: _Slot) -> None:
    """Keep who reads in this epoch, and the last other block that read."""
    b = g.b
    with g.unless(last.here):
        strong = g.all_of(last.strong, g.not_(last.near))
        bit = b.op(f"select i1 {strong}, i32 {_STRONG_BEFORE}, i32 0")
        b.set_field("%record", READER_BEFORE, "i32", b.op(f"or i32 {last.number}, {bit}"))
        b.set_field("%record", READ_TIME_BEFORE, "i32", last.time)
    plain_too = g.all_of(last.in_epoch, g.not_(last.strong))
    strong = b.op(f"select i1 {plain_too}, i32 0, i32 {g.strong_bit}")
    b.set_field("%record", READER, "i64", g.whole(b.op(f"or i32 {last.joined()}, {strong}")))
    b.set_field("%record", READ_TIME, "i32", g.now)


def _note_write(g: _Granule, last: _Slot) -> None:
    """A plain write is this thread's. A strong one joins others, unless this thread wrote plainly in this epoch: that
    stays on record, for other threads' strong ones conflict with it."""
    b = g.b
    own_plain = g.all_of(last.in_epoch, g.not_(last.strong), g.not_(last.other), g.not_(last.parted()))
    plain = b.op(f"or i1 {g.not_(g.strong)}, {own_plain}")
    code = b.op(f"select i1 {plain}, i32 {g.code}, i32 {b.op(f'or i32 {last.joined()}, {g.strong_bit}')}")
    b.set_field("%record", WRITER, "i64", g.whole(code))
    b.set_field("%record", WRITE_TIME, "i32", g.now)


def _before(g: _Granule) -> _Slot:
    """The block that read before the last one, as if several of its threads had."""
    b = g.b
    packed = b.field("%record", READER_BEFORE, "i32")
    number = b.op(f"and i32 {packed}, {_STRONG_BEFORE - 1}")
    strong = b.op(f"icmp ne i32 {packed}, {number}")
    low = b.op(f"select i1 {strong}, i64 {_MANY | _STRONG}, i64 {_MANY}")
    high = b.op(f"shl i64 {b.op(f'zext i32 {number} to i64')}, 32")
    who = b.op(f"or i64 {high}, {low}")
    there = b.op(f"select i1 {b.op(f'icmp eq i32 {packed}, 0')}, i64 0, i64 {who}")
    return _Slot(g, there, b.field("%record", READ_TIME_BEFORE, "i32"))


def _may_be_stale(g: _Granule, writer: _Slot) -> str:
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
    g = _Granule(b)
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
    g = _Granule(b)
    writer, reader = g.slot(WRITER, WRITE_TIME), g.slot(READER, READ_TIME)
    nobody = b.op(f"icmp eq i64 {writer.who}, 0")
    earlier = g.all_of(writer.here, g.not_(writer.in_epoch))
    many = g.all_of(reader.in_epoch, b.op(f"icmp eq i32 {reader.code}, {_MANY}"), g.not_(reader.strong))
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
    atomic = _is_atomic(b)
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
    code = who & (_STRONG - 1)
    if code & _MANY:
        return "threads of several warps"
    return f"lanes of warp {code & 0xFFFF}" if code & _WARP else f"thread {code - 1}"


PARTS = (kt_stale, kt_global_met, kt_global)
