"""What a kernel makes of sizes is what the `cpu` device computes, and its conditions are found behind each other."""

import ast
import time
from collections.abc import Iterator, Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kerneltrial.devices.cpu.device import open_cpu
from kerneltrial.devices.device import Binary, Conditions
from kerneltrial.inputs.calls import Buffer, Call, Pointer, ResolvedLaunch, Scalar
from kerneltrial.inputs.spans import Span, span_of, truth
from kerneltrial.judge.blocks import Block, blocks_of, dominators, order
from kerneltrial.judge.mixed import mixed
from kerneltrial.judge.ptx import Statement, functions, read
from kerneltrial.judge.sizes import Sizes
from kerneltrial.judge.unfollowed import made_of_sizes, unfollowed
from kerneltrial.judge.ways import ways

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
ENTRY = HEAD + ".visible .entry k(.param .u64 k_0, .param .u32 k_1, .param .u32 k_2) {\n"
DOMAIN = {"m": Span(1, 5000, 1), "n": Span(4, 4000, 4)}
NAMED = {"k_1": ast.Name("m"), "k_2": ast.Name("n"), "%ntid.x": ast.Constant(64)}
NUMBERS = ("0", "1", "2", "3", "7", "16", "31", "255", "256", "-1", "-2", "-16", "1000", "4096", "-1431655765", "0xFF0")
DIVIDED = ("div.u32", "rem.u32", "div.s32", "rem.s32")
TWO = ("add.s32", "sub.s32", "mul.lo.s32", "mul.hi.u32", "mul.hi.s32", "and.b32", "or.b32", "xor.b32", "min.s32",
       "max.s32", "min.u32", "max.u32", *DIVIDED)  # fmt: skip
PLACES = ("shl.b32", "shr.s32", "shr.u32")
ONE = ("mov.u32", "neg.s32", "not.b32", "abs.s32", "clz.b32", "popc.b32", "brev.b32", "bfind.u32", "bfind.shiftamt.u32")
COMPARED = [f"setp.{op}.{kind}" for op in ("eq", "ne", "lt", "le", "gt", "ge") for kind in ("s32", "u32")]


def body(text: str) -> list[Statement]:
    ((_, found),) = list(functions(read(text)))
    return found


