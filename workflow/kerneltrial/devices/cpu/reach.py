"""Checked accesses out of line, as LLVM IR: what a kernel calls where speed is not what its variant is for.

`kt_reach_SPACE_LEVEL(block, context, offset, what, needed, site)` gives the host's pointer, or null after a fault. A
call and a branch take the place of some dozen instructions at each access, which LLVM would have to compile again in
every kernel. Level `store` is that of plain stores under all checks, with two more words: what they write. These
functions preserve all registers of their caller (LLVM's preserve_allcc), whose values stay where they are around the
call.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from kerneltrial.devices.cpu import granules
from kerneltrial.devices.cpu import layout as at
from kerneltrial.devices.cpu.ir import LIKELY, UNLIKELY, Body, Slot

CONVENTION = "preserve_allcc"
_PARAMETERS = "ptr %blk, ptr %ctx, i64 %offset, i64 %what, i64 %needed, i64 %site"
_KIND, _GENERIC = 6, 16
_ONES = 0x0101010101010101
_BEHIND = 16
"""Flags are read eight at a time: no access may end in the last bytes of the arena, which are margin anyway."""


def symbol(space: str, level: str) -> str:
    return f"kt_reach_{space}_{level}"


def what(size: int, kind: int) -> int:
    """The constant that says what an access is: log2 of its size, and its kind as in `granules`."""
    return size.bit_length() - 1 | kind << _KIND


def needed(size: int, flags: int) -> int:
    """The flags that each of an access's bytes needs, as a signed constant; of 16 bytes those of 8."""
    value = int.from_bytes(bytes([flags]) * min(size, 8), "little")
    return value - (1 << 64) if value >> 63 else value


