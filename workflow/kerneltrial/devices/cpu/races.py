"""The check of shared memory, as LLVM IR: races by barrier epoch, and reads of what the block never wrote.

Each granule (the smallest access of the kernel, 4 bytes at most) has a record of its last write and its last reads:
who, in which epoch, in which warp epoch. Two accesses of different threads in one epoch conflict if one of them
writes, unless both are atomic, or both come from one warp with a warp barrier between, or both write the same value
(workflow/adr/0016). The finding does not depend on the order in which threads run.
"""

from kerneltrial.devices.cpu import layout as at
from kerneltrial.devices.cpu.ir import Body

WRITER, WRITE_EPOCH, WRITE_WARP_EPOCH, READER, READ_EPOCH, READ_WARP_EPOCH = range(0, 24, 4)
RECORD_BYTES = 24
READ, WRITE, ATOMIC, SAME = range(4)
"""Kinds of an access. SAME is a plain write of what is there already."""
_WARP, _MANY, _ATOMIC, UNDER_WAY = 0x10000, 0x20000, 0x40000, 0x80000
"""Who: a thread's number plus 1; one warp's lanes (its number plus _WARP); lanes of several warps. Or'ed: atomic, or an
asynchronous copy that its thread has not waited for."""


class _Check:
    """One granule of one access."""

    def __init__(self, b: Body, record: str, epoch: str) -> None:
        self.b = b
        self.record = record
        self.epoch = epoch
        linear = b.field("%ctx", at.LINEAR, "i32")
        self.me = b.op(f"add i32 {linear}, 1")
        self.warp = b.op(f"or i32 {b.op(f'lshr i32 {linear}, 5')}, {_WARP}")
        self.warp_epoch = b.field("%ctx", at.WARP_EPOCH, "i32")

    def conflicts(self, who_at: int, epoch_at: int, warp_epoch_at: int) -> str:
        """Whether the recorded access was another thread's in this epoch, with no warp barrier between."""
        b = self.b
        who = b.op(f"and i32 {b.field(self.record, who_at, 'i32')}, {~_ATOMIC}")
        now = b.op(f"icmp eq i32 {b.field(self.record, epoch_at, 'i32')}, {self.epoch}")
        other = b.op(f"icmp ne i32 {who}, {self.me}")
        ordered_since = b.op(f"icmp ne i32 {b.field(self.record, warp_epoch_at, 'i32')}, {self.warp_epoch}")
        ordered = b.op(f"and i1 {self.same_warp(who)}, {ordered_since}")
        unordered = b.op(f"xor i1 {ordered}, true")
        return b.op(f"and i1 {b.op(f'and i1 {now}, {other}')}, {unordered}")

    def same_warp(self, who: str) -> str:
        b = self.b
        lane = b.op(f"sub i32 {who}, 1")
        single = b.op(f"or i32 {b.op(f'lshr i32 {lane}, 5')}, {_WARP}")
        is_warp = b.op(f"icmp ne i32 {b.op(f'and i32 {who}, {_WARP}')}, 0")
        group = b.op(f"select i1 {is_warp}, i32 {who}, i32 {single}")
        many = b.op(f"icmp ne i32 {b.op(f'and i32 {who}, {_MANY}')}, 0")
        same = b.op(f"icmp eq i32 {group}, {self.warp}")
        return b.op(f"and i1 {same}, {b.op(f'xor i1 {many}, true')}")

    def note(self, who: str, who_at: int, epoch_at: int, warp_epoch_at: int) -> None:
        b = self.b
        b.set_field(self.record, who_at, "i32", who)
        b.set_field(self.record, epoch_at, "i32", self.epoch)
        b.set_field(self.record, warp_epoch_at, "i32", self.warp_epoch)

    def joined(self, who_at: int, epoch_at: int, warp_epoch_at: int) -> str:
        """This thread together with those on record that no warp barrier parts from it."""
        b = self.b
        who = b.op(f"and i32 {b.field(self.record, who_at, 'i32')}, {~_ATOMIC}")
        now = b.op(f"icmp eq i32 {b.field(self.record, epoch_at, 'i32')}, {self.epoch}")
        other = b.op(f"icmp ne i32 {who}, {self.me}")
        mine = self.same_warp(who)
        same_time = b.op(f"icmp eq i32 {b.field(self.record, warp_epoch_at, 'i32')}, {self.warp_epoch}")
        shared_by = b.op(f"select i1 {mine}, i32 {self.warp}, i32 {_MANY}")
        alone = b.op(f"and i1 {mine}, {b.op(f'xor i1 {same_time}, true')}")
        group = b.op(f"select i1 {alone}, i32 {self.me}, i32 {shared_by}")
        return b.op(f"select i1 {b.op(f'and i1 {now}, {other}')}, i32 {group}, i32 {self.me}")

    def read_again(self, reads: str, write_epoch: str, block_epoch: str) -> str:
        """Whether this is a read of what was written in an earlier epoch, by readers who are on record already: by this
        warp since its last barrier, or by several warps. Then nothing is to be found, and nothing to be noted."""
        b = self.b
        who = b.field(self.record, READER, "i32")
        many = b.op(f"icmp ne i32 {b.op(f'and i32 {who}, {_MANY}')}, 0")
        now = b.op(f"icmp eq i32 {b.field(self.record, READ_WARP_EPOCH, 'i32')}, {self.warp_epoch}")
        warp = b.op(f"and i1 {b.op(f'icmp eq i32 {who}, {self.warp}')}, {now}")
        read_now = b.op(f"icmp eq i32 {b.field(self.record, READ_EPOCH, 'i32')}, {self.epoch}")
        on_record = b.op(f"and i1 {read_now}, {b.op(f'or i1 {many}, {warp}')}")
        in_block = b.op(f"icmp uge i32 {write_epoch}, {block_epoch}")
        earlier = b.op(f"and i1 {in_block}, {b.op(f'icmp ne i32 {write_epoch}, {self.epoch}')}")
        copies = b.op(f"and i32 {b.field(self.record, WRITER, 'i32')}, {UNDER_WAY}")
        settled = b.op(f"and i1 {earlier}, {b.op(f'icmp eq i32 {copies}, 0')}")
        return b.op(f"and i1 {b.op(f'and i1 {reads}, {on_record}')}, {settled}")

    def new_writer(self, plain_write: str, writer: str) -> str:
        """The record of a write: a plain one is this thread's. An atomic one joins others, unless this thread wrote
        plainly in this epoch: that stays on record, for other threads' atomics conflict with it."""
        b = self.b
        atomic = b.op(f"or i32 {self.joined(WRITER, WRITE_EPOCH, WRITE_WARP_EPOCH)}, {_ATOMIC}")
        now = b.op(f"icmp eq i32 {b.field(self.record, WRITE_EPOCH, 'i32')}, {self.epoch}")
        same_time = b.op(f"icmp eq i32 {b.field(self.record, WRITE_WARP_EPOCH, 'i32')}, {self.warp_epoch}")
        own = b.op(f"and i1 {b.op(f'icmp eq i32 {writer}, {self.me}')}, {b.op(f'and i1 {now}, {same_time}')}")
        plain = b.op(f"or i1 {plain_write}, {own}")
        return b.op(f"select i1 {plain}, i32 {self.me}, i32 {atomic}")