@st.composite
def programs(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """Lines of straight code, and the 32-bit registers that they write."""
    lines = ["ld.param.u32 %r0, [k_1];", "ld.param.u32 %r1, [k_2];", "mov.u32 %r2, %ntid.x;"]
    registers = ["%r0", "%r1", "%r2"]
    for _ in range(draw(st.integers(1, 9))):
        one, other = draw(st.sampled_from(registers)), draw(st.sampled_from((*registers, *NUMBERS)))
        new = f"%r{len(registers)}"
        kind = draw(st.integers(0, 6))
        if kind < 3:
            name = draw(st.sampled_from(TWO))
            if name in DIVIDED:
                other = draw(st.sampled_from(("1", "3", "16", "1000")))
            lines.append(f"{name} {new}, {one}, {other};")
        elif kind == 3:
            by = draw(st.sampled_from((*registers, *map(str, range(32)))))
            lines.append(f"{draw(st.sampled_from(PLACES))} {new}, {one}, {by};")
        elif kind == 4:
            lines.append(f"{draw(st.sampled_from(ONE))} {new}, {one};")
        elif kind == 5:
            more = draw(st.sampled_from((*registers, *NUMBERS)))
            lines.append(f"mad.lo.s32 {new}, {one}, {other}, {more};")
        else:
            predicate = f"%p{len(registers)}"
            lines.append(f"{draw(st.sampled_from(COMPARED))} {predicate}, {one}, {other};")
            lines.append(f"selp.b32 {new}, {one}, {draw(st.sampled_from(registers))}, {predicate};")
        registers.append(new)
    return lines, registers


def computed(lines: Sequence[str], registers: Sequence[str], shapes: Sequence[tuple[int, int]]) -> Iterator[list[int]]:
    """What the device computes for each register, shape by shape."""
    stores = [f"st.global.u32 [%rd0+{4 * n}], {r};" for n, r in enumerate(registers)]
    declared = ".reg .b32 %r<64>; .reg .pred %p<64>; .reg .b64 %rd<2>;\nld.param.u64 %rd0, [k_0];\n"
    loaded = open_cpu().load(Binary(ptx=ENTRY + declared + "\n".join((*lines, *stores)) + "\nret; }\n", cubin=b""))
    size = len(registers)
    buffer = Buffer(name="y", role="output", dtype="int32", shape=(size,), initial="poisoned")
    for m, n in shapes:
        parameters = (Pointer(buffer="y"), Scalar(bytes=4, bits=m), Scalar(bytes=4, bits=n))
        launch = ResolvedLaunch(
            entry="k", grid=(1, 1, 1), block=(64, 1, 1), cluster=(1, 1, 1), cooperative=False, shared_bytes=0,
            parameters=parameters,
        )  # fmt: skip
        run = loaded.run(Call(buffers=(buffer,), launches=(launch,)), {}, Conditions(poison="nan", checks="bounds"))
        assert run.completed, run.findings
        yield np.frombuffer(run.outputs["y"], np.int32).tolist()


@settings(max_examples=60, deadline=None)
@given(program=programs())
@example(  # a product beyond what spans hold, and a part of it
    program=(
        ["ld.param.u32 %r0, [k_1];", "add.s32 %r1, %r0, -2;", "mul.hi.u32 %r2, %r1, -1431655765;"],
        ["%r0", "%r1", "%r2"],
    )
)
def test_an_expression_is_what_the_device_computes(program: tuple[list[str], list[str]]) -> None:
    lines, registers = program
    shapes = [(1, 4), (7, 12), (5000, 4000), (1000, 16), (31, 256)]
    found = body(ENTRY + "\n".join(lines) + "\nret; }\n")
    sizes = Sizes(found, NAMED, DOMAIN)
    for (m, n), values in zip(shapes, computed(lines, registers, shapes), strict=True):
        cell = {"m": Span(m, m, 0), "n": Span(n, n, 0)}
        for register, value in zip(registers, values, strict=True):
            node = sizes.of(register)
            if node is not None:
                at = span_of(node, cell)
                assert at.low == at.high == value, (register, ast.unparse(node), m, n)
                whole = span_of(node, DOMAIN)
                assert whole.low <= value <= whole.high
                assert -(2**31) <= value < 2**31


@pytest.mark.parametrize(
    ("lines", "shape", "value"),
    [
        ("mul.wide.s32 %rd1, %r1, %r2; shr.u64 %rd2, %rd1, 3; cvt.u32.u64 %r9, %rd2;", (5000, 4000), 2_500_000),
        ("cvt.u64.u32 %rd1, %r1; mad.lo.s64 %rd2, %rd1, 5, -7; cvt.u32.u64 %r9, %rd2;", (3, 4), 8),
        ("mul.wide.u32 %rd1, %r1, -1431655765; shr.u64 %rd2, %rd1, 33; cvt.u32.u64 %r9, %rd2;", (100, 4), 33),
        ("setp.gt.s32 %p1, %r1, 9; setp.lt.or.s32 %p2, %r2, 9, %p1; selp.b32 %r9, 5, 6, %p2;", (9, 12), 6),
        ("setp.gt.s32 %p1, %r1, 9; not.pred %p2, %p1; selp.b32 %r9, 5, 6, %p2;", (9, 12), 5),
        ("mul.lo.s32 %r3, %r1, %r1; mul.lo.s32 %r9, %r3, %r3;", (1000, 12), -727379968),
        # numba counts the steps of a range so: signs of 64 bits that are always zero
        (
            "cvt.s64.s32 %rd1, %r1; shr.s64 %rd2, %rd1, 63; shr.u64 %rd3, %rd2, 60; add.s64 %rd4, %rd1, %rd3; "
            "shr.s64 %rd5, %rd4, 4; cvt.u32.u64 %r9, %rd5;",
            (100, 4),
            6,
        ),
    ],
)
def test_wide_products_and_joined_predicates(lines: str, shape: tuple[int, int], value: int) -> None:
    text = "ld.param.u32 %r1, [k_1]; ld.param.u32 %r2, [k_2]; " + lines
    node = Sizes(body(ENTRY + text + " ret; }\n"), NAMED, DOMAIN).of("%r9")
    assert node is not None
    at = span_of(node, {"m": Span(shape[0], shape[0], 0), "n": Span(shape[1], shape[1], 0)})
    assert at.low == at.high == value


def test_a_chain_of_squares_costs_no_more_than_a_short_one() -> None:
    squares = "".join(f"mul.lo.s32 %r{n + 1}, %r{n}, %r{n};" for n in range(1, 300))
    sizes = Sizes(body(ENTRY + f"ld.param.u32 %r1, [k_1]; {squares} ret; }}\n"), NAMED, DOMAIN)
    assert sizes.of("%r300") is None
    assert sizes.of("%r2") is not None


@pytest.mark.parametrize(
    "line",
    [
        "add.s32 %r5;",
        "add.s32 %r5, %r1;",
        "add.s32 %r5, %r1, 010;",  # octal
        "add.sat.s32 %r5, %r1, 1;",
        "shl.b32 %r5, %r1, 2, 3;",
        "mov.u32 %r5;",
        "mad.lo.s32 %r5, %r1, 2;",
        "selp.b32 %r5, 1, 2;",
        "cvt.s32 %r5, %r1;",
        "not.b32 %r5, %r1, %r1;",
        "setp.lt.s32 %r5, %r1;",
        "setp.s32 %r5, %r1, 1;",
        "setp.lt.s32 %r5, %r1, 1, %p1;",
        "and.pred %r5, %p1;",
        "mov.pred %r5, 0x;",
        "ld.param.u32 %r5;",
        "cvt %r5, %r1;",
        "cvt.f32 %r5;",
        "add..f32 %r5, %r5, %r1;",
        "shl.b32 %r5, %r5;",
        "rcp.f32 %r5;",
        "vote;",
    ],
)
def test_what_no_assembler_takes_has_no_expression_and_ends_nothing(line: str) -> None:
    """Such a line may stand in inline assembly, which the compiler passes on as it is."""
    text = f"ld.param.u32 %r1, [k_1]; setp.lt.s32 %p1, %r1, 9; {line} @%r5 bra OUT; st.param.b32 [x], %r5; OUT: ret; }}"
    found = body(ENTRY + text)
    sizes, made = Sizes(found, NAMED, DOMAIN), made_of_sizes(found, NAMED)
    assert sizes.of("%r5") is None
    list(ways(found, sizes, made))
    list(unfollowed(found, made, sizes))
    list(mixed(found, set(NAMED), made))


def test_a_deep_expression_has_none() -> None:
    """Walks are recursive: a kernel could make one of thousands of levels, and end the judge with it."""
    deep = "".join(f"xor.b32 %r{n + 1}, %r{n}, {n};" for n in range(1, 110))
    sizes = Sizes(body(ENTRY + f"ld.param.u32 %r1, [k_1]; {deep} ret; }}\n"), NAMED, DOMAIN)
    assert sizes.of("%r30") is not None
    assert sizes.of("%r109") is None


def test_few_of_many_conditions_stand_before_the_last() -> None:
    """Else a kernel with thousands, one behind the other, would take the square of that."""
    many = "".join(f"setp.eq.s32 %p{n}, %r1, {n + 2}; @%p{n} ret;" for n in range(300))
    found = body(ENTRY + f"ld.param.u32 %r1, [k_1]; {many} ret; }}\n")
    told = list(ways(found, Sizes(found, NAMED, DOMAIN), made_of_sizes(found, NAMED)))
    assert len(told) == 600
    assert max(len(way.wants) for way in told) == 25


def conditions(text: str) -> set[str]:
    """The ways through some code, in words."""
    found = body(ENTRY + "ld.param.u32 %r1, [k_1]; ld.param.u32 %r2, [k_2];" + text + " ret; }\n")
    sizes = Sizes(found, NAMED, DOMAIN)
    told = ways(found, sizes, made_of_sizes(found, NAMED))
    return {" & ".join(("" if holds else "not ") + ast.unparse(node) for node, holds in way.wants) for way in told}


def test_a_condition_stands_behind_those_that_lead_to_it() -> None:
    nested = """
        setp.ne.s32 %p1, %r1, 301; @%p1 bra OUT;
        setp.ne.s32 %p2, %r2, 76; @%p2 bra OUT;
        add.s32 %r3, %r1, 1;
        OUT:"""
    assert conditions(nested) == {"m != 301", "not m != 301", "not m != 301 & n != 76", "not m != 301 & not n != 76"}


def test_dominators_are_those_that_sets_say() -> None:
    """Of random graphs: a block is dominated by what all of the ways to it have in common."""
    for seed in range(300):
        draw = Random(seed)
        blocks = [Block([]) for _ in range(draw.randint(1, 12))]
        for place, block in enumerate(blocks):
            block.following = sorted({draw.randrange(len(blocks)) for _ in range(draw.randint(0, 3))})
            for target in block.following:
                blocks[target].before.append(place)
        reached = order(blocks)
        over = {place: set(reached) if place else {0} for place in reached}
        for _ in reached:
            for place in reached[1:]:
                known = [over[before] for before in blocks[place].before if before in over]
                over[place] = {place}.union(set.intersection(*known))
        near = {place: max(over[place] - {place}, key=lambda one: len(over[one])) for place in reached[1:]}
        assert dominators(blocks) == {0: 0, **near}


@pytest.mark.parametrize(
    "code",
    [
        "".join(f"setp.eq.s32 %p{n}, %r1, {n}; @%p{n} bra OUT; " for n in range(6000)) + "OUT: exit;",
        "".join(f"L{n}: brx.idx %r1, T; " for n in range(6000)),
    ],
)
def test_thousands_of_branches_have_so_many_edges(code: str) -> None:
    """To one place, or through tables that lead everywhere: squares of thousands would hold the judge up."""
    blocks = blocks_of(body(ENTRY + "ld.param.u32 %r1, [k_1];" + code + " ret; }\n"))
    assert sum(len(block.following) for block in blocks) < 20_000
    begun = time.process_time()
    assert len(dominators(blocks)) > 6000
    assert time.process_time() - begun < 10


def test_choices_are_tried_so_often_and_no_more() -> None:
    choice = "mov.u32 %a, %r1; @%q mov.u32 %a, %r2; mov.u32 %b, %r1; @%q mov.u32 %b, %r2;"
    sizes = Sizes(body(f"{ENTRY} ld.param.u32 %r1, [k_1]; {choice} add.s32 %c, %a, %b; ret; }}\n"), NAMED, DOMAIN)
    tried = [len(list(sizes.chosen("%c"))) for _ in range(3000)]
    assert tried[0] == 4
    assert tried[-1] == 0


def test_a_register_that_thousands_write_is_no_choice_and_is_not_gone_through_each_time() -> None:
    many = "mov.u32 %a, %r1;" * 20_000 + "add.s32 %b, %a, 1;"
    sizes = Sizes(body(f"{ENTRY} ld.param.u32 %r1, [k_1]; {many} ret; }}\n"), NAMED, DOMAIN)
    begun = time.process_time()
    assert [list(sizes.chosen("%b")) for _ in range(2000)] == [[]] * 2000
    assert time.process_time() - begun < 10


def test_behind_a_guarded_return_its_guard_is_false() -> None:
    text = "setp.lt.s32 %p1, %r1, 5; @%p1 ret; setp.eq.s32 %p2, %r2, 8; @!%p2 bra OUT; add.s32 %r3, %r1, 1; OUT:"
    assert conditions(text) >= {"not m < 5 & n == 8", "not m < 5 & not n == 8"}


def test_each_value_that_a_branch_may_leave_is_followed() -> None:
    text = """
        mov.u32 %r5, 0; setp.ne.s32 %p1, %r1, 301; @%p1 bra NEXT;
        mov.u32 %r5, %r2;
        NEXT: setp.eq.s32 %p2, %r5, 44; @%p2 bra OUT; add.s32 %r3, %r1, 1; OUT:"""
    assert "not m != 301 & n == 44" in conditions(text)


def test_a_loop_has_no_expression_and_asks_for_nobody() -> None:
    text = """
        ld.param.u32 %r1, [k_1]; mov.u32 %r5, 0;
        AGAIN: add.s32 %r5, %r5, 16; setp.lt.s32 %p1, %r5, %r1; @%p1 bra AGAIN; ret; }"""
    found = body(ENTRY + text)
    sizes, made = Sizes(found, NAMED, DOMAIN), made_of_sizes(found, NAMED)
    assert "%r5" not in made
    assert made["%r1"] is True
    assert not list(unfollowed(found, made, sizes))
    assert not list(ways(found, sizes, made))


@pytest.mark.parametrize(
    ("text", "strange"),
    [
        ("cvt.rn.f32.s32 %f1, %r1; setp.eq.f32 %p1, %f1, 0f43000000;", True),
        ("popc.b32 %r5, %r1; setp.eq.s32 %p1, %r5, 1;", False),
        ("cvt.u64.u32 %rd1, %r1; mul.lo.s64 %rd2, %rd1, -7046029254386353131; popc.b64 %r5, %rd2;", True),
        ("mov.u32 %r6, %tid.x; add.s32 %r5, %r1, %r6; setp.eq.s32 %p1, %r5, 1;", False),
        ("setp.eq.s32 %p1, %r1, 1;", False),
        ("mov.u32 %r6, %ntid.x; popc.b32 %r5, %r6; setp.eq.s32 %p1, %r5, 1;", False),
        ("cvt.u64.u32 %rd1, %r1; mov.u64 %rd2, tab; add.s64 %rd3, %rd2, %rd1; ld.const.u8 %rs1, [%rd3];", True),
        ("mov.u64 %rd2, tab; add.s64 %rd3, %rd2, 8; ld.const.u8 %rs1, [%rd3];", False),
        ("ld.param.u64 %rd1, [k_0]; ld.global.u32 %r5, [%rd1]; setp.eq.s32 %p1, %r5, 7;", False),
        ("st.param.b32 [param0], %r1; call.uni f, (param0);", True),
        ("st.param.b32 [param0], 5; call.uni f, (param0);", False),
        ("call.uni (%r9), f, (%r1);", True),
        ("st.shared.u32 [buf], %r1;", True),
        ("st.shared.u32 [buf], 5;", False),
        ("mov.u32 %r6, %tid.x; add.s32 %r5, %r1, %r6; st.shared.u32 [buf], %r5;", False),
        ("mov.u64 %rd1, buf; cvt.u64.u32 %rd2, %r1; add.s64 %rd3, %rd1, %rd2; st.shared.u32 [%rd3], 5;", False),
        ("setp.eq.s32 %p1, %r1, 7; vote.sync.any.pred %p2, %p1, -1; @%p2 bra OUT; OUT:", True),
        ("shfl.sync.idx.b32 %r5, %r1, 0, 31, -1;", True),
        ("ld.param.u64 %rd1, [k_0]; atom.global.add.u32 %r5, [%rd1], %r1;", True),
        ("ld.param.u64 %rd1, [k_0]; atom.global.add.u32 %r5, [%rd1], 1;", False),
        ("clz.b32 %r5, %r1; shl.b32 %r6, 1, %r5; setp.lt.s32 %p1, %r6, 9;", False),
        ("ld.param.u64 %rd1, [k_0]; add.s32 %r6, %r1, -1; atom.global.inc.u32 %r5, [%rd1], %r6;", False),
        ("add.s32 %r6, %r1, -1; atom.shared.inc.u32 %r5, [buf], %r6;", True),
        ("mbarrier.arrive.expect_tx.shared.b64 _, [buf], %r1;", False),
        ("bar.red.popc.u32 %r5, 0, %p1; setp.eq.s32 %p1, %r1, 7;", True),
        ("mul.hi.u64 %rd5, %rd1, 77; ld.param.u64 %rd1, [k_1];", True),
        ("cvt.rn.f32.s32 %f1, %r1; rcp.rn.f32 %f2, %f1; mul.f32 %f3, %f2, 0f3F000000; sqrt.rn.f32 %f4, %f3;", False),
        (
            "cvt.rn.f32.s32 %f1, %r1; add.f32 %f2, %f1, 0fBF800000; mov.f32 %f3, 0f3F800000; max.f32 %f4, %f2, %f3;",
            False,
        ),
        ("cvt.rn.f32.s32 %f1, %r1; add.f32 %f2, %f1, 0fC3000000; add.f32 %f3, %f2, 0fC3000000;", True),
        ("cvt.rn.f32.s32 %f1, %r1; add.f32 %f2, %f1, 0f4E800000;", True),  # 2^30: what it leaves has steps
        ("cvt.rn.f32.s32 %f1, %r1; mul.f32 %f2, %f1, %f1; add.f32 %f3, %f2, 0fC3000000;", True),
        ("add.f32 %f1, %f1, 0fC3000000; cvt.rn.f32.s32 %f2, %r1; add.f32 %f3, %f2, %f1;", False),
        ("cvt.rn.f32.s32 %f1, %r1; mov.b32 %r5, %f1; xor.b32 %r6, %r5, 7; cvt.rn.f32.s32 %f2, %r6;", True),
        ("cvt.rn.f32.s32 %f1, %r1; ld.global.f32 %f3, [buf]; fma.rn.f32 %f2, %f3, %f1, 0f3F800000;", False),
        ("cvt.rn.f32.s32 %f1, %r1; mul.sat.f32 %f2, %f1, 0f3F800000;", True),
        ("cvt.rn.f32.s32 %f1, %r1; cvt.rzi.s32.f32 %r5, %f1;", True),
        ("mov.b32 %f1, %r1; ld.global.f32 %f3, [buf]; mul.f32 %f2, %f3, %f1;", True),
        ("cvt.rn.bf16x2.f32 %r5, %f1, %f2; cvt.rn.f32.s32 %f1, %r1; ex2.approx.f32 %f2, %f1;", True),
    ],
)
def test_what_is_made_of_sizes_and_not_followed_is_told(text: str, strange: bool) -> None:
    found = body(ENTRY + "ld.param.u32 %r1, [k_1];" + text + " ret; }\n")
    told = list(unfollowed(found, made_of_sizes(found, NAMED, {"tab"}), Sizes(found, NAMED, DOMAIN)))
    assert bool(told) is strange


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "add.s32 %r5, %r1, -7; shr.s32 %r6, %r5, 31;",
            {"(m + -7) // 2147483648 == 0", "(m + -7) // 2147483648 == -1"},
        ),
        ("and.b32 %r5, %r1, 1;", {"m % 2 == 0", "m % 2 == 1"}),
        ("and.b32 %r5, %r1, 3;", set()),
        ("add.s32 %r5, %r1, -7; cvt.rn.f32.s32 %f1, %r5;", {"m + -7 == 0"}),
        ("cvt.rn.f32.s32 %f1, %r1;", set()),
        ("cvt.rn.f32.s32 %f1, %r1; add.f32 %f2, %f1, 0fC3000000;", {"m < 128", "m == 128", "m > 128"}),
        ("cvt.rn.f32.s32 %f1, %r1; add.f32 %f2, 0fBF800000, %f1;", {"m == 1", "m > 1"}),
        ("cvt.rn.f32.s32 %f1, %r1; add.f32 %f2, %f1, 0f358637BD;", set()),  # 1e-6
        ("cvt.rn.f32.s32 %f1, %r1; min.f32 %f2, %f1, 0f42290000;", {"m < 43", "m > 42"}),  # 42.25
        (
            "cvt.rn.f64.s32 %fd1, %r1; add.f64 %fd2, %fd1, 0dC018000000000000; max.f64 %fd3, %fd2, 0d4000000000000000;",
            {"m < 6", "m == 6", "m > 6", "m < 8", "m == 8", "m > 8"},
        ),
        ("and.b32 %r5, %r1, 1024;", {"bit_and(m, 1024) == 0", "bit_and(m, 1024) == 1024"}),
        (
            "cvt.u64.u32 %rd1, %r1; cvt.u64.u32 %rd2, %r2; mul.lo.s64 %rd3, %rd1, 1844674407370951; "
            "mul.lo.s64 %rd4, %rd2, 2305843009213693; sub.s64 %rd5, %rd3, %rd4;",  # too many values for len()
            set(),
        ),
    ],
)
def test_a_number_of_few_values_is_a_choice_and_so_is_a_float_that_may_be_zero(text: str, told: set[str]) -> None:
    assert conditions(text) == told


