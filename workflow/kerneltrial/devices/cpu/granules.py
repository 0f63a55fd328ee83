"""The record of one granule of global memory, and one access to it, as LLVM IR: what `races_global` compares."""

from collections.abc import Iterator
from contextlib import contextmanager

from kerneltrial.devices.cpu import layout as at
from kerneltrial.devices.cpu import order
from kerneltrial.devices.cpu.ir import UNLIKELY, Body

WRITER, READER, WRITE_TIME, READ_TIME, READER_BEFORE, READ_TIME_BEFORE = 0, 8, 16, 20, 24, 28
RECORD_BYTES = 32
READ, WRITE, ATOMIC, SAME, STRONG, NEAR = 0, 1, 2, 3, 4, 8
"""Kinds of an access; STRONG is or'ed to a read or a write, NEAR to a strong one that is so within its block alone
(.cta). An atomic is a strong write that reads; SAME is a plain write of what is there already."""
BY_WARP, BY_MANY, BY_STRONG, BY_NEAR = 0x10000, 0x20000, 0x40000, 0x80000
"""Who: the block's number above 32 bits, and below a thread's number plus 1; or one warp's lanes (its number plus
BY_WARP); or lanes of several warps. Or'ed: strong, and whether for the block alone. Of the block that read before, its
number alone, and in bit 30 whether strong."""
STRONG_BEFORE = 1 << 30


def is_atomic(b: Body) -> str:
    return b.op(f"icmp eq i64 {b.op('and i64 %kind, 3')}, {ATOMIC}")


class Granule:
    """One granule of one access."""

    def __init__(self, b: Body) -> None:
        self.b = b
        linear = b.field("%ctx", at.LINEAR, "i32")
        self.code = b.op(f"add i32 {linear}, 1")
        self.warp = b.op(f"or i32 {b.op(f'lshr i32 {linear}, 5')}, {BY_WARP}")
        self.number = b.field("%blk", at.BLOCK["block_number"], "i32")
        self.epoch = b.field("%blk", at.BLOCK["epoch_time"], "i32")
        self.warp_met = b.field("%ctx", at.WARP_MET, "i32")
        self.now = b.field("%blk", at.BLOCK["time"], "i32")
        self.acquired = order.acquired(b)
        self.reads = b.op(f"icmp eq i64 {b.op('and i64 %kind, 3')}, {READ}")
        self.strong = b.op(f"or i1 {is_atomic(b)}, {b.op(f'icmp uge i64 %kind, {STRONG}')}")
        self.near = b.op(f"icmp uge i64 %kind, {NEAR}")
        how = b.op(f"select i1 {self.near}, i32 {BY_STRONG | BY_NEAR}, i32 {BY_STRONG}")
        self.strong_bit = b.op(f"select i1 {self.strong}, i32 {how}, i32 0")

    def slot(self, who_at: int, time_at: int) -> "Slot":
        return Slot(self, self.b.field("%record", who_at, "i64"), self.b.field("%record", time_at, "i32"))

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


class Slot:
    """An access on record."""

    def __init__(self, granule: Granule, who: str, time: str) -> None:
        self.g, self.who, self.time = granule, who, time
        self.b = b = granule.b
        self.number = b.op(f"trunc i64 {b.op(f'lshr i64 {who}, 32')} to i32")
        low = b.op(f"trunc i64 {who} to i32")
        self.code = b.op(f"and i32 {low}, {~(BY_STRONG | BY_NEAR)}")
        self.strong = b.op(f"icmp ne i32 {b.op(f'and i32 {low}, {BY_STRONG}')}, 0")
        self.near = b.op(f"icmp ne i32 {b.op(f'and i32 {low}, {BY_NEAR}')}, 0")
        self.here = b.op(f"icmp eq i32 {self.number}, {granule.number}")
        self.in_epoch = granule.all_of(self.here, b.op(f"icmp uge i32 {time}, {granule.epoch}"))
        self.single = b.op(f"icmp ult i32 {self.code}, {BY_WARP}")
        self.other = b.op(f"icmp ne i32 {self.code}, {granule.code}")

    def same_warp(self) -> str:
        b = self.b
        linear = b.op(f"sub i32 {self.code}, 1")
        of_single = b.op(f"or i32 {b.op(f'lshr i32 {linear}, 5')}, {BY_WARP}")
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
        several = b.op(f"select i1 {self.same_warp()}, i32 {g.warp}, i32 {BY_MANY}")
        group = b.op(f"select i1 {self.parted()}, i32 {g.code}, i32 {several}")
        return b.op(f"select i1 {g.all_of(self.in_epoch, self.other)}, i32 {group}, i32 {g.code}")
