"""PTX is written by others: nothing in it may reach the host, crash it, or end in an exception of the device."""

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from ptx_runner import HEADER, array, call_of, out, output, run
from ptx_sources import SOFTMAX, TILED, ptx_of

from kerneltrial.devices.cpu.device import open_cpu
from kerneltrial.devices.cpu.flow import analyse
from kerneltrial.devices.cpu.inline import flatten
from kerneltrial.devices.cpu.parser import parse
from kerneltrial.devices.device import Binary, Refused
from kerneltrial.records.reason import Reason, ReasonClass

ENTRY = ".visible .entry kern(.param .u64 px, .param .u64 py)"


def _kernel(body: str, before: str = "") -> str:
    return f"""{HEADER}{before}
{ENTRY} {{
  .reg .b64 %d<8>; .reg .b32 %r<8>; .reg .pred %p<4>;
  ld.param.u64 %d0, [px]; ld.param.u64 %d1, [py];
  {body}
  ret;
}}"""


def _run(ptx: str, entry: str = "kern", budget: int = 100_000):
    x = np.arange(8, dtype=np.uint64)
    call = call_of([array("x", x), out("y", "uint64", 8)], (1,), (1,), entry=entry)
    return run(ptx, call, {"x": x}, checks="bounds", budget=budget)


@pytest.mark.parametrize(
    "address",
    ["0", "1", "-8", "0x7FFFFFFFFFF8", "-4096", "0x7E0000000000", "0x7E0000000FF8", "0x010000000000", "0x0100000FFFF8",
     "0x020000000000", "0x400000", "0x8000000000000000", "0x7DFFFFFFFFF8", "0xFFFFFFFFFFFFFFF8"],
)  # fmt: skip
@pytest.mark.parametrize(
    "access",
    [
        *(
            f"ld{space}.u64 %d3, [%d2]; st.global.u64 [%d1], %d3;"
            for space in ("", ".global", ".shared", ".local", ".const")
        ),
        *(f"st{space}.u64 [%d2], %d3;" for space in ("", ".global", ".shared", ".local")),
        "red.add.u64 [%d2], %d3;",
    ],
)
def test_no_address_outside_the_buffers_is_reached(address: str, access: str) -> None:
    done = _run(_kernel(f"mov.u64 %d2, {address}; mov.u64 %d3, 7; {access}"))
    assert not done.completed
    assert done.findings[0].reason is Reason.OUT_OF_BOUNDS
    assert done.guards_intact


def test_the_arena_itself_is_not_reached_by_its_host_address() -> None:
    """The device's own memory, by addresses that a host would use."""
    memory = np.arange(64, dtype=np.uint64)
    done = _run(_kernel(f"mov.u64 %d2, {memory.ctypes.data // 8 * 8}; ld.u64 %d3, [%d2]; st.global.u64 [%d1], %d3;"))
    assert done.findings[0].reason is Reason.OUT_OF_BOUNDS


@pytest.mark.parametrize("name", ["thread", "fault", "kt_shared", "llvm_memcpy", "run_grid", "exit", "system", "blk"])
def test_names_of_the_device_and_the_host_are_only_names(name: str) -> None:
    """Identifiers never enter the IR, so that none can collide with what is there."""
    variable = f".global .align 8 .u64 {name};"
    done = _run(_kernel(f"mov.u64 %d3, {name}; mov.u64 %d3, 5; st.global.u64 [%d1], %d3;", variable))
    assert done.completed, done.findings
    assert output(done, "y", "uint64")[0] == 5
    done = _run(_kernel("mov.u64 %d3, 6; st.global.u64 [%d1], %d3;").replace("kern(", f"{name}("), entry=name)
    assert output(done, "y", "uint64")[0] == 6


