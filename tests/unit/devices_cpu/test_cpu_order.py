"""Order in global memory, by thread: what passes data between blocks or within one rightly, and what only seems to."""

from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np
import pytest
from ptx_runner import Argument, array, call_of, out, output, run, scratch
from ptx_sources import ptx_of

from kerneltrial.devices.cpu import races_global
from kerneltrial.devices.cpu.device import open_cpu
from kerneltrial.devices.device import Binary, Conditions, Poison, Run
from kerneltrial.inputs.calls import Call
from kerneltrial.records.reason import Reason

Orders = Literal["forward", "backward", "shuffled"]
X = np.arange(1, 257, dtype=np.float32)
PRELUDE = """__device__ unsigned counter, other, meeting;
__device__ volatile int flag;
__device__ int flags[8];
__device__ float own[256];
__device__ int release_add(unsigned* at) {
    int old; asm volatile("atom.release.gpu.global.add.u32 %0, [%1], 1;" : "=r"(old) : "l"(at) : "memory");
    return old; }
__device__ int relaxed(int* at) {
    int v; asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(at) : "memory"); return v; }
"""
INDEX = "int i = threadIdx.x, b = blockIdx.x; "


@dataclass(frozen=True)
class Twins:
    """Bodies of `kern(const float* x, float* y, float* s)`: `bad` is a race that `words` tell of, `honest` is none."""

    bad: str
    honest: str
    words: str = ""
    blocks: int = 4
    threads: int = 64
    cooperative: bool = False


def _last_block(store: str, ticket: str, load: str = "y[i] = s[i] + s[(i + 70) & 255];") -> str:
    """Blocks store, one thread of each takes a ticket, and the last block sums."""
    return (
        INDEX + "__shared__ bool last; if (i == 0) last = false; __syncthreads(); "
        f"{store} {ticket} __syncthreads(); if (last) {{ {load} }}"
    )


_STORE = "s[b * 64 + i] = x[b * 64 + i];"
_FENCE = "__threadfence();"
_BAR = "__syncthreads();"


def _take(thread: int, before: str = "") -> str:
    return f"if (i == {thread}) {{ {before} last = atomicAdd(&counter, 1u) == gridDim.x - 1; }}"


_RELEASES = "if (i == 0) last = release_add(&counter) == gridDim.x - 1;"

_ADDED = "y[i] = own[i] + own[i + 64] + own[i + 128] + own[i + 192];"

