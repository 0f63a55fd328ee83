"""torch on a card, where it is installed: eager and compiled products beside our own, by torch's graph and by ours."""

import importlib.util
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from test_gpu_run import factors, product
from test_gpu_timing import request_of

from kerneltrial.devices.cuda import torch_baselines
from kerneltrial.inputs.contracts import read_contract

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
]
SHAPE = (512, 512, 512)


def test_torch_computes_the_product_and_its_figure_is_near_our_own_of_cublas(card, matmul):
    contract = read_contract(Path(__file__).parents[2] / "kernels/matmul_f32/contract.yaml")
    sets = [factors(*SHAPE, seed) for seed in (0, 5)]
    with torch_baselines.Torch(contract) as torch:
        found = torch.measured([("square", dict(zip("mnk", SHAPE, strict=True)), sets)])
    call = product("blocked", *SHAPE)
    own = card.time(request_of(matmul, call, matmul, call, clock="graph"), sets)
    for name, entry in found.items():
        print(f"{name}: {entry.latency_us['square']:.3f} us; blocked: {median(own.warm_us['a']):.3f} us")
        got = np.frombuffer(entry.outputs["square"][0]["c"], np.float32).reshape(SHAPE[:2])
        wanted = sets[0]["a"].astype(np.float64) @ sets[0]["b"].astype(np.float64)
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)
        assert 1.0 < entry.latency_us["square"] < 10 * median(own.warm_us["a"])
