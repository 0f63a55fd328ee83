"""A kernel that must be caught and an honest twin that must not, for every check; findings name line, thread, block."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from ptx_runner import Argument, array, call_of, out, output, run, scratch
from ptx_sources import ptx_of

from kerneltrial.records.reason import Reason

N = 64
X = np.arange(1, N + 1, dtype=np.float32)


@dataclass(frozen=True)
class Pair:
    """Bodies of `kern(const float* x, float* y, float* s, int n)`, 64 threads in one block unless said otherwise."""

    reason: Reason
    bad: str
    honest: str
    line: int = 0
    threads: int = 64
    blocks: int = 1
    shared_bytes: int = 0
    prelude: str = ""
    only_all: bool = False
    words: tuple[str, ...] = field(default=())


INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;\n"

# the last block to come adds what all left in scratch
LAST_BLOCK = """int i = threadIdx.x; __shared__ bool last;
if (i < 16) s[blockIdx.x * 16 + i] = x[i];
FENCE __syncthreads();
if (i == 0) last = atomicAdd(&counter, 1u) == gridDim.x - 1;
__syncthreads();
if (last) y[i] = s[i] + s[(i + 16) & 63];"""
FLAG = """int i = threadIdx.x;
if (blockIdx.x == 0) { s[i] = x[i]; FENCE __syncthreads(); if (i == 0) flag = 1; }
else { while (!flag) { } __syncthreads(); y[i] = s[63 - i]; }"""

PAIRS = {
    "write behind the end": Pair(
        Reason.OUT_OF_BOUNDS, INDEX + "if (i <= n) y[i] = 1.f;", INDEX + "if (i < n) y[i] = 1.f;", 3, threads=128,
        words=("global write of 4 bytes at byte 256 of buffer y (256 bytes)", "thread (64,0,0)", "block (0,0,0)"),
    ),
    "read before the start": Pair(
        Reason.OUT_OF_BOUNDS, INDEX + "y[i] = x[i - 1];", INDEX + "y[i] = i ? x[i - 1] : 0.f;", 3,
        words=("global read of 4 bytes at byte -4 of buffer x",),
    ),
    "read far away": Pair(
        Reason.OUT_OF_BOUNDS, INDEX + "y[i] = x[(long long)i << 33];", INDEX + "y[i] = x[i & 63];", 3,
        words=("far from every",),
    ),
    "null pointer": Pair(
        Reason.OUT_OF_BOUNDS, INDEX + "const float* p = (const float*)(size_t)(n - 64); y[i] = p[i];",
        INDEX + "y[i] = x[i];", 3,
    ),
    "vector past the end": Pair(
        Reason.OUT_OF_BOUNDS, INDEX + "if (i < 16) { float4 v = ((const float4*)x)[i + 1]; ((float4*)y)[i] = v; }",
        INDEX + "if (i < 16) { float4 v = ((const float4*)x)[i]; ((float4*)y)[i] = v; }", 3,
        words=("16 bytes at byte 256",),
    ),
    "misaligned vector": Pair(
        Reason.MISALIGNED,
        INDEX + "if (i < 15) { float2 v = *(const float2*)(x + 2 * i + 1); y[i] = v.x - v.y; } else y[i] = 1.f;",
        INDEX + "if (i < 15) { float2 v = *(const float2*)(x + 2 * i); y[i] = v.x - v.y; } else y[i] = 1.f;", 3,
    ),
    "write to an input": Pair(
        Reason.READ_ONLY_WRITTEN, INDEX + "((float*)x)[i] = 2.f; y[i] = 1.f;", INDEX + "y[i] = x[i];", 3,
        words=("read-only",),
    ),
    "atomic on an input": Pair(
        Reason.READ_ONLY_WRITTEN, INDEX + "atomicAdd((float*)x + i, 1.f); y[i] = 1.f;",
        INDEX + "y[i] = 0.f; atomicAdd(y + i, 1.f);", 3,
    ),
    "read of an output before it is written": Pair(
        Reason.UNINITIALISED_READ, INDEX + "y[i] += x[i];", INDEX + "y[i] = 0.f; y[i] += x[i];", 3, only_all=True,
    ),
    "read of scratch before it is written": Pair(
        Reason.UNINITIALISED_READ, INDEX + "y[i] = s[i];", INDEX + "s[i] = x[i]; y[i] = s[i];", 3, only_all=True,
        words=("buffer s",),
    ),
    "read of shared memory before it is written": Pair(
        Reason.UNINITIALISED_READ,
        INDEX + "__shared__ float t[64]; if (i < 32) t[i] = x[i]; __syncthreads(); y[i] = t[i];",
        INDEX + "__shared__ float t[64]; if (i < 32) t[i] = x[i]; __syncthreads(); y[i] = i < 32 ? t[i] : 0.f;", 3,
        only_all=True,
    ),
    "output not written": Pair(
        Reason.OUTPUT_NOT_WRITTEN, INDEX + "if (i != 5) y[i] = 1.f;", INDEX + "y[i] = 1.f;", only_all=True,
        words=("4 bytes of output y", "the first at byte 20"),
    ),
    "shared out of bounds": Pair(
        Reason.OUT_OF_BOUNDS, INDEX + "__shared__ float t[64]; t[i + 1] = x[i]; __syncthreads(); y[i] = t[i ? i : 1];",
        INDEX + "__shared__ float t[65]; t[i + 1] = x[i]; __syncthreads(); y[i] = t[i ? i : 1];", 3,
        words=("shared write",),
    ),
    "dynamic shared memory too small": Pair(
        Reason.OUT_OF_BOUNDS, INDEX + "d[i + 33] = x[i]; __syncthreads(); y[i] = d[i + 33];",
        INDEX + "d[i] = x[i]; __syncthreads(); y[i] = d[i];", shared_bytes=256, prelude="extern __shared__ float d[];",
    ),
    "generic pointer out of shared memory": Pair(
        Reason.OUT_OF_BOUNDS,
        INDEX + "__shared__ float t[64]; t[i] = x[i]; float* p = n > 1000 ? y : t; __syncthreads(); y[i] = p[i + 1];",
        INDEX + "__shared__ float t[64]; t[i] = x[i]; float* p = n > 1000 ? y : t; __syncthreads(); y[i] = p[i];",
    ),
    "local out of bounds": Pair(
        Reason.OUT_OF_BOUNDS, INDEX + "float b[8]; for (int k = 0; k < 8; k++) b[k] = x[k]; y[i] = b[i];",
        INDEX + "float b[8]; for (int k = 0; k < 8; k++) b[k] = x[k]; y[i] = b[i & 7];", 3, words=("local read",),
    ),
    "race between warps": Pair(
        Reason.SHARED_RACE, INDEX + "__shared__ float t[64]; t[i] = x[i]; y[i] = t[63 - i];",
        INDEX + "__shared__ float t[64]; t[i] = x[i]; __syncthreads(); y[i] = t[63 - i];", 3, only_all=True,
        words=("races with thread",),
    ),
    "race within a warp": Pair(
        Reason.SHARED_RACE, INDEX + "__shared__ float t[64]; t[i] = x[i]; y[i] = t[i ^ 1];",
        INDEX + "__shared__ float t[64]; t[i] = x[i]; __syncwarp(); y[i] = t[i ^ 1];", 3, only_all=True,
    ),
    "write after read": Pair(
        Reason.SHARED_RACE,
        INDEX + "__shared__ float t[64]; t[i] = x[i]; __syncthreads(); float v = t[63 - i]; t[i] = v; y[i] = v;",
        INDEX + "__shared__ float t[64]; t[i] = x[i]; __syncthreads(); float v = t[63 - i]; __syncthreads(); t[i] = v;"
        "y[i] = v;",
        3, only_all=True,
    ),
    "all threads write one place": Pair(
        Reason.SHARED_RACE, INDEX + "__shared__ float t; t = x[i]; __syncthreads(); y[i] = t;",
        INDEX + "__shared__ float t; if (i == 0) t = x[i]; __syncthreads(); y[i] = t;", 3, only_all=True,
    ),
    "all threads write one place, and not all the same": Pair(
        Reason.SHARED_RACE, INDEX + "__shared__ float t; t = x[i == 63]; __syncthreads(); y[i] = t;",
        INDEX + "__shared__ float t; t = x[5]; __syncthreads(); y[i] = t;", 3, only_all=True,
    ),
    "all threads write the same, and another reads it too soon": Pair(
        Reason.SHARED_RACE, INDEX + "__shared__ float t; if (i < 8) t = x[5]; y[i] = t;",
        INDEX + "__shared__ float4 t; if (i < 8) t = *(const float4*)x; __syncthreads(); y[i] = t.w;", 3, only_all=True,
    ),
    "atomic beside a plain write": Pair(
        Reason.SHARED_RACE, INDEX + "__shared__ int t; if (i == 0) t = 0; atomicAdd(&t, 1); __syncthreads(); y[i] = t;",
        INDEX + "__shared__ int t; if (i == 0) t = 0; __syncthreads(); atomicAdd(&t, 1); __syncthreads(); y[i] = t;", 3,
        only_all=True,
    ),
    "warp reduction without __syncwarp": Pair(
        Reason.SHARED_RACE,
        INDEX + "__shared__ float t[64]; t[i] = x[i]; __syncthreads();\n"
        "if (i < 32) for (int o = 32; o; o >>= 1) { t[i] += t[i + o]; } __syncthreads(); y[i] = t[0];",
        INDEX + "__shared__ float t[64]; t[i] = x[i]; __syncthreads();\n"
        "if (i < 32) for (int o = 32; o; o >>= 1) { float v = t[i + o]; __syncwarp(); t[i] += v; __syncwarp(); }\n"
        "__syncthreads(); y[i] = t[0];",
        4, only_all=True,
    ),
    "barrier that half of a warp misses": Pair(
        Reason.BARRIER_DIVERGENCE, INDEX + "if (i < 40) { __syncthreads(); y[i] = 1.f; } else y[i] = 2.f;",
        INDEX + "if (i < 40) y[i] = 1.f; else y[i] = 2.f; __syncthreads();", only_all=True, words=("never reaches",),
    ),
    "shuffle of lanes that never come": Pair(
        Reason.DEADLOCK,
        INDEX + "if (i & 1) y[i] = __shfl_xor_sync(~0u, x[i], 2); else { __syncthreads(); y[i] = 0.f; }",
        INDEX + "float v = __shfl_xor_sync(~0u, x[i], 2); __syncthreads(); y[i] = v;",
    ),
    "collective without its own lane": Pair(
        Reason.BARRIER_DIVERGENCE, INDEX + "y[i] = __shfl_xor_sync(0xffffu, x[i], 1);",
        INDEX + "y[i] = (i & 31) < 16 ? __shfl_xor_sync(0xffffu, x[i], 1) : 0.f;", 3, words=("mask",),
    ),
    "shuffle from a lane that has ended": Pair(
        Reason.BARRIER_DIVERGENCE,
        INDEX + "if (i >= 40) { y[i] = 0.f; return; } y[i] = __shfl_down_sync(~0u, x[i], 4);",
        INDEX + "float v = __shfl_down_sync(~0u, x[i], 4); if (i >= 40) { y[i] = 0.f; return; } y[i] = v;", 3,
        only_all=True, words=("reads from lane 8", "which has ended"),
    ),
    "named barrier that too few reach": Pair(
        Reason.DEADLOCK, INDEX + 'if (i < 32) asm volatile("bar.sync 1, 64;"); y[i] = 1.f;',
        INDEX + 'if (i < 32) asm volatile("bar.sync 1, 32;"); y[i] = 1.f;',
    ),
    "blocks write one place": Pair(
        Reason.GLOBAL_RACE, INDEX + "y[i & 63] = x[i & 63] + blockIdx.x;", INDEX + "y[i & 63] = x[i & 63];", 3,
        blocks=2, only_all=True, words=("global write of 4 bytes at byte 0 of buffer y", "races with block (0,0,0)"),
    ),
    "a block reads what another wrote": Pair(
        Reason.GLOBAL_RACE, INDEX + "if (i < 64) y[i] = x[i]; else if (y[i - 64] == 0.f) s[i - 64] = 1.f;",
        INDEX + "if (i < 64) y[i] = x[i]; else if (x[i - 64] == 0.f) s[i - 64] = 1.f;", 3, blocks=2, only_all=True,
    ),
    "a block writes what another read": Pair(
        Reason.GLOBAL_RACE, INDEX + "if (i < 32) { y[i] = 1.f; y[i + 32] = y[i]; } else if (i >= 96) y[i - 96] = 2.f;",
        INDEX + "if (i < 32) { y[i] = 1.f; y[i + 32] = y[i]; } else if (i >= 96) s[i - 96] = 2.f;", 3, blocks=2,
        only_all=True,
    ),
    "last block without a fence": Pair(
        Reason.GLOBAL_RACE, LAST_BLOCK.replace("FENCE", ""), LAST_BLOCK.replace("FENCE", "__threadfence();"), blocks=4,
        only_all=True, prelude="__device__ unsigned counter;", words=("of buffer s",),
    ),
    "last block without a barrier": Pair(
        Reason.GLOBAL_RACE, LAST_BLOCK.replace("FENCE __syncthreads();", "__threadfence();"),
        LAST_BLOCK.replace("FENCE", "__threadfence();"), blocks=4, only_all=True,
        prelude="__device__ unsigned counter;",
    ),
    "a counter beside a plain write of another block": Pair(
        Reason.GLOBAL_RACE, INDEX + "if (i < 64) y[i] = 0.f; else atomicAdd(y + i - 64, 1.f);",
        INDEX + "if (i < 64) y[i] = 0.f; else atomicAdd(s2 + i - 64, 1.f);", 3, blocks=2, only_all=True,
        prelude="__device__ float s2[64];",
    ),
    "a flag without a fence": Pair(
        Reason.GLOBAL_RACE, FLAG.replace("FENCE", ""), FLAG.replace("FENCE", "__threadfence();"), blocks=2,
        only_all=True, prelude="__device__ volatile int flag;",
    ),
    "endless loop": Pair(
        Reason.ENDLESS_LOOP, INDEX + "volatile float* p = y; p[i] = 0.f; while (p[i] == 0.f) { } y[i] = 1.f;",
        INDEX + "volatile float* p = y; p[i] = 0.f; for (int k = 0; k < 9 && p[i] == 0.f; ++k) { } y[i] = 1.f;", 3,
    ),
    "endless recursion of loops": Pair(
        Reason.ENDLESS_LOOP, INDEX + "unsigned k = 1; do { k = k * 5u + 2u; __syncthreads(); } while (k); y[i] = k;",
        INDEX + "unsigned k = 1; do { k = k * 5u; __syncthreads(); } while (k < 1000u); y[i] = k;",
    ),
    "trap": Pair(
        Reason.TRAP, INDEX + "if (x[i] > 60.f) __trap(); y[i] = 1.f;",
        INDEX + "if (x[i] > 99.f) __trap(); y[i] = 1.f;", 3,
    ),
}  # fmt: skip


def _run(pair: Pair, body: str, checks: str, poison: str = "nan"):
    source = f'{pair.prelude}\nextern "C" __global__ void kern(const float* x, float* y, float* s, int n) {{ {body} }}'
    arguments: list[Argument | int | float] = [array("x", X), out("y", "float32", N), scratch("s", "float32", N), N]
    call = call_of(arguments, (pair.blocks,), (pair.threads,), pair.shared_bytes)
    return run(ptx_of(source), call, {"x": X}, checks=checks, poison=poison, budget=2_000_000)


@pytest.mark.parametrize("name", PAIRS)
def test_caught(name: str) -> None:
    pair = PAIRS[name]
    for checks in ("all",) if pair.only_all else ("all", "bounds"):
        done = _run(pair, pair.bad, checks)
        assert [f.reason for f in done.findings] == [pair.reason], done.findings
        detail = done.findings[0].detail
        assert all(word in detail for word in pair.words), detail
        if pair.line:
            assert f"source line {pair.line}" in detail
        assert done.guards_intact
        assert done.inputs_intact
        assert done.completed == (pair.reason is Reason.OUTPUT_NOT_WRITTEN)


@pytest.mark.parametrize("name", PAIRS)
def test_honest_twin(name: str) -> None:
    pair = PAIRS[name]
    results = [_run(pair, pair.honest, checks, poison) for checks, poison in (("all", "nan"), ("bounds", "huge"))]
    for done in results:
        assert done.completed, done.findings
        assert not done.findings
    assert results[0].outputs == results[1].outputs


def test_bounds_leaves_races_out_and_leaves_saying_it_to_who_asked() -> None:
    """The judge names the cases in which it asked for bounds alone; a flat line from here would contradict the rest."""
    pair = PAIRS["race between warps"]
    assert _run(pair, pair.bad, "bounds").completed
    assert _run(pair, pair.honest, "bounds").unchecked == ()
    assert _run(pair, pair.honest, "all").unchecked == ()


def test_a_lane_that_took_no_part_gives_poison() -> None:
    """A block of 17 threads shuffles with a full mask: what comes from beyond differs between poisons."""
    pair = Pair(Reason.DEADLOCK, "", "", threads=17)
    body = INDEX + "y[i] = __shfl_down_sync(~0u, x[i], 4);"
    results = {p: output(_run(pair, body, "bounds", p), "y", "float32") for p in ("nan", "huge")}
    assert np.array_equal(results["nan"][:13], X[4:17])
    assert np.isnan(results["nan"][13:17]).all()
    assert not np.isnan(results["huge"][13:17]).any()


def test_a_write_into_a_margin_is_caught_before_it_happens() -> None:
    pair = PAIRS["write behind the end"]
    assert _run(pair, pair.bad, "bounds").guards_intact


def test_findings_do_not_depend_on_the_poison() -> None:
    for name in ("race within a warp", "read before the start"):
        pair = PAIRS[name]
        found = {_run(pair, pair.bad, "all", poison).findings for poison in ("nan", "huge")}
        assert len(found) == 1


@pytest.mark.parametrize(("source", "told"), [("y", True), ("x", False)])
def test_a_noncoherent_load_of_what_the_launch_may_write_is_unchecked(source: str, told: bool) -> None:
    body = f"""int i = threadIdx.x; y[i] = x[i]; __syncthreads(); float v;
    asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(v) : "l"({source} + i)); y[i] = v + v;"""
    pair = Pair(Reason.WRONG_VALUES, body, body)
    done = _run(pair, body, "all")
    assert done.completed
    assert any("ld.global.nc (__ldg)" in finding.detail for finding in done.unchecked) is told
