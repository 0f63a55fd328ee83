"""What is read about a kernel without running it, and by ncu, beside what the driver and our own clock say."""

from statistics import median

import pytest
from test_gpu_run import factors, product
from test_gpu_timing import request_of

from kerneltrial.build import cubin
from kerneltrial.devices import messages
from kerneltrial.devices.cuda import profiler
from kerneltrial.devices.cuda.device import load_module
from kerneltrial.devices.cuda.driver import bindings, call
from kerneltrial.devices.cuda.profiled import ProfileRequest
from kerneltrial.measure.counters import DURATION, METRICS, merged, sentence

pytestmark = pytest.mark.gpu
SHAPE = (512, 512, 512)


def test_a_cubin_says_what_the_driver_says(card, matmul):
    machine, module = cubin.read(matmul.cubin), load_module(card._context, matmul)
    names = bindings().CUfunction_attribute
    assert set(machine.kernels) == {"naive", "tiled", "blocked", "split"}
    for entry, kernel in machine.kernels.items():
        told = {
            name: int(call("cuFuncGetAttribute", getattr(names, f"CU_FUNC_ATTRIBUTE_{name}"), module.function(entry)))
            for name in ("NUM_REGS", "SHARED_SIZE_BYTES", "LOCAL_SIZE_BYTES")
        }
        print(entry, kernel, told)
        assert kernel.registers == told["NUM_REGS"]
        assert kernel.shared_bytes == told["SHARED_SIZE_BYTES"]
        assert kernel.local_bytes <= told["LOCAL_SIZE_BYTES"]
    module.unload()


@pytest.mark.parametrize("entry", ["blocked", "naive"])
def test_ncu_counts_a_warm_call_or_says_why_not(card, matmul, entry):
    plan, values = product(entry, *SHAPE), factors(*SHAPE)
    request = ProfileRequest(arch=card.device.arch, binary=matmul, call=plan, values=messages.pack(plan, values))
    try:
        found = merged(profiler.counters(request, METRICS))
    except profiler.Absent as absent:
        pytest.skip(f"no counters here: {absent}")
    own = median(card.time(request_of(matmul, plan, matmul, plan, clock="graph"), [values]).warm_us["a"])
    print(f"{entry}: {sentence(found)}; ncu {found[DURATION] / 1000:.2f} us, graph {own:.2f} us")
    # seen on an H200: 41.9 us by ncu, 37.7 by the graph; why was not looked into (one call of an idle card, perhaps)
    assert found[DURATION] / 1000 == pytest.approx(own, rel=0.25, abs=2.0)
    assert all(value >= 0 for value in found.values())
