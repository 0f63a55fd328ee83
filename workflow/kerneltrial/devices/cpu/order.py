"""What orders accesses to global memory before others, by thread, as LLVM IR (for the check in `races_global`).

`time` counts what may order: fences, strong accesses, barriers. An event is known to a thread that made it, to its
whole block after the next barrier, to lanes of its warp after they met. A fence for the card covers what its thread
knows. A strong write publishes, at its place, what the fences that its thread knows cover; whoever knows of a strong
read of that place comes after it. So it does not matter which thread of a block writes, fences, or raises the flag, as
long as barriers lie between.

Fences stand in a log until the next barrier of the block, whose threads all know them then (`covered`). What is covered
is a few times: before which everything of the block is, before which the accesses of a warp are, before which those of
a thread are. A place also hands on which places its writers knew, so that order passes from block to block.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from kerneltrial.devices.cpu import layout as at
from kerneltrial.devices.cpu.ir import UNLIKELY, Body

LOG_ENTRIES = 4096
"""Of fences of one block between two barriers; further ones count as known to the block."""
ENTRY_BYTES = 16
_THREAD, _TIME, _EPOCH_TIME, _MET = range(0, 16, 4)
ALL, MOST, WARPS = 0, 1, 2
"""Words of what is covered: the time before which all is; the latest of the fences; then a word for each warp, and one
for each thread."""
MAX_PLACES = 64
"""Where something was published; the last stands for all further ones."""
PLACE_BYTES = 24
_GRANULE, _KNEW, _SYNCED_BLOCK, _SYNCED_TIME = 0, 8, 16, 20


def covered_words(threads: int) -> int:
    """32-bit words of what is covered of a block."""
    return WARPS + -(-threads // 32) + threads


def tick(b: Body) -> str:
    now = b.op(f"add i32 {b.field('%blk', at.BLOCK['time'], 'i32')}, 1")
    b.set_field("%blk", at.BLOCK["time"], "i32", now)
    return now


def _blk(b: Body, name: str, type_: str = "i32") -> str:
    return b.field("%blk", at.BLOCK[name], type_)


def _set(b: Body, name: str, value: str | int, type_: str = "i32") -> None:
    b.set_field("%blk", at.BLOCK[name], type_, value)


def new_epoch(b: Body) -> None:
    """All threads of the block have met: what one knew, all know."""
    _set(b, "epoch_time", tick(b))
    _set(b, "acquired_before", _blk(b, "acquired_last"))
    _set(b, "knows", b.op(f"or i64 {_blk(b, 'knows', 'i64')}, {_blk(b, 'knows_since', 'i64')}"), "i64")
    with b.when(b.op(f"icmp ne i32 {_blk(b, 'fences')}, 0"), UNLIKELY):
        b.do("call void @kt_gather(ptr %blk)")


def start(b: Body) -> None:
    """A block begins: nothing of it is known to anyone, and it knows nothing."""
    with b.when(b.op(f"icmp ne i32 {_blk(b, 'covered_time')}, 0"), UNLIKELY):
        size = b.op(f"shl i64 {_blk(b, 'covered_words', 'i64')}, 2")
        words = _blk(b, "covered", "ptr")
        b.call("void", "llvm.memset.p0.i64", ("ptr", words), ("i8", 0), ("i64", size), ("i1", "false"))
    for name in ("acquired_last", "knows", "knows_since", "fenced", "fenced_card", "fences", "covered_time"):
        _set(b, name, 0, "i64")
    new_epoch(b)


def forget(b: Body, context: str) -> None:
    """As `start`, for one thread."""
    for place in (at.ACQUIRED, at.MET, at.WARP_MET, at.FENCED, at.FENCE_AT, at.FENCED_AT_ALL):
        b.set_field(context, place, "i32", 0)
    b.set_field(context, at.KNOWS, "i64", 0)


def acquire(b: Body, granule: str) -> None:
    """A strong read of this thread: it may have seen a flag."""
    now = tick(b)
    _set(b, "acquired_last", now)
    b.set_field("%ctx", at.ACQUIRED, "i32", now)
    with b.when(b.op(f"icmp ne ptr {_blk(b, 'places', 'ptr')}, null"), UNLIKELY):
        b.do(f"call preserve_allcc void @kt_learn(ptr %blk, ptr %ctx, i64 {granule})")


def acquired(b: Body) -> str:
    """When the last strong read was made that this thread knows of; 0: none."""
    own = b.field("%ctx", at.ACQUIRED, "i32")
    return b.call("i32", "llvm.umax.i32", ("i32", _blk(b, "acquired_before")), ("i32", own))


def knows(b: Body) -> str:
    """The places of which this thread knows a strong read, as bits."""
    return b.op(f"or i64 {b.field('%ctx', at.KNOWS, 'i64')}, {_blk(b, 'knows', 'i64')}")


def release(b: Body, granule: str) -> None:
    """A strong write of this thread: it may be a flag."""
    tick(b)
    with b.when(b.op(f"icmp ne i32 {_blk(b, 'fenced_card')}, 0"), UNLIKELY):
        b.do(f"call preserve_allcc void @kt_publish(ptr %blk, ptr %ctx, i64 {granule})")


def _entry(b: Body, number: str) -> str:
    offset = b.op(f"mul i64 {b.op(f'zext i32 {number} to i64')}, {ENTRY_BYTES}")
    return b.op(f"getelementptr i8, ptr {_blk(b, 'fence_log', 'ptr')}, i64 {offset}")


def _parts(b: Body, entry: str) -> tuple[str, str, str, str]:
    thread, time, epoch, met = (b.field(entry, part, "i32") for part in (_THREAD, _TIME, _EPOCH_TIME, _MET))
    return thread, time, epoch, met


def published_at(b: Body, place: str, block: str) -> str:
    """The words of what block `block` (i64, from 1) published at place `place` (i64)."""
    rows = _blk(b, "published_rows", "i64")
    row = b.op(f"add i64 {b.op(f'mul i64 {place}, {rows}')}, {block}")
    words = b.op(f"mul i64 {row}, {_blk(b, 'covered_words', 'i64')}")
    return b.op(f"getelementptr i32, ptr {_blk(b, 'published', 'ptr')}, i64 {words}")


def words_of_thread(b: Body, thread: str) -> tuple[str, str]:
    """Indices (i64) of the words of a thread's warp and of the thread."""
    threads = _blk(b, "threads", "i64")
    warps = b.op(f"lshr i64 {b.op(f'add i64 {threads}, 31')}, 5")
    wide = b.op(f"zext i32 {thread} to i64")
    warp = b.op(f"add i64 {b.op(f'lshr i64 {wide}, 5')}, {WARPS}")
    return warp, b.op(f"add i64 {b.op(f'add i64 {wide}, {warps}')}, {WARPS}")