_MALFORMED = {
    "nothing": "",
    "no entry": HEADER,
    "garbage": "\x7fELF\x02\x01",
    "quote in a name": _kernel('mov.u64 %d2, a"b;'),
    "backslash": _kernel("mov.u64 %d2, \\x41;"),
    "newline in a string": HEADER + '.file 1 "a\nb"\n',
    "unclosed body": HEADER + ENTRY + "{ .reg .b32 %r<2>;",
    "unclosed comment": HEADER + "/* " + ENTRY,
    "recursion": HEADER + ".func f() { call f, (); ret; }\n" + ENTRY + "{ call f, (); ret; }",
    "unknown call": _kernel("call.uni system, ();"),
    "call with other parameters": HEADER + ".func f(.param .b64 a) { ret; }\n" + ENTRY + "{ call f, (); ret; }",
    "indirect call": _kernel("call %d0, ();"),
    "branch to nowhere": _kernel("bra nowhere;"),
    "label twice": _kernel("here: mov.u32 %r0, 1; here: mov.u32 %r0, 2;"),
    "branch into the air": _kernel("bra %r0;"),
    "register of no bank": _kernel("mov.u32 %r8, 1;"),
    "register with a zero": _kernel("mov.u32 %r01, 1;"),
    "guard that is no predicate": _kernel("@%r0 mov.u32 %r1, 1;"),
    "wide constant": _kernel("mov.u64 %d2, 0x1FFFFFFFFFFFFFFFF;"),
    "huge constant": _kernel("mov.u64 %d2, 1" + "0" * 5000 + ";"),
    "octal": _kernel("mov.u32 %r0, 0x;"),
    "two semicolons in an operand": _kernel("mov.u32 %r0, ;"),
    "huge shared": _kernel("mov.u32 %r0, 1;", ".shared .align 4 .b8 s[4000000000];"),
    "huge local": _kernel(".local .align 4 .b8 s[60000000]; mov.u32 %r0, 1;"),
    "huge global": _kernel("mov.u32 %r0, 1;", ".global .align 4 .b8 s[99999999999999999999];"),
    "many dimensions": _kernel("mov.u32 %r0, 1;", ".global .b32 s" + "[65536]" * 40 + ";"),
    "negative array": _kernel("mov.u32 %r0, 1;", ".global .b32 s[-4];"),
    "extern global": _kernel("mov.u32 %r0, 1;", ".extern .global .b32 s;"),
    "too many initial values": _kernel("mov.u32 %r0, 1;", ".global .b32 s[2] = {1, 2, 3};"),
    "nested braces": _kernel("mov.b64 %d2, " + "{" * 500 + "%r0" + "}" * 500 + ";"),
    "deep scopes": _kernel("{" * 5000 + "}" * 5000),
    "address arithmetic": _kernel("ld.global.u64 %d2, [%d0+%d1];"),
    "far offset": _kernel("ld.global.u64 %d2, [%d0+99999999999999999];"),
    "32-bit addresses": ".version 8.0\n.target sm_80\n.address_size 32\n",
    "two entries of a name": HEADER + (ENTRY + "{ ret; }\n") * 2,
    "vector of vectors": _kernel("ld.global.v2.u32 {{%r0}, %r1}, [%d0];"),
    "results of nothing": _kernel("call (%r0), printf, (%r1);"),
    "brx": _kernel("brx.idx %r0, ts;"),
    "cluster": _kernel("mov.u32 %r0, %clusterid.x;"),
    "wgmma": _kernel("wgmma.fence.sync.aligned;"),
    "barrier with a count of no registers": _kernel("bar.sync 1, %p0;"),
    "opcode with other operands": _kernel("add.s32 %r0, %r1;"),
    "opcode with a label": _kernel("add.s32 %r0, %r1, somewhere;"),
    "predicate as a number": _kernel("add.s32 %r0, %r1, %p0;"),
}  # fmt: skip


@pytest.mark.parametrize("name", _MALFORMED)
def test_malformed_text_is_refused_in_one_line(name: str) -> None:
    try:
        done = _run(_MALFORMED[name])
    except Refused as refused:
        finding = refused.finding
    else:
        finding = done.findings[0]
        assert finding.reason is Reason.ENTRY_MISSING
        return
    assert finding.reason.reason_class is ReasonClass.UNCHECKED
    assert "not checked on cpu" in finding.detail
    assert finding.detail.isascii()
    assert "\n" not in finding.detail
    assert len(finding.detail) < 500


def test_calls_that_multiply_are_stopped() -> None:
    """Each function calls the next one eight times: 8^12 copies."""
    functions = "".join(
        f".func f{n}() {{ .reg .b32 %r<9>; add.s32 %r0, %r1, %r2; {f'call f{n - 1}, (); ' * 8 if n else ''} ret; }}\n"
        for n in range(12)
    )
    with pytest.raises(Refused, match="more than"):
        _run(HEADER + functions + ENTRY + "{ call f11, (); ret; }")


def test_text_that_is_too_large_is_refused() -> None:
    with pytest.raises(Refused, match="characters"):
        open_cpu().load(Binary(ptx="//" * (5 << 20), cubin=b""))


def test_a_huge_bank_of_registers_costs_nothing() -> None:
    use = "mov.u32 %big199999999, 3; cvt.u64.u32 %d3, %big199999999; st.global.u64 [%d1], %d3;"
    done = _run(_kernel(f".reg .b32 %big<2000000000>; {use}"))
    assert output(done, "y", "uint64")[0] == 3


@pytest.mark.parametrize(
    "loop",
    ["here: bra here;", "here: bra.uni here;", "a: bra b; b: bra a;", "here: bar.sync 0; bra here;",
     "here: add.s32 %r0, %r0, 1; setp.ne.s32 %p0, %r0, -1; @%p0 bra here;", "here: bar.warp.sync 1; bra here;"],
)  # fmt: skip
def test_loops_end_with_the_budget(loop: str) -> None:
    done = _run(_kernel(loop))
    assert [f.reason for f in done.findings] == [Reason.ENDLESS_LOOP]