BETWEEN_BLOCKS = {
    "no barrier before the ticket": Twins(
        _last_block(_STORE + _FENCE, _take(0)), _last_block(_STORE + _FENCE + _BAR, _take(0)),
        "block (1,0,0), thread 6: nothing"
    ),
    "a fence of one thread, no barrier before it": Twins(
        _last_block(_STORE, _take(0, _FENCE)), _last_block(_STORE + _BAR, _take(0, _FENCE))
    ),
    "a ticket for the block alone": Twins(
        _last_block(_STORE + _FENCE + _BAR, "if (i == 0) last = atomicAdd_block(&counter, 1u) == gridDim.x - 1;"),
        _last_block(_STORE + _FENCE + _BAR, "if (i == 0) last = atomicAdd_system(&counter, 1u) == gridDim.x - 1;"),
        "global atomic of 4 bytes",
    ),
    "the fence before the store": Twins(
        _last_block(_FENCE + _STORE + _BAR, _take(0)), _last_block(_STORE + _BAR, _take(0, _FENCE))
    ),
    "the fence behind the ticket": Twins(
        _last_block(_STORE + _BAR, _take(0) + _FENCE), _last_block(_STORE + _FENCE + _BAR, _take(0) + _FENCE)
    ),
    "a fence for the block alone": Twins(
        _last_block(_STORE + "__threadfence_block();" + _BAR, _take(0)),
        _last_block(_STORE + "__threadfence_block();" + _BAR, _take(0, _FENCE)),
    ),
    "one thread fences, another takes the ticket": Twins(
        _last_block(_STORE + _BAR + "if (i == 33) __threadfence();", _take(0)),
        _last_block(_STORE + _BAR + "if (i == 33) __threadfence();" + _BAR, _take(0)),
    ),
    "a lane fences for its warp, another takes the ticket": Twins(
        _last_block("if (i < 32) s[b * 64 + i] = x[i]; __syncwarp(); if (i == 1) __threadfence();", _take(0),
                    "y[i] = s[((b + 1) & 3) * 64 + (i & 31)];"),
        _last_block("if (i < 32) s[b * 64 + i] = x[i]; __syncwarp(); if (i == 1) __threadfence(); __syncwarp();",
                    _take(0), "y[i] = s[((b + 1) & 3) * 64 + (i & 31)];"),
    ),
    "a warp's ticket for two": Twins(
        _last_block(_STORE + _FENCE + "__syncwarp();", _take(0)),
        _last_block("if (i < 32) { s[b * 64 + i] = x[i]; s[b * 64 + 32 + i] = 1.f; } __threadfence(); __syncwarp();",
                    _take(0)),
    ),
    "a released ticket without a barrier": Twins(
        _last_block(_STORE, _RELEASES), _last_block(_STORE + _BAR, _RELEASES)
    ),
    "two tickets, and the data of the other": Twins(
        INDEX + """bool ready = false;
        if (i == 0) { s[b] = x[b]; __threadfence(); ready = atomicAdd(&counter, 1u) == gridDim.x - 1; }
        if (i == 32) { s[64 + b] = x[b]; __threadfence(); atomicAdd(&other, 1u); }
        if (i == 0 && ready) for (int k = 0; k < 4; ++k) y[k] = s[k] + s[64 + k];""",
        INDEX + """__shared__ bool ready[2]; if (i < 2) ready[i] = false; __syncthreads();
        if (i == 0) { s[b] = x[b]; __threadfence(); ready[0] = atomicAdd(&counter, 1u) == gridDim.x - 1; }
        if (i == 32) { s[64 + b] = x[b]; __threadfence(); ready[1] = atomicAdd(&other, 1u) == gridDim.x - 1; }
        __syncthreads(); if (i == 0 && ready[0] && ready[1]) for (int k = 0; k < 4; ++k) y[k] = s[k] + s[64 + k];""",
    ),
    "the ticket before the data": Twins(
        INDEX + """if (i == 0) { unsigned t = atomicAdd(&other, 1u); s[b] = x[b]; __threadfence();
        atomicAdd(&counter, 1u); if (t == gridDim.x - 1) for (int k = 0; k < 4; ++k) y[k] = s[k]; }""".replace(
            "atomicAdd(&counter, 1u)", "*(volatile unsigned*)&counter = b"),
        INDEX + """if (i == 0) { atomicAdd(&other, 1u); s[b] = x[b]; __threadfence();
        unsigned t = atomicAdd(&counter, 1u); if (t == gridDim.x - 1) for (int k = 0; k < 4; ++k) y[k] = s[k]; }""",
    ),
    "one sees the flag, another reads": Twins(
        INDEX + """if (b == 0) { s[i] = x[i]; __threadfence(); __syncthreads(); if (i == 0) flag = 1; }
        else if (b == 1) { if (i == 0) while (!flag) { } y[i] = s[i]; }""",
        INDEX + """if (b == 0) { s[i] = x[i]; __threadfence(); __syncthreads(); if (i == 0) flag = 1; }
        else if (b == 1) { if (i == 0) while (!flag) { } __syncthreads(); y[i] = s[i]; }""",
        "block (0,0,0), thread 1",
    ),
    "the ticket's word is passed on by a shuffle, but to one warp": Twins(
        INDEX + """s[b * 64 + i] = x[b * 64 + i]; __threadfence(); __syncthreads(); unsigned t = 0;
        if (i == 0) t = atomicAdd(&counter, 1u); t = __shfl_sync(~0u, t, 0);
        if (b == 3) y[i] = s[i];""",
        INDEX + """s[b * 64 + i] = x[b * 64 + i]; __threadfence(); __syncthreads(); unsigned t = 0;
        if (i == 0) t = atomicAdd(&counter, 1u); t = __shfl_sync(~0u, t, 0);
        if (i < 32 && t == gridDim.x - 1) y[i] = s[i];""",
    ),
    "a relaxed flag without a fence": Twins(
        INDEX + """if (b == 0) { s[i] = x[i]; __syncthreads(); if (i == 0) asm volatile(
        "st.relaxed.gpu.global.s32 [%0], 1;" :: "l"(flags) : "memory"); }
        else if (b == 1) { if (i == 0) while (!relaxed(flags)) { } __syncthreads(); y[i] = s[i]; }""",
        INDEX + """if (b == 0) { s[i] = x[i]; __syncthreads(); if (i == 0) asm volatile(
        "st.release.gpu.global.s32 [%0], 1;" :: "l"(flags) : "memory"); }
        else if (b == 1) { if (i == 0) while (!relaxed(flags)) { } __syncthreads(); y[i] = s[i]; }""",
    ),
    "a sum by atomics, and a ticket that does not wait for it": Twins(
        _last_block("atomicAdd(&own[b * 64 + i], x[b * 64 + i]);" + _BAR, _take(0), _ADDED),
        _last_block("atomicAdd(&own[b * 64 + i], x[b * 64 + i]);" + _FENCE + _BAR, _take(0), _ADDED),
    ),
    "look-back from flag to flag": Twins(
        INDEX + """if (i == 0) { if (b) while (!relaxed(flags + b - 1)) { } s[b] = x[b] + (b ? s[b - 1] : 0.f);
        *(volatile int*)(flags + b) = 1; y[b] = s[0]; }""",
        INDEX + """if (i == 0) { if (b) while (!relaxed(flags + b - 1)) { } s[b] = x[b] + (b ? s[b - 1] : 0.f);
        __threadfence(); *(volatile int*)(flags + b) = 1; y[b] = s[0]; }""",
    ),
}  # fmt: skip

