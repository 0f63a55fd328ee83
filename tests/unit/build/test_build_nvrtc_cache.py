"""NVRTC's own cache is off in whatever process compiles: a compile that it answers tells no registers."""

import os

from kerneltrial.build.messages import Compiled
from kerneltrial.build.nvrtc import compile_source
from kerneltrial.build.resources import resources


def test_the_same_source_reports_its_registers_each_time(monkeypatch) -> None:
    monkeypatch.delenv("CUDA_CACHE_DISABLE", raising=False)
    source = b'extern "C" __global__ void k(float* x) { x[threadIdx.x] *= 2.0f; }\n'
    for _ in range(2):
        found = compile_source(source, ("--gpu-architecture=sm_90a", "--ptxas-options=-v"))
        assert isinstance(found, Compiled)
        assert resources(found.log)["k"].registers > 0
    assert os.environ["CUDA_CACHE_DISABLE"] == "1"