def test_a_grid_beyond_the_budget_ends() -> None:
    x = np.arange(8, dtype=np.uint64)
    call = call_of([array("x", x), out("y", "uint64", 8)], (2**31 - 1, 65535, 65535), (1024,))
    done = run(_kernel("mov.u32 %r0, 1;"), call, {"x": x}, budget=10_000_000)
    assert [f.reason for f in done.findings] == [Reason.ENDLESS_LOOP]


@pytest.mark.parametrize(
    ("grid", "block", "shared"),
    [
        ((0,), (1,), 0),
        ((1,), (0,), 0),
        ((1,), (1025,), 0),
        ((1,), (1, 1, 65), 0),
        ((1, 65536), (1,), 0),
        ((1,), (32, 33), 0),
        ((1,), (1,), -1),
        ((1,), (1,), 200_000),
    ],
)
def test_launches_that_no_gpu_accepts(grid: tuple[int, ...], block: tuple[int, ...], shared: int) -> None:
    x = np.arange(8, dtype=np.uint64)
    call = call_of([array("x", x), out("y", "uint64", 8)], grid, block, shared)
    done = run(_kernel("mov.u32 %r0, 1;", ".extern .shared .align 4 .b8 dynamic[];"), call, {"x": x})
    assert [f.reason for f in done.findings] == [Reason.LAUNCH_FAILED]


def test_parameters_that_differ() -> None:
    x = np.arange(8, dtype=np.uint64)
    done = run(_kernel("mov.u32 %r0, 1;"), call_of([array("x", x), 3], (1,), (1,)), {"x": x})
    assert [f.reason for f in done.findings] == [Reason.PARAMETERS_DIFFER]


def test_division_by_zero_is_no_trap_of_the_host() -> None:
    body = """ld.global.u64 %d2, [%d0]; cvt.u32.u64 %r0, %d2; div.s32 %r1, 5, %r0; rem.u32 %r2, 5,
    %r0; mov.u32 %r3, -2147483648;
      div.s32 %r4, %r3, -1; rem.s32 %r5, %r3, -1; div.u64 %d3, %d1, %d2; st.global.u64 [%d1], %d3;"""
    assert _run(_kernel(body)).completed


def _mutated(draw: random.Random, text: str, edits: int = 4) -> str:
    """A few random edits: bytes, tokens dropped, doubled or swapped, numbers changed."""
    words = text.split(" ")
    for _ in range(draw.randint(1, edits)):
        place = draw.randrange(len(words))
        match draw.randrange(6):
            case 0:
                words[place] = ""
            case 1:
                words.insert(place, words[draw.randrange(len(words))])
            case 2:
                other = draw.randrange(len(words))
                words[place], words[other] = words[other], words[place]
            case 3:
                words[place] = (
                    "".join(draw.choice('%r[]{}(),;.0x19abc$_-+@!|<>"\\\n\0') for _ in range(3)) + words[place]
                )
            case 4:
                words[place] = words[place].replace("32", draw.choice(["64", "16", "8"]), 1)
            case 5:
                words[place] = str(draw.choice([0, -1, 2**31, 2**63, 10**30, 7]))
    return " ".join(words)


@pytest.mark.parametrize("source", [TILED, SOFTMAX])
def test_mutated_text_is_read_or_refused(source: str) -> None:
    text = ptx_of(source)
    draw = random.Random(len(text))
    read = 0
    for _ in range(400):
        try:
            module = parse(_mutated(draw, text))
            for function in module.functions.values():
                analyse(flatten(module, function))
            read += 1
        except Refused:
            pass
    assert 20 < read < 390


_RUN_MUTANTS = """
import random, sys
sys.path.insert(0, {folder!r})
import numpy as np
from ptx_runner import array, call_of, out, run
from ptx_sources import TILED, ptx_of
from test_cpu_hostile import _mutated
from kerneltrial.devices.device import Refused
text, draw, ran = ptx_of(TILED), random.Random(11), 0
a, b = np.ones((20, 18), np.float32), np.ones((18, 17), np.float32)
call = call_of([array("A", a), array("B", b), out("C", "float32", 20, 17), 20, 17, 18], (2, 2), (16, 16))
for number in range(150):
    try:
        done = run(_mutated(draw, text, 1), call, {{"A": a, "B": b}}, checks=("all", "bounds")[number % 2],
        budget=3_000_000)
    except Refused:
        continue
    assert done.guards_intact and done.inputs_intact, done.findings
    ran += 1
print("ran", ran)
"""


def test_mutants_do_not_take_the_host_down() -> None:
    """In a process of its own, so that a crash is seen as one."""
    script = _RUN_MUTANTS.format(folder=str(Path(__file__).parent))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout.split()[1]) > 10