WITHIN_A_BLOCK = {
    "no barrier between": Twins(
        INDEX + "s[i] = x[i]; y[i] = s[63 - i];", INDEX + "s[i] = x[i]; __syncthreads(); y[i] = s[63 - i];",
        "of its block: nothing orders them", blocks=1,
    ),
    "one warp, no barrier of it": Twins(
        INDEX + "s[i] = x[i]; y[i] = s[i ^ 1];", INDEX + "s[i] = x[i]; __syncwarp(); y[i] = s[i ^ 1];", blocks=1,
        threads=32,
    ),
    "a warp's barrier for two": Twins(
        INDEX + "s[i] = x[i]; __syncwarp(); y[i] = s[63 - i];", INDEX + "s[i] = x[i]; __syncwarp(); y[i] = s[i ^ 31];",
        blocks=1,
    ),
    "a shuffle for a barrier": Twins(
        INDEX + "s[i] = x[i]; float v = __shfl_sync(~0u, x[i], 3); y[i] = v + s[i ^ 1];",
        INDEX + "s[i] = x[i]; float v = __shfl_sync(~0u, x[i], 3); __syncwarp(); y[i] = v + s[i ^ 1];", blocks=1,
    ),
    "a write after others read": Twins(
        INDEX + "s[i] = x[i]; __syncthreads(); float v = s[63 - i]; s[i] = v; y[i] = v;",
        INDEX + "s[i] = x[i]; __syncthreads(); float v = s[63 - i]; __syncthreads(); s[i] = v; y[i] = v;", blocks=1,
    ),
    "two write one place": Twins(
        INDEX + "y[i] = 0.f; __syncthreads(); y[i & 7] = i;", INDEX + "y[i] = 0.f; __syncthreads(); y[i & 7] = 1.f;",
        blocks=1,
    ),
    "a count by atomics, read too soon": Twins(
        INDEX + "if (i < 8) s[i] = 0.f; __syncthreads(); atomicAdd(s + (i & 7), 1.f); y[i] = s[i & 7];",
        INDEX + "if (i < 8) s[i] = 0.f; __syncthreads(); atomicAdd(s + (i & 7), 1.f); __syncthreads();"
        "y[i] = s[i & 7];",
        blocks=1,
    ),
    "a count that is not set in time": Twins(
        INDEX + "if (i < 8) s[i] = 0.f; atomicAdd(s + (i & 7), 1.f); __syncthreads(); y[i] = s[i & 7];",
        INDEX + "if (i < 8) s[i] = 0.f; __syncthreads(); atomicAdd(s + (i & 7), 1.f); __syncthreads();"
        "y[i] = s[i & 7];",
        blocks=1,
    ),
    "the last thread of a block": Twins(
        INDEX + "s[i] = x[i]; if (atomicAdd(&counter, 1u) == 63) for (int k = 0; k < 64; ++k) y[k] = s[k];",
        INDEX + "s[i] = x[i]; __threadfence_block(); if (atomicAdd(&counter, 1u) == 63) for (int k = 0; k < 64; ++k)"
        " y[k] = s[k];",
        blocks=1,
    ),
    "in each of several blocks": Twins(
        INDEX + "int at = b * 64; s[at + i] = x[i]; y[at + i] = s[at + 63 - i];",
        INDEX + "int at = b * 64; s[at + i] = x[i]; __syncthreads(); y[at + i] = s[at + 63 - i];",
    ),
    "a vector over two threads' words": Twins(
        INDEX + "s[i] = x[i]; if (i < 32) { float2 v = ((float2*)s)[i]; y[i] = v.x + v.y; }",
        INDEX + "((float2*)s)[i] = ((const float2*)x)[i]; float2 v = ((float2*)s)[i]; y[i] = v.x + v.y;", blocks=1,
    ),
}  # fmt: skip