def _raise(b: Body, words: str, index: str | int, time: str) -> None:
    place = b.op(f"getelementptr i32, ptr {words}, i64 {index}")
    later = b.call("i32", "llvm.umax.i32", ("i32", b.op(f"load i32, ptr {place}")), ("i32", time))
    b.do(f"store i32 {later}, ptr {place}")


def _apply(b: Body, words: str, thread: str, time: str, epoch: str, met: str) -> None:
    """Add what one fence covers."""
    warp, own = words_of_thread(b, thread)
    for index, until in ((ALL, epoch), (MOST, time), (warp, met), (own, time)):
        _raise(b, words, index, until)


def kt_gather() -> tuple[str, Body]:
    """`kt_gather(block)`: at a barrier, empty the log of fences into what the whole block knows to be covered."""
    b = Body()
    words = _blk(b, "covered", "ptr")
    with b.loop(0, _blk(b, "fences")) as index:
        _apply(b, words, *_parts(b, _entry(b, index)))
    _set(b, "fences", 0)
    _set(b, "covered_time", _blk(b, "time"))
    b.do("ret void")
    return b.function("define internal void @kt_gather(ptr %blk) noinline"), b


@contextmanager
def _watched(b: Body) -> Iterator[None]:
    with b.when(b.op(f"icmp ne ptr {_blk(b, 'published', 'ptr')}, null")):
        yield