def test_a_condition_that_one_of_several_parts_decides_is_asked_for_by_each() -> None:
    """Else a bound that every case meets would hide the size that stands beside it."""
    either = "setp.lt.s32 %p1, %r1, 5; setp.eq.s32 %p2, %r1, 301; or.pred %p3, %p1, %p2; @%p3 ret;"
    assert conditions(either) == {"m < 5 or m == 301", "not m < 5 or m == 301", "m < 5", "m == 301"}
    both = "setp.gt.s32 %p1, %r1, 5; setp.ne.s32 %p2, %r1, 301; and.pred %p3, %p1, %p2; not.pred %p4, %p3; @%p4 ret;"
    assert conditions(both) >= {"not m > 5", "not m != 301"}


def mixes(text: str, given: frozenset[str] = frozenset(NAMED) - {"%ntid.x"}) -> list[str]:
    found = body(ENTRY + "ld.param.u32 %r1, [k_1]; ld.param.u32 %r2, [k_2]; mov.u32 %r3, %ntid.x;" + text + " ret; }\n")
    return [one.does for one in mixed(found, given, made_of_sizes(found, given))]


LOOP = "setp.lt.s32 %p1, %r5, %r2; @%p1 bra AGAIN;"
COUNT = "mov.u32 %r6, 0; FIRST: add.s32 %r6, %r6, %r1; setp.lt.s32 %p2, %r6, %r2; @%p2 bra FIRST;"
MOVES = "mov.u32 %r7, %r6; mov.u32 %r8, %r7; mov.u32 %r5, %r8;"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("mov.u32 %r5, %r1; AGAIN: rem.s32 %r6, %r5, %r2; mov.u32 %r5, %r6;", "rem.s32"),
        ("mov.u32 %r5, %r1; AGAIN: mad.lo.s32 %r5, %r5, 3, 1;", "mad.lo.s32"),
        ("mov.u32 %r5, 1; AGAIN: mul.lo.s32 %r5, %r5, %r1;", "mul.lo.s32"),
        ("mov.u32 %r5, %r1; mov.u32 %r6, %r2; AGAIN: sub.s32 %r5, %r5, %r6; sub.s32 %r6, %r6, %r5;", "sub.s32"),
        ("mov.u32 %r5, %r1; mov.u32 %r6, 0; AGAIN: add.s32 %r5, %r5, %r6; selp.b32 %r6, %r5, 1, %p1;", ""),
        ("mov.u32 %r5, %r1; AGAIN: shr.u32 %r5, %r5, %r5;", "shr.u32"),
        ("mov.u32 %r5, 0; AGAIN: add.s32 %r5, %r5, 16;", ""),
        ("mov.u32 %r5, 0; AGAIN: add.s32 %r5, %r5, %r1;", ""),
        ("mov.u32 %r5, %r1; AGAIN: shr.u32 %r5, %r5, 1;", ""),
        ("mov.u32 %r5, 1; AGAIN: mul.lo.s32 %r5, %r5, 5;", ""),
        ("mov.u32 %r5, %r3; AGAIN: mul.lo.s32 %r5, %r5, 5;", ""),
        ("mov.u32 %r5, %r1; AGAIN: ld.global.u32 %r6, [buf]; mul.lo.s32 %r5, %r5, %r6;", ""),
        (f"ld.global.u32 %r6, [buf]; {MOVES} AGAIN: mul.lo.s32 %r5, %r5, %r1;", ""),
        (f"{COUNT} {MOVES} AGAIN: mul.lo.s32 %r5, %r5, 5;", "mul.lo.s32"),
    ],
)
def test_what_a_loop_mixes_out_of_sizes_is_told_and_what_it_counts_is_not(text: str, told: str) -> None:
    found = mixes(text + LOOP)
    assert [one.rpartition(" ")[2] for one in found][:1] == ([told] if told else [])


