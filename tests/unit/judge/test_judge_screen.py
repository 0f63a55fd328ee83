"""The screen of PTX: what is refused, and what only looks like it."""

import time

import pytest

from kerneltrial.judge.ptx import statements
from kerneltrial.judge.screen import MAX_PTX_BYTES
from kerneltrial.judge.screen import screen as screened
from kerneltrial.records.reason import Finding, Reason
from kerneltrial.records.screening import Screening


def screen(ptx: str, **policy: str) -> Finding | None:
    """The first finding under the default policy, or under one with `policy` changed."""
    return next(iter(screened(ptx, Screening(**policy))), None)


HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"


def entry(*body: str, before: str = "") -> str:
    inside = "\n".join(f"    {line}" for line in body)
    header = ".visible .entry k(\n    .param .u64 .ptr .global .align 4 k_param_0,\n    .param .u32 k_param_1\n)"
    return f"{HEAD}{before}\n{header}\n.maxntid 256, 1, 1\n{{\n    .reg .b64 %rd<9>;\n{inside}\n    ret;\n}}\n"


COUNTER = ".visible .global .align 4 .u32 calls;"
TABLE = ".global .align 4 .b8 table[8] = {1, 2, 3, 4, 5, 6, 7, 8};"

CONSTANT = ".const .align 4 .u32 c[4];"
WAIT = ("mbarrier.test_wait.shared.b64 %p1, [%r1], %rd1;", "mov.u64 %rd1, %globaltimer;", "nanosleep.u32 %r1;")
TEXT = ".extern .func __assertfail (.param .b64 a);\n.global .align 1 .b8 $str[2] = {110, 0};"
FAILS = (
    "mov.u64 %rd1, $str;",
    "cvta.global.u64 %rd2, %rd1;",
    "{ .reg .b32 temp;",
    ".param .b64 param0;",
    "st.param.b64 [param0+0], %rd2;",
    "call.uni __assertfail, (param0); }",
)

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
    "copies the address bit by bit": entry(
        "mov.u64 %rd1, calls;",
        "mov.u64 %rd3, 0;",
        "{.reg .pred p; .reg .b64 t; and.b64 t, %rd1, 4; setp.ne.u64 p, t, 0; @p or.b64 %rd3, %rd3, 4;}",
        "st.u32 [%rd3], 7;",
        before=COUNTER,
    ),
    "compares the address": entry("mov.u64 %rd1, calls;", "setp.lt.u64 %p1, %rd1, %rd2;", before=COUNTER),
    "shifts the address": entry("mov.u64 %rd1, calls;", "shr.u64 %rd2, %rd1, 3;", before=COUNTER),
    "converts the address": entry("mov.u64 %rd1, calls;", "cvt.u32.u64 %r1, %rd1;", before=COUNTER),
    "multiplies the address": entry("mov.u64 %rd1, calls;", "mad.lo.s64 %rd2, %rd1, 2, 0;", before=COUNTER),
    "subtracts the address": entry("mov.u64 %rd1, calls;", "sub.s64 %rd2, %rd3, %rd1;", before=COUNTER),
    "keeps the carry of the address": entry(
        "mov.u64 %rd1, calls;", "add.cc.u64 %rd2, %rd1, %rd3;", "addc.u64 %rd4, 0, 0;", before=COUNTER
    ),
    "an element of a vector register": entry(
        ".reg .v2 .b64 %v;", "mov.b64 %v.x, calls;", "and.b64 %rd1, %v.y, 7;", before=COUNTER
    ),
    "an address as a cache policy": entry(
        "mov.u64 %rd1, calls;", "ld.global.L2::cache_hint.u32 %r1, [%rd2], %rd1;", before=COUNTER
    ),
    "an address as a guard": entry("mov.b64 %rd1, calls;", "@%rd1 bra $L1;", "$L1:", before=COUNTER),
    "a global that inline assembly declares in a body": entry(
        "// begin inline asm",
        "{ .global .align 4 .u32 hidden; atom.global.add.u32 %r2, [hidden], 1; }",
        "// end inline asm",
    ),
    "inline assembly that leaves the body": entry(
        "ret; }",
        ".global .align 4 .u32 hidden;",
        ".func (.reg .u32 r) bump () { atom.global.add.u32 r, [hidden], 1; ret; }",
        ".visible .entry other() {",
    ),
    "gives the address back": entry(
        "call.uni (%rd1), f, ();",
        "st.global.u32 [%rd1], 1;",
        before=COUNTER + "\n.func (.reg .b64 %where) f ()\n{\n    mov.u64 %where, calls;\n    ret;\n}",
    ),
    "prefetches": entry("prefetch.global.L2 [calls];", before=COUNTER),
    "the second of two variables": entry("st.global.u32 [b], 1;", before=".global .align 4 .u32 a = 1, b;"),
    "a surface": entry("sust.b.1d.b32.trap [where, {%r1}], {%r2};", before=".global .surfref where;"),
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
    "performance counter": entry("mov.u64 %rd1, %pm0_64;"),
    "graph": entry("mov.u64 %rd1, %current_graph_exec;"),
    "a store by a generic address of constants": entry(
        "mov.u64 %rd1, c;", "cvta.const.u64 %rd2, %rd1;", "st.u32 [%rd2], 7;", before=CONSTANT
    ),
    "a volatile store by a computed address of constants": entry(
        "mov.u64 %rd1, c;",
        "add.s64 %rd2, %rd1, 4;",
        "cvta.const.u64 %rd3, %rd2;",
        "st.volatile.u32 [%rd3], 7;",
        before=CONSTANT,
    ),
    "an atomic by a generic address of constants": entry(
        "cvta.const.u64 %rd2, c;", "atom.add.u32 %r1, [%rd2], 1;", before=CONSTANT
    ),
    "a generic address of constants that lies in a global": entry(
        "ld.global.u64 %rd1, [where];",
        "st.u32 [%rd1], 1;",
        before=CONSTANT + "\n.global .align 8 .u64 where = generic(c);",
    ),
    "a clock beside a barrier, and no sleep": entry(
        "mbarrier.test_wait.shared.b64 %p1, [%r1], %rd1;", "mov.u64 %rd2, %globaltimer;"
    ),
    "another clock beside a wait and a sleep": entry(*WAIT, "mov.u64 %rd2, %clock64;"),
    "printf beside an assertion": entry(before=".extern .func vprintf (.param .b64 a);\n.extern .func __assertfail;"),
    "the text of an assertion is written": entry(*FAILS, "st.global.u8 [%rd1], 1;", before=TEXT),
    "comment that does not end": HEAD + "/* trap;",
    "body that does not end": HEAD + ".visible .entry k() { ret;",
}

