"""Lanes of a warp that wait for each other, as LLVM IR: when they go on, and what they then know.

Lanes that wait for a collective or a barrier of the warp go on once all lanes in their mask that still run are there.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from kerneltrial.devices.cpu import layout as at
from kerneltrial.devices.cpu import order
from kerneltrial.devices.cpu.barriers import context_of
from kerneltrial.devices.cpu.ir import Body


def release() -> tuple[str, Body]:
    """Release every group of the warp lo <= lane < hi that is complete; say whether there was one."""
    b = Body()
    any_ = b.variable("i1", "false")
    with b.loop("%lo", "%hi") as i:
        context = context_of(b, i)
        status = b.field(context, at.STATUS, "i32")
        collective = b.op(f"icmp eq i32 {status}, {at.AT_COLLECTIVE}")
        waits = b.op(f"or i1 {collective}, {b.op(f'icmp eq i32 {status}, {at.AT_WARP_BARRIER}')}")
        with b.when(waits):
            mask = b.field(context, at.MASK, "i32")
            state = b.field(context, at.STATE, "i32")
            there = b.variable("i32", 0)
            missing = b.variable("i32", 0)
            with b.loop("%lo", "%hi") as j:
                other = context_of(b, j)
                bit = b.op(f"shl i32 1, {b.op(f'sub i32 {j}, %lo')}")
                other_status = b.field(other, at.STATUS, "i32")
                same = b.op(f"icmp eq i32 {other_status}, {status}")
                same_mask = b.op(f"icmp eq i32 {b.field(other, at.MASK, 'i32')}, {mask}")
                same_place = b.op(f"icmp eq i32 {b.field(other, at.STATE, 'i32')}, {state}")
                place = b.op(f"select i1 {collective}, i1 {same_place}, i1 true")
                meets = b.op(f"and i1 {b.op(f'and i1 {same}, {same_mask}')}, {place}")
                ended = b.op(f"icmp eq i32 {other_status}, {at.DONE}")
                there.set(b.op(f"or i32 {there.get()}, {b.op(f'select i1 {meets}, i32 {bit}, i32 0')}"))
                absent = b.op(f"xor i1 {b.op(f'or i1 {meets}, {ended}')}, true")
                missing.set(b.op(f"or i32 {missing.get()}, {b.op(f'select i1 {absent}, i32 {bit}, i32 0')}"))
            lacking = b.op(f"and i32 {missing.get()}, {mask}")
            with b.when(b.op(f"icmp eq i32 {lacking}, 0")):
                any_.set("true")
                group = b.op(f"and i32 {there.get()}, {mask}")
                _set_free(b, group, collective)
    with b.when(b.op(f"xor i1 {any_.get()}, true")):
        any_.set(_meet(b))
    b.do(f"ret i1 {any_.get()}")
    header = "define internal i1 @release(ptr %blk, ptr %contexts, i32 %lo, i32 %hi)"
    return b.function(header), b


def _meet(b: Body) -> str:
    """A meeting waits for nobody. When nothing else goes on, the lanes at the earliest one in the code are free: so the
    others, which may come to a later one, reconverge as early as they can."""
    first = b.variable("i32", 0x7FFFFFFF)
    group = b.variable("i32", 0)
    for gather in (False, True):
        with b.loop("%lo", "%hi") as lane:
            context = context_of(b, lane)
            here = b.op(f"icmp eq i32 {b.field(context, at.STATUS, 'i32')}, {at.AT_MEETING}")
            state = b.field(context, at.STATE, "i32")
            if not gather:
                place = b.op(f"select i1 {here}, i32 {state}, i32 {first.get()}")
                first.set(b.call("i32", "llvm.umin.i32", ("i32", first.get()), ("i32", place)))
                continue
            same = b.op(f"and i1 {here}, {b.op(f'icmp eq i32 {state}, {first.get()}')}")
            bit = b.op(f"shl i32 1, {b.op(f'sub i32 {lane}, %lo')}")
            group.set(b.op(f"or i32 {group.get()}, {b.op(f'select i1 {same}, i32 {bit}, i32 0')}"))
    _set_free(b, group.get(), "true")
    return b.op(f"icmp ne i32 {group.get()}, 0")


def _set_free(b: Body, group: str, collective: str) -> None:
    """Make the lanes of `group` runnable, with each other's words in view; a warp barrier starts a warp epoch."""
    public = b.field("%blk", at.BLOCK["public_bytes"], "i64")
    checked = b.op(f"icmp ne i64 {b.field('%blk', at.BLOCK['check_exits'], 'i64')}, 0")
    with b.when(checked):
        _join(b, group, collective)
    with _each_of(b, group) as context:
        b.set_field(context, at.STATUS, "i32", at.RUNNABLE)
        b.set_field(context, at.GROUP, "i32", group)
        step = b.op(f"select i1 {collective}, i32 0, i32 1")
        epoch = b.op(f"add i32 {b.field(context, at.WARP_EPOCH, 'i32')}, {step}")
        b.set_field(context, at.WARP_EPOCH, "i32", epoch)
        words = b.op(f"getelementptr i8, ptr {context}, i64 {at.PUBLIC}")
        visible = b.op(f"getelementptr i8, ptr {words}, i64 {public}")
        b.call("void", "llvm.memcpy.p0.p0.i64", ("ptr", visible), ("ptr", words), ("i64", public), ("i1", "false"))


@contextmanager
def _each_of(b: Body, group: str) -> Iterator[str]:
    """The contexts of the lanes in `group`."""
    with b.loop("%lo", "%hi") as lane:
        bit = b.op(f"lshr i32 {group}, {b.op(f'sub i32 {lane}, %lo')}")
        with b.when(b.op(f"trunc i32 {bit} to i1")):
            yield context_of(b, lane)


def _join(b: Body, group: str, collective: str) -> None:
    """What one of these lanes knows of other blocks, all know (`order`): a shuffle hands on what a flag said.

    Within the block only a barrier orders them.
    """
    now = order.tick(b)
    acquired, known = b.variable("i32", 0), b.variable("i64", 0)
    with _each_of(b, group) as context:
        own = b.field(context, at.ACQUIRED, "i32")
        acquired.set(b.call("i32", "llvm.umax.i32", ("i32", acquired.get()), ("i32", own)))
        known.set(b.op(f"or i64 {known.get()}, {b.field(context, at.KNOWS, 'i64')}"))
    with _each_of(b, group) as context:
        b.set_field(context, at.ACQUIRED, "i32", acquired.get())
        b.set_field(context, at.KNOWS, "i64", known.get())
        b.set_field(context, at.MET, "i32", now)
        before = b.field(context, at.WARP_MET, "i32")
        b.set_field(context, at.WARP_MET, "i32", b.op(f"select i1 {collective}, i32 {before}, i32 {now}"))
