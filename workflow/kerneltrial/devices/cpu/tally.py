"""What the log of a warp's accesses adds up to, as LLVM IR: sectors, shared accesses, bank conflicts.

Lanes may have taken different ways. Their logs are merged by place in the code: of the accesses that come next, those
at the earliest place are taken as one access of the warp. For code without divergence that is exact; for divergent
code it is the order of a warp that reconverges as early as it can.

A global access touches 32-byte sectors. A shared access of up to 4 bytes is one pass of 32 lanes, of 8 bytes two of 16,
of 16 bytes four of 8; in a pass, each of 32 banks of 4 bytes serves one word, and each further word of a bank costs an
extra pass, a conflict.
"""

from kerneltrial.devices.cpu import layout as at
from kerneltrial.devices.cpu.ir import Body

SECTORS, GLOBAL_ACCESSES, SHARED_ACCESSES, CONFLICTS, OVERFLOWS = range(5)
TOTALS = 5
_NO_KEY = 1 << 40


def _add(b: Body, which: int, value: str) -> None:
    totals = b.field("%blk", at.BLOCK["totals"], "ptr")
    place = b.op(f"getelementptr i64, ptr {totals}, i64 {which}")
    old = b.op(f"load i64, ptr {place}")
    b.do(f"store i64 {b.op(f'add i64 {old}, {value}')}, ptr {place}")


def _item(b: Body, array: str, type_: str, index: str) -> str:
    wide = b.op(f"sext i32 {index} to i64")
    return b.op(f"getelementptr {type_}, ptr {array}, i64 {wide}")


def _load(b: Body, array: str, type_: str, index: str) -> str:
    return b.op(f"load {type_}, ptr {_item(b, array, type_, index)}")


class _Logs:
    """The logs of a warp's lanes, each read from its head on."""

    def __init__(self, b: Body) -> None:
        self.b = b
        self.heads = b.variable("[32 x i32]").pointer
        self.addresses = b.variable("[32 x i64]").pointer
        self.lengths = b.field("%blk", at.BLOCK["log_lengths"], "ptr")
        self.log = b.field("%blk", at.BLOCK["log"], "ptr")
        self.stride = b.field("%blk", at.BLOCK["log_stride"], "i64")
        self.lanes = b.op("sub i32 %hi, %lo")

    def rewind(self) -> None:
        """Begin at the start of each log; one that overflowed ends at its capacity."""
        b = self.b
        capacity = b.field("%blk", at.BLOCK["log_capacity"], "i32")
        with b.loop(0, self.lanes) as lane:
            b.do(f"store i32 0, ptr {_item(b, self.heads, 'i32', lane)}")
            over = b.op(f"icmp sgt i32 {_load(b, self.lengths, 'i32', lane)}, {capacity}")
            with b.when(over):
                _add(b, OVERFLOWS, "1")
                b.do(f"store i32 {capacity}, ptr {_item(b, self.lengths, 'i32', lane)}")

    def _next(self, lane: str) -> tuple[str, str]:
        """Whether the lane has an access left, and its log entry (the first one where it has none)."""
        b = self.b
        head = _load(b, self.heads, "i32", lane)
        left = b.op(f"icmp slt i32 {head}, {_load(b, self.lengths, 'i32', lane)}")
        safe = b.op(f"select i1 {left}, i32 {head}, i32 0")
        wide = b.op(f"sext i32 {lane} to i64")
        mine = b.op(f"getelementptr i8, ptr {self.log}, i64 {b.op(f'mul i64 {wide}, {self.stride}')}")
        return left, _load(b, mine, "i64", safe)

    def earliest(self) -> str:
        """The least place in the code among the accesses that come next."""
        b = self.b
        least = b.variable("i64", _NO_KEY)
        with b.loop(0, self.lanes) as lane:
            left, entry = self._next(lane)
            key = b.op(f"lshr i64 {entry}, {at.ADDRESS_BITS}")
            candidate = b.op(f"select i1 {left}, i64 {key}, i64 {_NO_KEY}")
            least.set(b.call("i64", "llvm.umin.i64", ("i64", least.get()), ("i64", candidate)))
        return least.get()

    def take(self, chosen: str) -> str:
        """Step over the accesses at the place `chosen`, keep their addresses, give their number."""
        b = self.b
        count = b.variable("i32", 0)
        with b.loop(0, self.lanes) as lane:
            left, entry = self._next(lane)
            same = b.op(f"icmp eq i64 {b.op(f'lshr i64 {entry}, {at.ADDRESS_BITS}')}, {chosen}")
            with b.when(b.op(f"and i1 {left}, {same}")):
                passed = b.op(f"add i32 {_load(b, self.heads, 'i32', lane)}, 1")
                b.do(f"store i32 {passed}, ptr {_item(b, self.heads, 'i32', lane)}")
                address = b.op(f"and i64 {entry}, {(1 << at.ADDRESS_BITS) - 1}")
                b.do(f"store i64 {address}, ptr {_item(b, self.addresses, 'i64', count.get())}")
                count.set(b.op(f"add i32 {count.get()}, 1"))
        return count.get()


