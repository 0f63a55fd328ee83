"""What a strong read that nothing orders gets: once the value before, as a card may give it, and never an older one."""

import msgspec
import pytest
from ptx_runner import call_of, out, output, run, scratch
from ptx_sources import ptx_of

from kerneltrial.devices.cpu.device import open_cpu
from kerneltrial.devices.device import Binary, Conditions

PRELUDE = """__device__ unsigned long long pair; __device__ unsigned counter;
__device__ unsigned st(unsigned* at, unsigned v) {
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" :: "l"(at), "r"(v) : "memory"); return v; }
__device__ unsigned ld(unsigned* at) {
    unsigned v; asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(at) : "memory"); return v; }
extern "C" __global__ void kern(unsigned* y, unsigned* s) { int i = threadIdx.x, b = blockIdx.x; """
WRITES = "if (b == 0 && i == 0) { st(s, 1); st(s, 2); } "
CASES = {
    "first stale, then new": (WRITES + "if (b == 1 && i == 0) { y[0] = ld(s); y[1] = ld(s); }", [1, 2]),
    "other threads of the block see what one saw": (
        WRITES + "if (b == 1) { if (i == 0) { ld(s); y[0] = ld(s); } __syncthreads(); if (i == 32) y[1] = ld(s); }",
        [2, 2],
    ),
    "two blocks": (WRITES + "if (b == 1 && i == 0) y[0] = ld(s); if (b == 2 && i == 0) y[1] = ld(s);", [1, 1]),
    "atomics see the last": (WRITES + "if (b == 1 && i < 2) y[i] = atomicAdd(s, 0u);", [2, 2]),
    "ordered by a fence and a ticket": (
        "if (b == 0 && i == 0) { st(s, 1); st(s, 2); __threadfence(); atomicAdd(&counter, 1u); } "
        "if (b == 1 && i == 0) { y[1] = atomicAdd(&counter, 1u); y[0] = ld(s); }",
        [2, 1],
    ),
    "what a third block saw and handed on": (
        WRITES + "if (b == 1 && i == 0) { ld(s); ld(s); __threadfence(); atomicAdd(&counter, 1u); } "
        "if (b == 2 && i == 0) { y[1] = atomicAdd(&counter, 1u); y[0] = ld(s); }",
        [2, 1],
    ),
    "own writes": ("if (i == 0) { st(s, b); if (b == 1) { y[0] = ld(s); y[1] = 7; } }", [1, 7]),
    "a pair in one word is never torn": (
        "volatile unsigned long long* p = &pair; if (b == 0 && i == 0) { *p = 5; *p = 6ull << 32 | 7; } "
        "if (b == 1 && i == 0) { unsigned long long v = *p; y[0] = v; y[1] = v >> 32; }",
        [5, 0],
    ),
}


def _run(body: str, checks: str, poison: str, cooperative: bool = False) -> list[int]:
    call = call_of([out("y", "uint32", 2), scratch("s", "uint32", 4, initial="zeroed")], (3,), (64,))
    (launch,) = call.launches
    call = msgspec.structs.replace(call, launches=(msgspec.structs.replace(launch, cooperative=cooperative),))
    done = run(ptx_of(PRELUDE + body + "}"), call, {}, checks=checks, poison=poison)
    assert done.completed, done.findings
    return output(done, "y", "uint32").tolist()


@pytest.mark.parametrize("poison", ["huge", "plain"])
@pytest.mark.parametrize("name", CASES)
def test_a_read_that_nothing_orders_gets_the_value_before(name: str, poison: str) -> None:
    body, expected = CASES[name]
    assert _run(body, "all", poison) == expected


def test_the_read_and_the_write_are_named() -> None:
    """Lines are those of the body, which begins in the prelude's last line."""
    body = "if (b == 0 && i == 0) {\nst(s + 1, 1); }\nif (b == 1 && i == 0) {\ny[0] = ld(s + 1); y[1] = 3; }"
    text = PRELUDE + body + "}"
    call = call_of([out("y", "uint32", 2), scratch("s", "uint32", 4, initial="zeroed")], (2,), (64,))
    done = run(ptx_of(text), call, {}, poison="huge")
    (words,) = done.older
    where = {line: number for number, line in enumerate(text.splitlines(), 1)}
    read, wrote = (next(n for line, n in where.items() if mark in line) for mark in ("ld.relaxed", "st.relaxed"))
    assert words.startswith(f"global read of 4 bytes at byte 4 of buffer s (16 bytes), source line {read}, got")
    assert f"the write of another block in source line {wrote}:" in words
    assert output(done, "y", "uint32").tolist() == [0, 3]
    assert run(ptx_of(text), call, {}, poison="nan").older == ()
    newest = open_cpu().load(Binary(ptx=ptx_of(text), cubin=b"")).run(call, {}, Conditions(poison="huge", newest=True))
    assert newest.older == ()
    assert output(newest, "y", "uint32").tolist() == [1, 3]


TOGETHER = """
    if (i > 0) return;
    if (b == 0) while (ld(s + 1) < 2) { }
    for (int k = 1; b == 0 && k < 9; ++k) { st(s, k); while (ld(s + 2) < 2 * k) { } }
    if (b == 0) return;
    atomicAdd(s + 1, 1u);
    unsigned seen = 0, steps = 0, late = 0, back = 0;
    while (seen < 8) {
        unsigned now = ld(s);
        back += now < seen;
        if (now > seen) { late += ld(s) != now; ++steps; atomicAdd(s + 2, 1u); }
        seen = now;
    }
    y[b - 1] = back * 100 + late * 10 + steps; """


@pytest.mark.parametrize("poison", ["nan", "huge"])
def test_blocks_of_a_cooperative_launch_never_see_it_go_back(poison: str) -> None:
    assert _run(TOGETHER, "all", poison, cooperative=True) == [8, 8]


def test_blocks_of_a_cooperative_launch_see_data_late() -> None:
    body = (
        "if (i > 0) return; if (b == 0) { st(s, 5); st(s + 1, 1); } "
        "if (b == 1) { while (!ld(s + 1)) { } y[0] = ld(s); y[1] = ld(s); }"
    )
    assert _run(body, "all", "nan", cooperative=True) == [5, 5]
    assert _run(body, "all", "huge", cooperative=True) == [0, 5]


def test_the_first_poison_and_bounds_alone_give_the_last_value() -> None:
    body, _ = CASES["first stale, then new"]
    assert _run(body, "all", "nan") == [2, 2]
    assert _run(body, "bounds", "huge") == [2, 2]
    assert _run(CASES["a pair in one word is never torn"][0], "all", "nan") == [7, 6]
