"""Places in a kernel's code that may fail, and how a thread notes that one did."""

from dataclasses import dataclass

from kerneltrial.devices.cpu import layout as at
from kerneltrial.devices.cpu.grouping import Group


@dataclass(frozen=True)
class Site:
    """A place in the code that may fail: `space` and `kind` are of the access, empty where there is none.

    A site with a `group` stands for the check of several, and its address is that of the lowest.
    """

    line: int
    opcode: str
    space: str = ""
    kind: str = ""
    size: int = 0
    group: Group | None = None


FAULT = f"""
define internal void @fault(ptr %blk, ptr %ctx, i64 %site, i64 %address) noinline cold {{
  %p1 = getelementptr i8, ptr %blk, i64 {at.BLOCK["fault"]}
  store i64 {at.AT_SITE}, ptr %p1
  %p2 = getelementptr i8, ptr %blk, i64 {at.BLOCK["fault_site"]}
  store i64 %site, ptr %p2
  %p3 = getelementptr i8, ptr %blk, i64 {at.BLOCK["fault_address"]}
  store i64 %address, ptr %p3
  %q = getelementptr i8, ptr %ctx, i64 {at.LINEAR}
  %lin = load i32, ptr %q
  %wide = zext i32 %lin to i64
  %p4 = getelementptr i8, ptr %blk, i64 {at.BLOCK["fault_thread"]}
  store i64 %wide, ptr %p4
  ret void
}}
"""
"""What `thread` calls where a check of its own fails."""