def after_pass() -> tuple[str, Body]:
    """`after_pass(block, lo, hi)`: merge the logs of the lanes lo..hi and add up what they say."""
    b = Body()
    logs = _Logs(b)
    logs.rewind()
    again, work, shared, global_, end = (b.label() for _ in range(5))
    b.jump(again)
    b.place(again)
    chosen = logs.earliest()
    b.branch(b.op(f"icmp eq i64 {chosen}, {_NO_KEY}"), end, work)
    b.place(work)
    count = logs.take(chosen)
    b.branch(b.op(f"trunc i64 {chosen} to i1"), shared, global_)
    b.place(global_)
    b.do(f"call void @count_sectors(ptr %blk, ptr {logs.addresses}, i32 {count})")
    b.jump(again)
    b.place(shared)
    sizes = b.field("%blk", at.BLOCK["sizes"], "ptr")
    site = b.op(f"lshr i64 {chosen}, 1")
    size = b.op(f"load i32, ptr {b.op(f'getelementptr i32, ptr {sizes}, i64 {site}')}")
    b.do(f"call void @count_conflicts(ptr %blk, ptr {logs.addresses}, i32 {count}, i32 {size})")
    b.jump(again)
    b.place(end)
    b.do("ret void")
    return b.function("define void @after_pass(ptr %blk, i32 %lo, i32 %hi)"), b


def count_sectors() -> tuple[str, Body]:
    """Distinct 32-byte sectors of up to 32 addresses; no access crosses a sector, since all are aligned."""
    b = Body()
    found = b.variable("[32 x i64]").pointer
    count = b.variable("i32", 0)
    with b.loop(0, "%n") as i:
        sector = b.op(f"lshr i64 {_load(b, '%addresses', 'i64', i)}, 5")
        _unless_found(b, found, count.get(), sector, lambda: count.set(b.op(f"add i32 {count.get()}, 1")))
    _add(b, SECTORS, b.op(f"sext i32 {count.get()} to i64"))
    _add(b, GLOBAL_ACCESSES, "1")
    b.do("ret void")
    return b.function("define internal void @count_sectors(ptr %blk, ptr %addresses, i32 %n)"), b


def _unless_found(b: Body, array: str, length: str, value: str, then: "object") -> None:
    """Append `value` to an array of `length` unless it is there; the last ones are looked at first."""
    assert callable(then)
    index = b.variable("i32", length)
    test, compare, absent, end = (b.label() for _ in range(4))
    b.jump(test)
    b.place(test)
    b.branch(b.op(f"icmp eq i32 {index.get()}, 0"), absent, compare)
    b.place(compare)
    index.set(b.op(f"sub i32 {index.get()}, 1"))
    here = b.op(f"load i64, ptr {_item(b, array, 'i64', index.get())}")
    b.branch(b.op(f"icmp eq i64 {here}, {value}"), end, test)
    b.place(absent)
    b.do(f"store i64 {value}, ptr {_item(b, array, 'i64', length)}")
    then()
    b.jump(end)
    b.place(end)


def count_conflicts() -> tuple[str, Body]:
    """Extra passes of one shared access of `size` bytes a lane."""
    b = Body()
    words = b.variable("[1024 x i64]").pointer
    counts = b.variable("[32 x i32]").pointer
    per_lane = b.call("i32", "llvm.umax.i32", ("i32", b.op("lshr i32 %size, 2")), ("i32", 1))
    lanes_a_pass = b.op(f"udiv i32 32, {per_lane}")
    extra = b.variable("i64", 0)
    with b.loop(0, per_lane) as phase:
        first = b.op(f"mul i32 {phase}, {lanes_a_pass}")
        end = b.call("i32", "llvm.smin.i32", ("i32", b.op(f"add i32 {first}, {lanes_a_pass}")), ("i32", "%n"))
        b.call("void", "llvm.memset.p0.i64", ("ptr", counts), ("i8", 0), ("i64", 128), ("i1", "false"))
        most = b.variable("i32", 1)
        most.set(1)
        with b.loop(first, end) as lane:
            start = b.op(f"lshr i64 {_load(b, '%addresses', 'i64', lane)}, 2")
            with b.loop(0, per_lane) as part:
                word = b.op(f"add i64 {start}, {b.op(f'sext i32 {part} to i64')}")
                bank = b.op(f"trunc i64 {b.op(f'and i64 {word}, 31')} to i32")
                place = _item(b, counts, "i32", bank)
                length = b.op(f"load i32, ptr {place}")
                own = _item(b, words, "[32 x i64]", bank)

                def one_more(place: str = place, length: str = length) -> None:
                    more = b.op(f"add i32 {length}, 1")
                    b.do(f"store i32 {more}, ptr {place}")
                    most.set(b.call("i32", "llvm.smax.i32", ("i32", most.get()), ("i32", more)))

                _unless_found(b, own, length, word, one_more)
        more = b.op(f"sub i32 {most.get()}, 1")
        extra.set(b.op(f"add i64 {extra.get()}, {b.op(f'sext i32 {more} to i64')}"))
    _add(b, CONFLICTS, extra.get())
    _add(b, SHARED_ACCESSES, "1")
    b.do("ret void")
    header = "define internal void @count_conflicts(ptr %blk, ptr %addresses, i32 %n, i32 %size)"
    return b.function(header), b


PARTS = (count_sectors, count_conflicts, after_pass)