def kt_fence() -> tuple[str, Body]:
    """`kt_fence(block, context, card)`: a fence, for the whole card or for the block alone."""
    b = Body()
    now = tick(b)
    b.set_field("%ctx", at.FENCED_AT_ALL, "i32", now)
    _set(b, "fenced", now)
    with _watched(b), b.when("%card"):
        _set(b, "fenced_card", now)
        thread = b.field("%ctx", at.LINEAR, "i32")
        epoch, met = _blk(b, "epoch_time"), b.field("%ctx", at.MET, "i32")
        index, again = _place_in_log(b, thread, epoch, met)
        full, room, on = b.label(), b.label(), b.label()
        b.branch(b.op(f"icmp uge i32 {index}, {LOG_ENTRIES}"), full, room)
        b.place(full)
        _apply(b, _blk(b, "covered", "ptr"), thread, now, epoch, met)
        _set(b, "covered_time", now)
        b.jump(on)
        b.place(room)
        entry = _entry(b, index)
        for part, value in ((_THREAD, thread), (_TIME, now), (_EPOCH_TIME, epoch), (_MET, met)):
            b.set_field(entry, part, "i32", value)
        count = _blk(b, "fences")
        _set(b, "fences", b.op(f"select i1 {again}, i32 {count}, i32 {b.op(f'add i32 {count}, 1')}"))
        b.set_field("%ctx", at.FENCED, "i32", now)
        b.set_field("%ctx", at.FENCE_AT, "i32", index)
        b.jump(on)
        b.place(on)
    b.do("ret void")
    return b.function("define void @kt_fence(ptr %blk, ptr %ctx, i1 %card)"), b


def _place_in_log(b: Body, thread: str, epoch: str, met: str) -> tuple[str, str]:
    """Where a fence goes: over the thread's last one if nobody met the thread since, so that nobody knows that one."""
    last, place, count = b.field("%ctx", at.FENCED, "i32"), b.field("%ctx", at.FENCE_AT, "i32"), _blk(b, "fences")
    old = _entry(b, place)
    there = b.op(f"icmp ult i32 {place}, {count}")
    mine = b.op(f"icmp eq i32 {b.field(old, _THREAD, 'i32')}, {thread}")
    its = b.op(f"icmp eq i32 {b.field(old, _TIME, 'i32')}, {last}")
    since = b.call("i32", "llvm.umax.i32", ("i32", epoch), ("i32", met))
    nobody_met = b.op(f"icmp ugt i32 {last}, {since}")
    again = b.op(f"and i1 {b.op(f'and i1 {there}, {mine}')}, {b.op(f'and i1 {its}, {nobody_met}')}")
    return b.op(f"select i1 {again}, i32 {place}, i32 {count}"), again


def _place(b: Body, number: str) -> str:
    offset = b.op(f"mul i64 {number}, {PLACE_BYTES}")
    return b.op(f"getelementptr i8, ptr {_blk(b, 'places', 'ptr')}, i64 {offset}")


def _find(b: Body) -> tuple[str, str]:
    """The number (i64) of the place of `%granule`, and how many there are; as large as that where it has none."""
    used = b.op(f"load i64, ptr {_blk(b, 'places_used_at', 'ptr')}")
    found = b.variable("i64", 0)
    test, look, next_, end = (b.label() for _ in range(4))
    b.jump(test)
    b.place(test)
    b.branch(b.op(f"icmp ult i64 {found.get()}, {used}"), look, end)
    b.place(look)
    b.branch(b.op(f"icmp eq i64 {b.field(_place(b, found.get()), _GRANULE, 'i64')}, %granule"), end, next_)
    b.place(next_)
    found.set(b.op(f"add i64 {found.get()}, 1"))
    b.jump(test)
    b.place(end)
    return found.get(), used