class _Reach:
    """What the functions have in common."""

    def __init__(self, space: str, level: str) -> None:
        self.space, self.level = space, level
        self.b = b = Body()
        self.shift = b.op("and i64 %what, 63")
        self.kind = b.op(f"and i64 {b.op(f'lshr i64 %what, {_KIND}')}, 255")
        self.all = level in ("all", "store")

    def field(self, name: str, type_: str = "i64") -> str:
        return self.b.field("%blk", at.BLOCK[name], type_)

    def address(self) -> str:
        """The address that a finding names: the generic one where the instruction had one."""
        b = self.b
        if self.space == "generic":
            return "%offset"
        if self.space == "global":
            return b.op(f"add i64 %offset, {at.GLOBAL_BASE}")
        generic = b.op(f"and i64 {b.op(f'lshr i64 %what, {_GENERIC}')}, 1")
        return b.op(f"add i64 %offset, {b.op(f'mul i64 {generic}, {at.SHARED_BASE}')}")

    def require(self, condition: str) -> None:
        """Go on, or note the fault and give null."""
        b = self.b
        with self._unless(condition):
            thread = b.op(f"zext i32 {b.field('%ctx', at.LINEAR, 'i32')} to i64")
            found = (("fault", str(at.AT_SITE)), ("fault_site", "%site"), ("fault_address", self.address()),
                     ("fault_thread", thread))  # fmt: skip
            for name, value in found:
                b.set_field("%blk", at.BLOCK[name], "i64", value)

    def clean(self, condition: str) -> None:
        """Go on, or give null: the fault is noted."""
        with self._unless(condition):
            pass

    @contextmanager
    def _unless(self, condition: str) -> Iterator[None]:
        b = self.b
        on, off = b.label(), b.label()
        b.branch(condition, on, off, LIKELY)
        b.place(off)
        yield
        b.do("ret ptr null")
        b.place(on)

    def within(self, limit: str) -> None:
        """The access is aligned and ends at or before `limit` (see `Access`)."""
        b = self.b
        turned = b.call("i64", "llvm.fshr.i64", ("i64", "%offset"), ("i64", "%offset"), ("i64", self.shift))
        self.require(b.op(f"icmp ult i64 {turned}, {b.op(f'lshr i64 {limit}, {self.shift}')}"))

    def kind_at(self, pointer: str) -> str:
        """The kind of an access: of a store of what is there already, SAME."""
        b = self.b
        if self.level != "store":
            return self.kind
        bits = b.op(f"and i64 {b.op(f'shl i64 8, {self.shift}')}, 63")
        some = b.op(f"sub i64 {b.op(f'shl i64 1, {bits}')}, 1")
        mask = b.op(f"select i1 {b.op(f'icmp uge i64 {self.shift}, 3')}, i64 -1, i64 {some}")
        other = b.op(f"xor i64 {b.op(f'load i64, ptr {pointer}, align 1')}, %low")
        first = b.op(f"icmp eq i64 {b.op(f'and i64 {other}, {mask}')}, 0")
        behind = b.op(f"getelementptr i8, ptr {pointer}, i64 8")
        second = b.op(f"icmp eq i64 {b.op(f'load i64, ptr {behind}, align 1')}, %high")
        narrow = b.op(f"icmp ne i64 {self.shift}, 4")
        same = b.op(f"and i1 {first}, {b.op(f'or i1 {narrow}, {second}')}")
        return b.op(f"select i1 {same}, i64 {granules.SAME}, i64 {self.kind}")

    def older(self, pointer: str, place: Slot) -> None:
        """A strong read that nothing orders gets what was there before, which strong writes keep (`races_global`), and
        the last such read is noted, with the write whose value it did not get."""
        b = self.b
        older = self.field("older", "ptr")
        strong = b.op(f"icmp ugt i64 {self.kind}, {granules.WRITE}")
        with b.when(strong, UNLIKELY), b.when(b.op(f"icmp ne ptr {older}, null")):
            kept = b.op(f"getelementptr i8, ptr {older}, i64 %offset")
            size = b.op(f"shl i64 1, {self.shift}")
            reads = b.op(f"icmp eq i64 {b.op(f'and i64 {self.kind}, 3')}, {granules.READ}")
            read, write, on = b.label(), b.label(), b.label()
            shift = self.field("global_shift")
            end = b.op(f"sub i64 {b.op(f'add i64 %offset, {size}')}, 1")
            first, last = b.op(f"lshr i64 %offset, {shift}"), b.op(f"lshr i64 {end}, {shift}")
            b.branch(reads, read, write)
            b.place(read)
            every = b.op(f"add i64 {b.op(f'sub i64 {last}, {first}')}, 1")
            stale = b.op(f"icmp eq i64 {self.field('stale')}, {every}")
            place.set(b.op(f"select i1 {stale}, ptr {kept}, ptr {pointer}"))
            site_at = b.op(f"getelementptr i32, ptr {self.field('older_sites', 'ptr')}, i64 {first}")
            with b.when(stale):
                wrote = b.op(f"zext i32 {b.op(f'load i32, ptr {site_at}')} to i64")
                for name, value in (("read", "%site"), ("wrote", wrote), ("address", self.address())):
                    b.set_field("%blk", at.BLOCK[f"older_{name}"], "i64", value)
            b.jump(on)
            b.place(write)
            with b.loop(first, b.op(f"add i64 {last}, 1"), "i64") as granule:
                mine = b.op(f"getelementptr i32, ptr {self.field('older_sites', 'ptr')}, i64 {granule}")
                b.do(f"store i32 {b.op('trunc i64 %site to i32')}, ptr {mine}")
            # byte by byte: a call of memcpy would have this function save every register
            with b.loop(0, size, "i64") as n:
                byte = b.op(f"load i8, ptr {b.op(f'getelementptr i8, ptr {pointer}, i64 {n}')}")
                b.do(f"store i8 {byte}, ptr {b.op(f'getelementptr i8, ptr {kept}, i64 {n}')}")
            b.jump(on)
            b.place(on)

    def flags(self) -> str:
        """Compare the flags behind the access with what it needs, and note a write; gives the first eight."""
        b = self.b
        base = b.op(f"getelementptr i8, ptr {self.field('flags', 'ptr')}, i64 %offset")
        held = self._eight(base)
        with b.when(b.op(f"icmp eq i64 {self.shift}, 4"), UNLIKELY):
            self._eight(b.op(f"getelementptr i8, ptr {base}, i64 8"))
        return held

    def _eight(self, place: str) -> str:
        b = self.b
        held = b.op(f"load i64, ptr {place}, align 1")
        self.require(b.op(f"icmp eq i64 {b.op(f'and i64 {held}, %needed')}, %needed"))
        if self.all:
            with b.when(b.op(f"icmp ne i64 {b.op(f'and i64 {self.kind}, 3')}, {granules.READ}"), UNLIKELY):
                # whoever may write needs WRITABLE, and WRITTEN is the bit above
                written = b.op(f"and i64 {b.op('shl i64 %needed, 1')}, {at.WRITTEN * _ONES}")
                b.do(f"store i64 {b.op(f'or i64 {held}, {written}')}, ptr {place}, align 1")
        return held

    def log(self, address: str, shared: bool) -> None:
        """Append to the lane's log; what does not fit is only counted, and the tally refuses then."""
        b = self.b
        lane = b.op(f"sext i32 {b.field('%ctx', at.LANE, 'i32')} to i64")
        place = b.op(f"getelementptr i32, ptr {self.field('log_lengths', 'ptr')}, i64 {lane}")
        length = b.op(f"load i32, ptr {place}")
        b.do(f"store i32 {b.op(f'add i32 {length}, 1')}, ptr {place}")
        last = b.op(f"sub i32 {self.field('log_capacity', 'i32')}, 1")
        index = b.op(f"zext i32 {b.call('i32', 'llvm.umin.i32', ('i32', length), ('i32', last))} to i64")
        start = b.op(f"mul i64 {lane}, {self.field('log_stride')}")
        mine = b.op(f"getelementptr i8, ptr {self.field('log', 'ptr')}, i64 {start}")
        low = b.op(f"and i64 {address}, {(1 << at.ADDRESS_BITS) - 1}")
        key = b.op(f"add i64 {b.op('shl i64 %site, 1')}, {int(shared)}")
        entry = b.op(f"or i64 {low}, {b.op(f'shl i64 {key}, {at.ADDRESS_BITS}')}")
        b.do(f"store i64 {entry}, ptr {b.op(f'getelementptr i64, ptr {mine}, i64 {index}')}")

    def finished(self, result: str) -> tuple[str, Body]:
        self.b.do(f"ret ptr {result}")
        parameters = _PARAMETERS + (", i64 %low, i64 %high" if self.level == "store" else "")
        header = f"define {CONVENTION} ptr @{symbol(self.space, self.level)}({parameters}) nounwind"
        return self.b.function(header), self.b