_MEETS = """#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__device__ void meet() { cg::this_grid().sync(); }"""
_BY_HAND = """__syncthreads(); if (i == 0) {{ {fence} atomicAdd(&meeting, 1u);
while (*(volatile unsigned*)&meeting < gridDim.x) {{ }} {fence} }} {behind}"""
TOGETHER = {
    "the grid's barrier": Twins(
        INDEX + "s[b * 64 + i] = x[b * 64 + i]; __syncthreads(); y[b * 64 + i] = s[(b * 64 + i + 64) & 255]; meet();",
        INDEX + "s[b * 64 + i] = x[b * 64 + i]; meet(); y[b * 64 + i] = s[(b * 64 + i + 64) & 255]; meet();",
        cooperative=True,
    ),
    "a meeting by hand, nobody waits behind it": Twins(
        INDEX + "s[b * 64 + i] = x[b * 64 + i];" + _BY_HAND.format(fence=_FENCE, behind="")
        + "y[b * 64 + i] = s[(b * 64 + i + 64) & 255];",
        INDEX + "s[b * 64 + i] = x[b * 64 + i];" + _BY_HAND.format(fence=_FENCE, behind=_BAR)
        + "y[b * 64 + i] = s[(b * 64 + i + 64) & 255];",
        cooperative=True,
    ),
    "a meeting by hand without a fence": Twins(
        INDEX + "s[b * 64 + i] = x[b * 64 + i];" + _BY_HAND.format(fence="", behind=_BAR)
        + "y[b * 64 + i] = s[(b * 64 + i + 64) & 255];",
        INDEX + "s[b * 64 + i] = x[b * 64 + i];" + _BY_HAND.format(fence=_FENCE, behind=_BAR)
        + "y[b * 64 + i] = s[(b * 64 + i + 64) & 255];",
        cooperative=True,
    ),
    "a semaphore in turns": Twins(
        INDEX + """if (i == 0) while (relaxed(flags) != b) { } __syncthreads(); s[i] = b ? s[i] + x[i] : x[i];
        if (i == 0) { __threadfence(); *(volatile int*)flags = b + 1; } y[b * 64 + i] = 1.f;""",
        INDEX + """if (i == 0) while (relaxed(flags) != b) { } __syncthreads(); s[i] = b ? s[i] + x[i] : x[i];
        __syncthreads(); if (i == 0) { __threadfence(); *(volatile int*)flags = b + 1; } y[b * 64 + i] = 1.f;""",
        cooperative=True,
    ),
}  # fmt: skip
ALL = {**BETWEEN_BLOCKS, **WITHIN_A_BLOCK, **TOGETHER}


def _call(twins: Twins) -> Call:
    arguments: list[Argument | int | float] = [
        array("x", X),
        Argument("y", "output", "float32", (256,), "zeroed"),
        scratch("s", "float32", 256, initial="zeroed"),
    ]
    call = call_of(arguments, (twins.blocks,), (twins.threads,))
    (launch,) = call.launches
    return msgspec.structs.replace(call, launches=(msgspec.structs.replace(launch, cooperative=twins.cooperative),))