def test_long_chains_and_many_loops_are_gone_through_in_proportion() -> None:
    """Processor time, with room for a slow machine: to look at each pair of 12,000 statements takes far more."""
    many = "".join(f"add.s32 %r{n + 1}, %r{n}, %r1; add.s32 %s{n}, %s{n}, %r1;" for n in range(5, 6005))
    begun = time.process_time()
    assert mixes(many + "mov.u32 %r5, %r6004;") == []
    assert time.process_time() - begun < 20


@settings(max_examples=200, deadline=None)
@given(
    left=st.tuples(st.integers(-20, 40), st.integers(0, 9), st.integers(1, 5)),
    right=st.tuples(st.integers(-20, 40), st.integers(0, 9), st.integers(1, 5)),
    name=st.sampled_from(["bit_and", "bit_or", "bit_xor", "choose"]),
)
def test_what_kernels_alone_have_lies_in_its_span(
    left: tuple[int, int, int], right: tuple[int, int, int], name: str
) -> None:
    cell = {key: Span(a, a + n * s, s if n else 0) for key, (a, n, s) in (("m", left), ("n", right))}
    values = {key: range(span.low, span.high + 1, span.step or 1) for key, span in cell.items()}
    which = [ast.Compare(ast.Name("m"), [ast.Lt()], [ast.Name("n")])] if name == "choose" else []
    node = ast.Call(ast.Name(name), [ast.Name("m"), ast.Name("n"), *which], [])
    apply = {
        "bit_and": lambda m, n: m & n,
        "bit_or": lambda m, n: m | n,
        "bit_xor": lambda m, n: m ^ n,
        "choose": lambda m, n: m if m < n else n,
    }[name]
    span, known = span_of(node, cell), truth(node, cell)
    for m in values["m"]:
        for n in values["n"]:
            value = apply(m, n)
            assert span.low <= value <= span.high
            assert value == span.low if not span.step else (value - span.low) % span.step == 0
            assert known is None or known is bool(value)
