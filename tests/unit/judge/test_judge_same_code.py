"""A reference that is the baseline under another name is found to be one, and an honest one is not."""

import functools

import pytest

from kerneltrial.build.messages import Compiled
from kerneltrial.build.nvrtc import compile_source
from kerneltrial.devices.device import Binary
from kerneltrial.judge.same_code import same_code

BASELINE = """
__constant__ float weights[3] = {0.25f, 0.5f, 0.25f};
__device__ __noinline__ float weighed(const float* x, int i) { return weights[i % 3] * x[i]; }
extern "C" __global__ void __launch_bounds__(128) smooth(const float* __restrict__ x, float* __restrict__ y, int n) {
    __shared__ float tile[128];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = i < n ? weighed(x, i) : 0.0f;
    __syncthreads();
    if (i < n) y[i] = tile[threadIdx.x] - tile[(threadIdx.x + 1) % 128];
}
"""
OTHER_NAMES = """
// The same, as if it were by someone else.
__constant__ float factors[3] = { 0.25f, 0.5f, 0.25f };
__device__ __noinline__ float scaled(const float* values, int at)
{
    return factors[at % 3] * values[at];
}

extern "C" __global__ void reference(const float* values, float* out, int count)
{
    __shared__ float kept[128];
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    kept[threadIdx.x] = at < count ? scaled(values, at) : 0.0f;
    __syncthreads();
    if (at < count)
        out[at] = kept[threadIdx.x] - kept[(threadIdx.x + 1) % 128];
}
"""
SECOND = '\nextern "C" __global__ void zero(float* y, int n) { if (threadIdx.x < n) y[threadIdx.x] = 0.0f; }\n'


@functools.cache
def binary(source: str) -> Binary:
    reply = compile_source(source.encode(), ("--gpu-architecture=sm_80", "--generate-line-info"))
    assert isinstance(reply, Compiled), reply
    return Binary(ptx=reply.ptx.decode(), cubin=reply.cubin)


def without_ptx(given: Binary) -> Binary:
    return Binary(ptx="", cubin=given.cubin)


@pytest.mark.parametrize("copy", [BASELINE, OTHER_NAMES], ids=["the same bytes", "other names"])
def test_a_copy_is_the_same_code(copy: str) -> None:
    assert same_code(binary(copy), binary(BASELINE))
    assert same_code(binary(copy), binary(BASELINE + SECOND)), "one kernel of several was copied"


def test_a_copy_of_machine_code_is_the_same_code() -> None:
    plain = BASELINE.replace("__launch_bounds__(128) ", "").replace(" __restrict__", "")
    assert binary(OTHER_NAMES).cubin != binary(plain).cubin
    assert same_code(binary(OTHER_NAMES), without_ptx(binary(plain)))
    assert not same_code(binary(OTHER_NAMES.replace("- kept", "+ kept")), without_ptx(binary(plain)))


@pytest.mark.parametrize(
    ("now", "then"),
    [
        ("- kept", "+ kept"),
        ("{ 0.25f, 0.5f", "{ 0.3f, 0.5f"),
        ("+ 1) % 128", "+ 2) % 128"),
        ("const float* values, float* out", "float* out, const float* values"),
        ("return factors", "return 2.0f * factors"),
    ],
)
def test_what_works_out_something_else_is_other_code(now: str, then: str) -> None:
    assert now in OTHER_NAMES
    assert not same_code(binary(OTHER_NAMES.replace(now, then)), binary(BASELINE))


def test_more_than_the_baseline_is_other_code() -> None:
    assert not same_code(binary(BASELINE + SECOND), binary(BASELINE))


def test_text_that_is_no_ptx_is_compared_as_text() -> None:
    broken = Binary(ptx='.entry k() { "', cubin=b"")
    assert same_code(broken, broken)
    assert not same_code(broken, binary(BASELINE))