def kt_learn() -> tuple[str, Body]:
    """`kt_learn(block, context, granule)`: the thread knows the place, and what those knew who published there."""
    b = Body()
    number, used = _find(b)
    last = b.op(f"sub i64 {_blk(b, 'places_most', 'i64')}, 1")
    full = b.op(f"icmp ugt i64 {used}, {last}")
    known = b.op(f"or i1 {full}, {b.op(f'icmp ult i64 {number}, {used}')}")
    with b.when(known):
        at_ = b.call("i64", "llvm.umin.i64", ("i64", number), ("i64", last))
        bit = b.op(f"shl i64 1, {at_}")
        news = b.op(f"or i64 {bit}, {b.field(_place(b, at_), _KNEW, 'i64')}")
        own = b.field("%ctx", at.KNOWS, "i64")
        b.set_field("%ctx", at.KNOWS, "i64", b.op(f"or i64 {own}, {news}"))
        _set(b, "knows_since", b.op(f"or i64 {_blk(b, 'knows_since', 'i64')}, {news}"), "i64")
    b.do("ret void")
    header = "define internal preserve_allcc void @kt_learn(ptr %blk, ptr %ctx, i64 %granule) noinline"
    return b.function(header), b


def kt_publish() -> tuple[str, Body]:
    """`kt_publish(block, context, granule)`: publish there what the thread knows to be covered, and what it knows."""
    b = Body()
    number, used = _find(b)
    last = b.op(f"sub i64 {_blk(b, 'places_most', 'i64')}, 1")
    number = b.call("i64", "llvm.umin.i64", ("i64", number), ("i64", last))
    place = _place(b, number)
    with b.when(b.op(f"icmp eq i64 {number}, {used}")):
        b.set_field(place, _GRANULE, "i64", "%granule")
        more = b.op(f"add i64 {used}, 1")
        b.do(f"store i64 {more}, ptr {_blk(b, 'places_used_at', 'ptr')}")
    b.set_field(place, _KNEW, "i64", b.op(f"or i64 {b.field(place, _KNEW, 'i64')}, {knows(b)}"))
    block = _blk(b, "block_number", "i64")
    words = published_at(b, number, block)
    _publish_covered(b, place, words)
    me, met = b.field("%ctx", at.LINEAR, "i32"), b.field("%ctx", at.MET, "i32")
    warp = b.op(f"lshr i32 {me}, 5")
    with b.loop(0, _blk(b, "fences")) as index:
        thread, time, epoch, was_met = _parts(b, _entry(b, index))
        own = b.op(f"icmp eq i32 {thread}, {me}")
        same_warp = b.op(f"icmp eq i32 {b.op(f'lshr i32 {thread}, 5')}, {warp}")
        by_warp = b.op(f"and i1 {same_warp}, {b.op(f'icmp ult i32 {time}, {met}')}")
        with b.when(b.op(f"or i1 {own}, {by_warp}")):
            _apply(b, words, thread, time, epoch, was_met)
    b.do("ret void")
    header = "define internal preserve_allcc void @kt_publish(ptr %blk, ptr %ctx, i64 %granule) noinline"
    return b.function(header), b


def _publish_covered(b: Body, place: str, words: str) -> None:
    """What all of the block know, unless it stands there already."""
    number, time = _blk(b, "block_number"), _blk(b, "covered_time")
    same = b.op(f"icmp eq i32 {b.field(place, _SYNCED_BLOCK, 'i32')}, {number}")
    late = b.op(f"icmp uge i32 {b.field(place, _SYNCED_TIME, 'i32')}, {time}")
    old = b.op(f"and i1 {same}, {late}")
    nothing = b.op(f"or i1 {old}, {b.op(f'icmp eq i32 {time}, 0')}")
    with b.when(b.op(f"xor i1 {nothing}, true")):
        b.set_field(place, _SYNCED_BLOCK, "i32", number)
        b.set_field(place, _SYNCED_TIME, "i32", time)
        covered = _blk(b, "covered", "ptr")
        with b.loop(0, _blk(b, "covered_words", "i64"), "i64") as index:
            here = b.op(f"getelementptr i32, ptr {covered}, i64 {index}")
            _raise(b, words, index, b.op(f"load i32, ptr {here}"))


PARTS = (kt_gather, kt_fence, kt_learn, kt_publish)