def _suspect(b: Body) -> None:
    """Note the first read of memory that the block never wrote; a race in the same epoch explains it better."""
    with b.when(b.op(f"icmp eq i64 {b.field('%blk', at.BLOCK['suspect'], 'i64')}, 0")):
        thread = b.op(f"zext i32 {b.field('%ctx', at.LINEAR, 'i32')} to i64")
        for name, value in (("suspect", "%site"), ("suspect_address", "%offset"), ("suspect_thread", thread)):
            b.set_field("%blk", at.BLOCK[name], "i64", value)


def kt_shared() -> tuple[str, Body]:
    """`kt_shared(block, context, offset, size, kind, site)`: false after a fault."""
    b = Body()
    shift = b.field("%blk", at.BLOCK["granule_shift"], "i64")
    first = b.op(f"lshr i64 %offset, {shift}")
    end = b.op("add i64 %offset, %size")
    last = b.op(f"lshr i64 {b.op(f'sub i64 {end}, 1')}, {shift}")
    stop = b.op(f"add i64 {last}, 1")
    shadow = b.field("%blk", at.BLOCK["shadow"], "ptr")
    epoch = b.field("%blk", at.BLOCK["epoch"], "i32")
    block_epoch = b.field("%blk", at.BLOCK["block_epoch"], "i32")
    reads = b.op(f"icmp eq i64 %kind, {READ}")
    same = b.op(f"icmp eq i64 %kind, {SAME}")
    plain_write = b.op(f"or i1 {same}, {b.op(f'icmp eq i64 %kind, {WRITE}')}")
    with b.loop(first, stop, "i64") as granule:
        record = b.op(f"getelementptr i8, ptr {shadow}, i64 {b.op(f'mul i64 {granule}, {RECORD_BYTES}')}")
        check = _Check(b, record, epoch)
        write_epoch = b.field(record, WRITE_EPOCH, "i32")
        news, nothing_new = b.label(), b.label()
        b.branch(check.read_again(reads, write_epoch, block_epoch), nothing_new, news)
        b.place(news)
        never = b.op(f"icmp ult i32 {write_epoch}, {block_epoch}")
        with b.when(b.op(f"and i1 {never}, {b.op(f'xor i1 {plain_write}, true')}"), "!prof !2"):
            _suspect(b)
        writer = b.field(record, WRITER, "i32")
        with b.when(b.op(f"icmp ne i32 {b.op(f'and i32 {writer}, {UNDER_WAY}')}, 0"), "!prof !2"):
            _report(b, b.op(f"icmp uge i32 {write_epoch}, {block_epoch}"), at.RACE, writer)
        was_atomic = b.op(f"icmp ne i32 {b.op(f'and i32 {writer}, {_ATOMIC}')}, 0")
        both_atomic = b.op(f"and i1 {was_atomic}, {b.op(f'icmp eq i64 %kind, {ATOMIC}')}")
        again = b.op(f"and i1 {same}, {b.op(f'xor i1 {was_atomic}, true')}")  # both plain, and of one value
        fine = b.op(f"or i1 {both_atomic}, {again}")
        with_write = check.conflicts(WRITER, WRITE_EPOCH, WRITE_WARP_EPOCH)
        bad = b.op(f"and i1 {with_write}, {b.op(f'xor i1 {fine}, true')}")
        _report(b, bad, at.RACE, writer)
        reading, writing, on = b.label(), b.label(), b.label()
        b.branch(reads, reading, writing)
        b.place(reading)
        check.note(check.joined(READER, READ_EPOCH, READ_WARP_EPOCH), READER, READ_EPOCH, READ_WARP_EPOCH)
        b.jump(on)
        b.place(writing)
        _report(b, check.conflicts(READER, READ_EPOCH, READ_WARP_EPOCH), at.RACE, b.field(record, READER, "i32"))
        check.note(check.new_writer(plain_write, writer), WRITER, WRITE_EPOCH, WRITE_WARP_EPOCH)
        b.jump(on)
        b.place(on)
        b.jump(nothing_new)
        b.place(nothing_new)
    b.do("ret i1 true")
    parameters = "ptr %blk, ptr %ctx, i64 %offset, i64 %size, i64 %kind, i64 %site"
    return b.function(f"define internal i1 @kt_shared({parameters}) alwaysinline"), b


def _report(b: Body, condition: str, code: int, other: str) -> None:
    bad, on = b.label(), b.label()
    b.branch(condition, bad, on, "!prof !2")
    b.place(bad)
    b.set_field("%blk", at.BLOCK["fault"], "i64", code)
    b.set_field("%blk", at.BLOCK["fault_site"], "i64", "%site")
    b.set_field("%blk", at.BLOCK["fault_address"], "i64", "%offset")
    thread = b.op(f"zext i32 {b.field('%ctx', at.LINEAR, 'i32')} to i64")
    b.set_field("%blk", at.BLOCK["fault_thread"], "i64", thread)
    b.set_field("%blk", at.BLOCK["fault_other"], "i64", b.op(f"zext i32 {other} to i64"))
    b.do("ret i1 false")
    b.place(on)


def other_in_words(who: int) -> str:
    """Who the other side of a race was, from `fault_other`."""
    if who & UNDER_WAY:
        return f"an asynchronous copy of thread {(who & 0xFFFF) - 1}, which has not waited for it"
    who &= ~_ATOMIC
    if who & _MANY:
        return "threads of several warps"
    if who & _WARP:
        return f"lanes of warp {who & 0xFFFF}"
    return f"thread {who - 1}"
