"""The screen of PTX: what is refused, and what only looks like it."""

import pytest

from kerneltrial.judge.ptx import statements
from kerneltrial.judge.screen import screen
from kerneltrial.records.reason import Reason

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"


def entry(*body: str, before: str = "") -> str:
    inside = "\n".join(f"    {line}" for line in body)
    header = ".visible .entry k(\n    .param .u64 .ptr .global .align 4 k_param_0,\n    .param .u32 k_param_1\n)"
    return f"{HEAD}{before}\n{header}\n.maxntid 256, 1, 1\n{{\n    .reg .b64 %rd<9>;\n{inside}\n    ret;\n}}\n"


COUNTER = ".visible .global .align 4 .u32 calls;"
TABLE = ".global .align 4 .b8 table[8] = {1, 2, 3, 4, 5, 6, 7, 8};"

REFUSED = {
    "stores to a global": entry("st.global.u32 [calls], %r1;", before=COUNTER),
    "adds to a global": entry("atom.global.add.u32 %r1, [calls], 1;", before=COUNTER),
    "reduces into a global": entry("red.global.add.u32 [calls], 1;", before=COUNTER),
    "stores by a computed address": entry(
        "mov.u64 %rd1, calls;",
        "add.s64 %rd2, %rd1, 4;",
        "cvta.global.u64 %rd3, %rd2;",
        "st.u32 [%rd3], 7;",
        before=COUNTER,
    ),
    "stores by a selected address": entry(
        "mov.u64 %rd1, calls;", "selp.b64 %rd2, %rd4, %rd1, %p1;", "st.global.u32 [%rd2+8], 7;", before=COUNTER
    ),
    "stores the address itself": entry("mov.u64 %rd1, calls;", "st.global.u64 [%rd2], %rd1;", before=COUNTER),
    "hands the address to a function": entry(
        "mov.u64 %rd1, calls;",
        "{ .param .b64 param0;",
        "st.param.b64 [param0+0], %rd1;",
        "call.uni f, (param0); }",
        before=COUNTER,
    ),
    "keeps the address in another global": entry(
        "ld.global.u64 %rd1, [where];",
        "st.global.u32 [%rd1], 1;",
        before=COUNTER + "\n.global .align 8 .u64 where = generic(calls);",
    ),
    "copies into a global": entry("cp.async.ca.shared.global [calls], [%rd1], 16;", before=COUNTER),
    "weak and common globals": entry("st.global.u32 [calls], 1;", before=".common .global .align 4 .u32 calls;"),
    "clock": entry("mov.u32 %r1, %clock;"),
    "clock64": entry("mov.u64 %rd1, %clock64;"),
    "globaltimer": entry("mov.u64 %rd1, %globaltimer;"),
    "globaltimer in inline assembly": entry("// begin inline asm", "{ mov.u64 %rd1, %globaltimer_lo; }"),
    "gridid": entry("mov.u64 %rd1, %gridid;"),
    "trap": entry("@%p1 bra $L1;", "trap;", "$L1:"),
    "guarded trap": entry("@!%p1 trap;"),
    "trap behind a location": entry(".loc 1 7 3 trap;"),
    "trap behind a long location": entry(".loc 1 7 3, function_name $L__info+12, inlined_at 1 9 4 trap;"),
    "trap behind a label": entry("$L1: trap;"),
    "trap in a nested scope": entry("{", "  .reg .b32 %r<2>;", "  { trap; }", "}"),
    "brkpt": entry("brkpt;"),
    "discard": entry("discard.global.L2 [%rd1], 128;"),
    "vprintf": entry(before=".extern .func (.param .b32 func_retval0) vprintf (.param .b64 a, .param .b64 b);"),
    "malloc": entry(before=".extern .func (.param .b64 func_retval0) malloc\n(\n.param .b64 malloc_param_0\n)\n;"),
    "launch from the device": entry(
        before=".extern .func (.param .b32 r) cudaLaunchDeviceV2 (.param .b64 p, .param .b64 s);"
    ),
    "comment that does not end": HEAD + "/* trap;",
    "body that does not end": HEAD + ".visible .entry k() { ret;",
}

ALLOWED = {
    "nothing special": entry("st.global.u32 [%rd1], 7;"),
    "words in comments": entry("// trap; %clock", "/* %gridid", "st.global.u32 [calls], 1; */"),
    "words in strings": entry('.pragma "trap; %clock";'),
    "table that is read": entry(
        "mov.u64 %rd1, table;", "add.s64 %rd2, %rd1, %rd3;", "ld.global.u8 %r1, [%rd2];", before=TABLE
    ),
    "table beside a store elsewhere": entry(
        "mov.u64 %rd1, table;", "ld.global.u32 %r1, [%rd1];", "st.global.u32 [%rd5], %r1;", before=TABLE
    ),
    "unused global": entry("st.global.u32 [%rd5], 1;", before=COUNTER),
    "shared memory": entry("st.shared.u32 [tile], 1;", before=".shared .align 4 .b8 tile[64];"),
    "constants": entry("ld.const.u32 %r1, [c];", before=".const .align 4 .u32 c = 7;"),
    "names that hold a word": entry("call.uni traps, ();", before=".func traps()\n{\n    ret;\n}"),
    "vectors": entry("ld.global.v2.u32 {%r1, %r2}, [%rd1];", "st.global.v2.u32 [%rd2], {%r1, %r2};"),
    "debug sections": entry() + '.section .debug_str\n{\n$info:\n.b8 116\n.b8 114,97,112\n}\n.file 1 "a.cu"\n',
    "locations": entry(".loc 1 7 3, function_name $L__info+12, inlined_at 1 9 4", "st.global.u32 [%rd1], 7;"),
}


@pytest.mark.parametrize("ptx", REFUSED.values(), ids=REFUSED)
def test_refused(ptx: str) -> None:
    finding = screen(ptx)
    assert finding is not None
    assert finding.reason is Reason.FORBIDDEN_INSTRUCTION


@pytest.mark.parametrize("ptx", ALLOWED.values(), ids=ALLOWED)
def test_allowed(ptx: str) -> None:
    assert screen(ptx) is None


def test_the_finding_names_line_and_thing() -> None:
    finding = screen(entry("mov.u32 %r1, %clock;"))
    assert finding is not None
    assert "%clock" in finding.detail
    assert "line 12" in finding.detail


def test_statements_have_opcode_operands_and_depth() -> None:
    found = [s for s in statements(entry("@%p1 st.global.v2.f32 [%rd1+8], {%f1, %f2};")) if s.opcode.startswith("st")]
    assert [s.depth for s in found] == [1]
    assert found[0].operands == (frozenset({"%rd1"}), frozenset({"%f1", "%f2"}))