def _global(level: str) -> tuple[str, Body]:
    r = _Reach("global", level)
    b = r.b
    r.within(b.op(f"sub i64 {r.field('arena_bytes')}, {_BEHIND}"))
    held = r.flags()
    pointer = b.op(f"getelementptr i8, ptr {r.field('arena', 'ptr')}, i64 %offset")
    place = b.variable("ptr", pointer)
    if r.all:
        writable = b.op(f"icmp ne i64 {b.op(f'and i64 {held}, {at.WRITABLE}')}, 0")
        with b.when(writable), b.when(b.op(f"icmp ne ptr {r.field('global_shadow', 'ptr')}, null")):
            size = b.op(f"shl i64 1, {r.shift}")
            arguments = f"i64 %offset, i64 {r.address()}, i64 {size}, i64 {r.kind_at(pointer)}, i64 %site"
            r.clean(b.op(f"call i1 @kt_global(ptr %blk, ptr %ctx, {arguments})"))
            if level == "all":
                r.older(pointer, place)
    if level == "count":
        r.log(r.address(), False)
    return r.finished(place.get())


def _shared(level: str) -> tuple[str, Body]:
    r = _Reach("shared", level)
    b = r.b
    r.within(r.field("shared_bytes"))
    pointer = b.op(f"getelementptr i8, ptr {r.field('shared', 'ptr')}, i64 %offset")
    if r.all:
        kind, size = b.op(f"and i64 {r.kind_at(pointer)}, 3"), b.op(f"shl i64 1, {r.shift}")
        r.clean(b.op(f"call i1 @kt_shared(ptr %blk, ptr %ctx, i64 %offset, i64 {size}, i64 {kind}, i64 %site)"))
    if level == "count":
        r.log("%offset", True)
    return r.finished(pointer)


def _generic(level: str) -> tuple[str, Body]:
    """By window: shared, local, else global. Here `offset` is the generic address."""
    r = _Reach("generic", level)
    b = r.b

    def elsewhere(space: str, start: int) -> None:
        offset = b.op(f"sub i64 %offset, {start}")
        marked = b.op(f"or i64 %what, {1 << _GENERIC}")
        stored = ", i64 %low, i64 %high" if level == "store" else ""
        arguments = f"ptr %blk, ptr %ctx, i64 {offset}, i64 {marked}, i64 %needed, i64 %site{stored}"
        b.do(f"ret ptr {b.op(f'call {CONVENTION} ptr @{symbol(space, level)}({arguments})')}")

    shared, other, local, outside = (b.label() for _ in range(4))
    in_shared = b.op(f"sub i64 %offset, {at.SHARED_BASE}")
    b.branch(b.op(f"icmp ult i64 {in_shared}, {at.WINDOW_BYTES}"), shared, other)
    b.place(shared)
    elsewhere("shared", at.SHARED_BASE)
    b.place(other)
    in_local = b.op(f"sub i64 %offset, {at.LOCAL_BASE}")
    b.branch(b.op(f"icmp ult i64 {in_local}, {at.WINDOW_BYTES}"), local, outside)
    b.place(outside)
    elsewhere("global", at.GLOBAL_BASE)
    b.place(local)
    turned = b.call("i64", "llvm.fshr.i64", ("i64", in_local), ("i64", in_local), ("i64", r.shift))
    units = b.op(f"lshr i64 {r.field('local_bytes')}, {r.shift}")
    r.require(b.op(f"icmp ult i64 {turned}, {units}"))
    start = b.op(f"getelementptr i8, ptr %ctx, i64 {r.field('local_offset')}")
    return r.finished(b.op(f"getelementptr i8, ptr {start}, i64 {in_local}"))


LEVELS = ("bounds", "all", "store", "count")
SYMBOLS = tuple(symbol(space, level) for space in ("global", "shared", "generic") for level in LEVELS)


def parts() -> list[tuple[str, Body]]:
    """All of them; `kt_shared` and `kt_global` must be in their module."""
    return [make(level) for make in (_global, _shared, _generic) for level in LEVELS]