def _run(twins: Twins, body: str, order: Orders = "forward", poison: Poison = "nan") -> Run:
    prelude = (_MEETS if "meet()" in body else "") + PRELUDE
    source = f'{prelude}extern "C" __global__ void kern(const float* x, float* y, float* s) {{ {body} }}'
    loaded = open_cpu().load(Binary(ptx=ptx_of(source), cubin=b""))
    conditions = Conditions(poison=poison, checks="all", order=order, seed=3, budget_instructions=5_000_000)
    return loaded.run(_call(twins), {"x": X}, conditions)


def _skip_what_waits(twins: Twins, body: str, order: Orders) -> None:
    if "while (" in body and not twins.cooperative and order != "forward":
        pytest.skip("a block that waits for an earlier one is judged forward alone")


@pytest.mark.parametrize("order", ["forward", "backward", "shuffled"])
@pytest.mark.parametrize("name", ALL)
def test_a_race_is_found(name: str, order: Orders) -> None:
    twins = ALL[name]
    _skip_what_waits(twins, twins.bad, order)
    done = _run(twins, twins.bad, order)
    assert [finding.reason for finding in done.findings] == [Reason.GLOBAL_RACE], done.findings
    if order == "forward":
        assert twins.words in done.findings[0].detail


@pytest.mark.parametrize("order", ["forward", "backward", "shuffled"])
@pytest.mark.parametrize("name", ALL)
def test_its_honest_twin_passes(name: str, order: Orders) -> None:
    twins = ALL[name]
    _skip_what_waits(twins, twins.honest, order)
    done = _run(twins, twins.honest, order)
    assert done.completed, done.findings
    assert not done.findings
    assert not done.unchecked


@pytest.mark.parametrize("name", ALL)
def test_its_honest_twin_stands_values_seen_late(name: str) -> None:
    twins = ALL[name]
    soon, late = (_run(twins, twins.honest, poison=poison) for poison in ("nan", "huge"))
    assert late.completed, late.findings
    assert output(late, "y", "float32").tolist() == output(soon, "y", "float32").tolist()


def test_many_flags_and_many_fences() -> None:
    """More places than are told apart, and more fences than a log holds, count as ordered."""
    body = """int i = threadIdx.x, b = blockIdx.x;
    for (int k = 0; k < 200; ++k) { s[i] = x[i]; __threadfence(); __syncwarp(); }
    for (int k = 0; k < 200; ++k) *(volatile int*)(more + (b * 64 + i) * 200 + k) = k; y[i] = s[i];"""
    source = f"__device__ int more[12800]; {body}"
    source = (
        f'__device__ int more[12800]; extern "C" __global__ void kern(const float* x, float* y, float* s) {{ {body} }}'
    )
    done = run(ptx_of(source), _call(Twins("", "", blocks=1)), {"x": X}, checks="all", budget=50_000_000)
    assert done.completed, done.findings


@pytest.mark.parametrize(("limit", "value"), [("MAX_BYTES", 1000), ("MAX_RECORDS_BYTES", 1000), ("MAX_BLOCKS", 3)])
def test_what_is_too_large_is_unchecked(monkeypatch: pytest.MonkeyPatch, limit: str, value: int) -> None:
    monkeypatch.setattr(races_global, limit, value)
    done = _run(BETWEEN_BLOCKS["no barrier before the ticket"], BETWEEN_BLOCKS["no barrier before the ticket"].bad)
    assert done.completed
    assert ["races in global memory" in finding.detail for finding in done.unchecked] == [True]


def test_the_sums_of_the_last_block_are_right() -> None:
    twins = BETWEEN_BLOCKS["no barrier before the ticket"]
    source = f'{PRELUDE}extern "C" __global__ void kern(const float* x, float* y, float* s) {{ {twins.honest} }}'
    arguments: list[Argument | int | float] = [array("x", X), out("y", "float32", 64), scratch("s", "float32", 256)]
    done = run(ptx_of(source), call_of(arguments, (4,), (64,)), {"x": X}, checks="all")
    assert (output(done, "y", "float32") == X[:64] + X[(np.arange(64) + 70) & 255]).all()