UNSURE = {
    "trap": (entry("@%p1 bra $L1;", "trap;", "$L1:"), "trap"),
    "assertion": (entry(*FAILS, before=TEXT), "trap"),
    "profiler": (entry("pmevent 1;"), "trap"),
    "back-off of a barrier": (entry(*WAIT), "clock"),
    "reserved shared memory": (entry("mov.u32 %r1, %reserved_smem_offset_begin;"), "placement"),
}

ALLOWED = {
    "constants that a generic address reads": entry(
        "mov.u64 %rd1, c;", "cvta.const.u64 %rd2, %rd1;", "ld.u32 %r1, [%rd2+4];", before=CONSTANT
    ),
    "constants with an address that is compared": entry(
        "mov.u64 %rd1, c;", "setp.lt.u64 %p1, %rd1, %rd2;", "ld.const.u32 %r1, [%rd1];", before=CONSTANT
    ),
    "nothing special": entry("st.global.u32 [%rd1], 7;"),
    "words in comments": entry("// trap; %clock", "/* %gridid", "st.global.u32 [calls], 1; */"),
    "words in strings": entry('.pragma "trap; %clock";'),
    "table that is read": entry(
        "mov.u64 %rd1, table;", "add.s64 %rd2, %rd1, %rd3;", "ld.global.u8 %r1, [%rd2];", before=TABLE
    ),
    "table beside a store elsewhere": entry(
        "mov.u64 %rd1, table;", "ld.global.u32 %r1, [%rd1];", "st.global.u32 [%rd5], %r1;", before=TABLE
    ),
    "table by other ways of adding": entry(
        "mov.u64 %rd1, table;",
        "cvta.global.u64 %rd2, %rd1;",
        "shl.b64 %rd5, %rd6, 2;",
        "add.s64 %rd3, %rd2, %rd5;",
        "mad.wide.s32 %rd4, %r1, 4, %rd3;",
        "sub.s64 %rd7, %rd4, 4;",
        "@%p1 mov.b64 %rd8, %rd7;",
        "ld.global.nc.v2.u32 {%r2, %r3}, [%rd8+16];",
        "ld.volatile.global.u8 %r4, [table+3];",
        "setp.eq.s32 %p2, %r2, %r3;",
        "@%p2 st.global.u32 [%rd0], %r4;",
        before=TABLE,
    ),
    "one of two tables": entry(
        "mov.u64 %rd1, table;",
        "mov.u64 %rd2, other;",
        "selp.b64 %rd3, %rd1, %rd2, %p1;",
        "ld.global.u8 %r1, [%rd3];",
        before=TABLE + "\n.global .align 1 .b8 other[1] = {1};",
    ),
    "shared array named by its address": entry(
        "mov.u32 %r1, tile;",
        "shl.b32 %r2, %r3, 2;",
        "or.b32 %r4, %r1, %r2;",
        "st.shared.u32 [%r4], 1;",
        before=TABLE + "\n.visible .shared .align 4 .b8 tile[64];",
    ),
    "a debugger's words on a global": entry(before=COUNTER) + ".section .debug_info\n{\n.b64 calls\n}\n",
    "a table in numbers of each form": entry(
        "ld.global.f32 %f1, [t];",
        before=".global .align 4 .f32 t[40] = {" + "-1.5, 0f3F800000, 2, -3, " * 9 + "-1, 0f3F800000, 2, 3};",
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
    finding = screen(ptx, trap="reject")
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


@pytest.mark.parametrize(
    ("numbers", "count"), [("7, ", 200_000), ("-1,\n", 200_000), ("{1, 2}, ", 50_000), ("generic(other)+1, ", 50_000)]
)
def test_a_long_table_is_read_in_time(numbers: str, count: int) -> None:
    """Time grows with the length only."""
    table = ".global .align 8 .b64 t[300000] = {" + numbers * count + "0};\n.global .b8 other[1] = {1};"
    began = time.process_time()
    finding = screen(entry("mov.u64 %rd1, t;", "ld.global.u8 %r1, [%rd1];", before=table))
    assert time.process_time() - began < 10  # it was hours; below a second where nothing else runs
    assert (finding is None) == ("other" not in numbers)


@pytest.mark.parametrize(
    "body",
    ["add.s64 %rd1, %rd2, 4; " * 15_000, "add.s32 %r1" + ", %r1" * 60_000 + ";", "/* " * 200_000, "-1" * 200_000],
)
def test_long_bodies_are_read_in_time(body: str) -> None:
    began = time.process_time()
    screen(entry(body, before=COUNTER))
    assert time.process_time() - began < 10


def test_addresses_are_followed_in_time_against_the_order_of_the_text() -> None:
    chain = (f"add.s64 %a{number}, %a{number + 1}, 4;" for number in range(10_000))
    began = time.process_time()
    assert screen(entry(*chain, "mov.u64 %a10000, calls;", "st.u32 [%a0], 1;", before=COUNTER)) is not None
    assert time.process_time() - began < 10


def test_numbers_in_a_row_do_not_shift_lines() -> None:
    finding = screen(entry("mov.u32 %r1, %clock;", before=".global .b8 t[40] = {" + "1,\n" * 39 + "1};"))
    assert finding is not None
    assert "line 51" in finding.detail


def test_too_much_ptx_is_refused_unread() -> None:
    finding = screen(HEAD + "\n" * MAX_PTX_BYTES)
    assert finding is not None
    assert finding.reason is Reason.SOURCE_REFUSED
    assert "16 MiB" in finding.detail


def test_a_guard_is_kept_apart() -> None:
    found = [s for s in statements(entry("@!%p1 bra $L1;", "@%p2 ret;", "$L1:")) if s.guard]
    assert [(s.guard, s.opcode) for s in found] == [("%p1", "bra"), ("%p2", "ret")]


REVIEWED = {
    "cache_policy": (
        "createpolicy.fractional.L2::evict_last.b64 %rd1, 1.0;",
        "ld.global.L2::cache_hint.f32 %f1, [%rd1], %rd2;",
        "ld.global.L2::evict_last.f32 %f1, [%rd1];",
        "prefetch.global.L2::evict_last [%rd1];",
        "applypriority.global.L2::evict_normal [%rd1], 128;",
    ),
    "placement": ("mov.u32 %r1, %smid;", "mov.u32 %r1, %nsmid;", "mov.u32 %r1, %warpid;"),
    "dependent_launch": ("griddepcontrol.wait;", "griddepcontrol.launch_dependents;"),
}


@pytest.mark.parametrize(("topic", "line"), [(topic, line) for topic, lines in REVIEWED.items() for line in lines])
def test_a_person_is_asked(topic: str, line: str) -> None:
    finding = screen(entry(line))
    assert finding is not None
    assert finding.reason is Reason.NEEDS_REVIEW
    assert finding.detail.startswith(f"{topic}: line 12: ")
    assert screen(entry(line), **{topic: "allow"}) is None
    refused = screen(entry(line), **{topic: "reject"})
    assert refused is not None
    assert refused.reason is Reason.FORBIDDEN_INSTRUCTION


@pytest.mark.parametrize(
    "line",
    [
        "ld.global.L1::no_allocate.f32 %f1, [%rd1];",
        "ld.global.L2::128B.f32 %f1, [%rd1];",
        "cp.async.cg.shared.global.L2::128B [%r1], [%rd1], 16;",
        "st.global.L1::evict_first.f32 [%rd1], %f1;",
        "prefetch.global.L2 [%rd1];",
    ],
)
def test_routine_uses_of_the_cache_pass(line: str) -> None:
    assert screen(entry(line)) is None


def test_each_topic_is_told_once_and_a_refusal_alone() -> None:
    both = ("mov.u32 %r1, %smid;", "mov.u32 %r1, %nsmid;", "griddepcontrol.wait;")
    seen = screened(entry(*both), Screening())
    assert [finding.detail.partition(":")[0] for finding in seen] == ["placement", "dependent_launch"]
    (refused,) = screened(entry(*both, "mov.u32 %r1, %clock;"), Screening())
    assert refused.reason is Reason.FORBIDDEN_INSTRUCTION


def test_launches_may_depend_on_each_other_where_there_are_several() -> None:
    assert screened(entry("griddepcontrol.wait;"), Screening(), several_launches=True) == ()


@pytest.mark.parametrize("policy", [{name: "allow"} for name in ("clock", "trap", "module_state", "unknown_function")])
def test_what_the_policy_allows_passes(policy: dict[str, str]) -> None:
    (topic,) = policy
    lines = {"clock": "mov.u32 %r1, %clock;", "trap": "trap;", "module_state": "st.global.u32 [calls], %r1;"}
    function = ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);"
    ptx = entry(lines.get(topic, "ret;"), before=COUNTER + (function if topic == "unknown_function" else ""))
    assert screen(ptx) is not None
    assert screen(ptx, **policy) is None


def test_ptx_that_cannot_be_read_is_refused_whatever_the_policy() -> None:
    allow_all = Screening(**dict.fromkeys(Screening.__struct_fields__, "allow"))
    (finding,) = screened(HEAD + "/* trap;", allow_all)
    assert finding.reason is Reason.FORBIDDEN_INSTRUCTION


@pytest.mark.parametrize(("ptx", "topic"), UNSURE.values(), ids=UNSURE)
def test_what_the_screen_is_unsure_of_asks_a_person(ptx: str, topic: str) -> None:
    finding = screen(ptx)
    assert finding is not None
    assert finding.reason is Reason.NEEDS_REVIEW
    assert finding.detail.startswith(f"{topic}: line ")
    assert screen(ptx, **{topic: "allow"}) is None
