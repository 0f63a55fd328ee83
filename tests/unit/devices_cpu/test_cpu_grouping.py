"""One check for many accesses to shared memory finds what a check of each would, and names the same one."""

import pytest
from ptx_runner import HEADER, call_of, out, run

from kerneltrial.devices.cpu.flow import analyse
from kerneltrial.devices.cpu.grouping import shared_groups
from kerneltrial.devices.cpu.inline import flatten
from kerneltrial.devices.cpu.parser import parse
from kerneltrial.records.reason import Reason

BYTES = 256


def _text(lines: str, static: bool = True) -> str:
    room = f".shared .align 16 .b8 room[{BYTES}];" if static else ""
    outside = "" if static else ".extern .shared .align 16 .b8 room[];"
    return f"""{HEADER}{outside}
.visible .entry kern(.param .u64 out, .param .u32 start) {{
  .reg .b32 %r<20>; .reg .b64 %rd<4>; .reg .pred %p<2>; {room}
  ld.param.u32 %r1, [start];
  mov.u32 %r9, room; add.s32 %r1, %r1, %r9;
  {lines}
  ret;
}}"""


LOADS = """.loc 1 10 0
  ld.shared.u32 %r2, [%r1+8];
  .loc 1 11 0
  ld.shared.u32 %r3, [%r1];
  .loc 1 12 0
  ld.shared.u32 %r4, [%r1+16];
  .loc 1 13 0
  st.shared.u32 [%r1+4], %r2;"""


def _finding(lines: str, start: int, checks: str, static: bool = True) -> tuple[Reason, str] | None:
    call = call_of([out("out", "uint32", 4), start & 0xFFFFFFFF], (1,), (1,), 0 if static else BYTES)
    done = run(_text(lines, static), call, {}, checks=checks)
    return (done.findings[0].reason, done.findings[0].detail) if done.findings else None


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize(
    ("start", "line"),
    [(0, 0), (BYTES - 20, 0), (BYTES - 16, 12), (BYTES - 4, 10), (-4, 11), (-8, 11), (-16, 10), (2, 10), (BYTES, 10),
     (1 << 30, 10), (-(1 << 31), 10)],
)  # fmt: skip
def test_the_first_that_fails_is_named(start: int, line: int, static: bool) -> None:
    found = _finding(LOADS, start, "bounds", static)
    if not line:
        assert found is None
        return
    assert found is not None
    reason, detail = found
    assert reason is (Reason.MISALIGNED if start == 2 else Reason.OUT_OF_BOUNDS)
    assert f"line {line}" in detail
    alone = "\n".join(f".loc 1 {line} 0\n{text}" for text in [LOADS.split("\n")[2 * (line - 10) + 1]])
    assert _finding(alone, start, "bounds", static) == found, "as without the others"


def _groups(lines: str) -> list[int]:
    """Sizes of the groups of a text."""
    module = parse(_text(lines))
    found = []
    for block in analyse(flatten(module, module.functions["kern"])).blocks:
        groups = shared_groups(block)
        found += [list(groups.values()).count(group) for group in {id(g): g for g in groups.values()}.values()]
    return sorted(found)


@pytest.mark.parametrize(
    ("lines", "sizes"),
    [
        (LOADS, [4]),
        ("ld.shared.u32 %r2, [%r1]; @%p1 ld.shared.u32 %r3, [%r1+4]; ld.shared.u32 %r4, [%r1+8];", [2]),
        ("ld.shared.u32 %r2, [%r1]; add.s32 %r1, %r1, 4; ld.shared.u32 %r3, [%r1];", []),
        ("ld.shared.u32 %r2, [%r1]; ld.shared.u32 %r1, [%r1+4]; ld.shared.u32 %r3, [%r1];", [2]),
        ("ld.shared.u32 %r2, [%r1]; bar.sync 0; ld.shared.u32 %r3, [%r1+4];", []),
        ("ld.shared.u32 %r2, [%r1]; ld.shared.u16 %r3, [%r1+4]; ld.shared.u32 %r4, [%r1+6];", []),
        ("ld.shared.v2.u32 {%r2, %r3}, [%r1]; ld.shared.v2.u32 {%r4, %r5}, [%r1+16];", [2]),
    ],
)
def test_what_is_checked_together(lines: str, sizes: list[int]) -> None:
    assert _groups(lines) == sizes
