"""The shipped spaces: plans that hold for every shape of the contract, kernels that are right on the `cpu` device."""

from functools import cache
from itertools import product
from math import prod
from pathlib import Path

import numpy as np
import pytest

from kerneltrial.build.messages import Compiled
from kerneltrial.build.nvrtc import compile_source
from kerneltrial.devices.cpu.device import open_cpu
from kerneltrial.devices.device import Binary, Conditions, Loaded, Run
from kerneltrial.inputs.calls import Call
from kerneltrial.inputs.contracts import read_contract
from kerneltrial.inputs.resolve import resolve
from kerneltrial.propose.search.space import Space, read_space
from kerneltrial.records.contract import Contract
from kerneltrial.records.reason import Reason

KERNELS = Path(__file__).resolve().parents[3] / "kernels"
SIZES = (1, 31, 256, 8192)
Arrays = dict[str, np.ndarray]


@cache
def _space(name: str) -> Space:
    return read_space(KERNELS / name / "space.yaml")


@cache
def _contract(name: str) -> Contract:
    return read_contract(KERNELS / name / "contract.yaml")


def _spread(name: str, step: int) -> list[dict[str, int]]:
    """The seeds, and every `step`-th configuration."""
    space = _space(name)
    return [seed.parameters for seed in space.file.seeds] + list(space.configurations[step // 2 :: step])


def _id(parameters: dict[str, int]) -> str:
    return "-".join(f"{name}{value}" for name, value in parameters.items())


def _call(name: str, parameters: dict[str, int], dimensions: dict[str, int]) -> Call:
    return resolve(_space(name).plan(parameters), _contract(name), dimensions, "pointer")


@pytest.mark.parametrize("parameters", _spread("matmul_f32", 200), ids=_id)
def test_a_matmul_plan_holds_for_every_shape(parameters: dict[str, int]) -> None:
    for m, n, k in product(SIZES, repeat=3):
        call = _call("matmul_f32", parameters, {"m": m, "n": n, "k": k})
        (launch,) = call.launches
        across, down, splits = launch.grid
        partial, tickets = (b for b in call.buffers if b.role == "scratch")
        tile = parameters["BM"] * parameters["BN"]
        assert across * parameters["BN"] >= n > (across - 1) * parameters["BN"]
        assert down * parameters["BM"] >= m > (down - 1) * parameters["BM"]
        assert 1 <= splits <= parameters["SPLIT"]
        assert splits <= -(-k // parameters["BK"])  # no block without a step
        if splits > 1:
            assert partial.shape[0] >= across * down * splits * tile
            assert tickets.shape[0] >= across * down
        assert prod(partial.shape) * 4 <= 2**26
        assert (launch.entry == "matmul_whole") == (
            m % parameters["BM"] == 0 and n % parameters["BN"] == 0 and k % parameters["BK"] == 0
        )


@pytest.mark.parametrize("parameters", _spread("matmul_large_f32", 150), ids=_id)
def test_a_large_products_scratch_holds_what_its_blocks_leave(parameters: dict[str, int]) -> None:
    for m, n, k in product(SIZES, repeat=3):
        call = _call("matmul_large_f32", parameters, {"m": m, "n": n, "k": k})
        (launch,) = call.launches
        partial, tickets = (b for b in call.buffers if b.role == "scratch")
        tile = parameters["BM"] * parameters["BN"]
        tiles, steps = -(-m // parameters["BM"]) * -(-n // parameters["BN"]), -(-k // parameters["BK"])
        if parameters["SPLIT"] == 0:  # stream-K: no block without a step, and two partial tiles of each at most
            assert 1 <= launch.grid[0] <= tiles * steps
            assert partial.shape[0] >= 2 * launch.grid[0] * tile
            assert tickets.shape[0] >= tiles
            continue
        assert launch.grid[0] == tiles
        assert 1 <= launch.grid[1] <= min(parameters["SPLIT"], steps)
        if launch.grid[1] > 1:
            assert partial.shape[0] >= launch.grid[0] * launch.grid[1] * tile
            assert tickets.shape[0] >= tiles


@pytest.mark.parametrize("name", ["matmul_f16", "matmul_bf16"])
def test_a_wgmma_plan_holds_for_every_shape(name: str) -> None:
    for parameters in [c for c in _space(name).configurations if c["WGMMA"] == 1][::5]:
        high = parameters["BM"] * parameters["CLUSTER"]
        for m, n, k in product(SIZES, repeat=3):
            call = _call(name, parameters, {"m": m, "n": n, "k": k})
            (launch,) = call.launches
            (maps,) = (b for b in call.buffers if b.role == "scratch")
            if n % 8 or k % 8:  # TMA wants rows on 16 bytes
                assert launch.entry == "matmul_any"
                continue
            tiles = -(-m // high) * -(-n // parameters["BN"]) * parameters["CLUSTER"]
            assert launch.entry == "matmul_hopper"
            assert launch.grid[0] == min(tiles, 132)
            assert launch.cluster == (parameters["CLUSTER"], 1, 1)
            assert maps.shape[0] >= 384 * launch.grid[0]
            assert launch.shared_bytes + 1024 <= 227 * 1024


@pytest.mark.parametrize("parameters", _spread("softmax_f32", 100), ids=_id)
def test_a_softmax_plan_holds_for_every_shape(parameters: dict[str, int]) -> None:
    held = parameters["GROUP"] * parameters["VEC"] * parameters["HOLD"]
    for rows, cols in product(SIZES, repeat=2):
        (launch,) = _call("softmax_f32", parameters, {"rows": rows, "cols": cols}).launches
        assert launch.grid[0] * parameters["ROWS"] >= rows > (launch.grid[0] - 1) * parameters["ROWS"]
        assert prod(launch.block) == parameters["GROUP"] * parameters["ROWS"]
        whole = cols % parameters["VEC"] == 0
        expected = "softmax_any" if not whole else "softmax_held" if cols <= held else "softmax_streamed"
        assert launch.entry == expected


def _loaded(name: str, parameters: dict[str, int]) -> Loaded:
    compiled = compile_source(_space(name).source(parameters), ("--gpu-architecture=sm_80", "--std=c++17"))
    assert isinstance(compiled, Compiled), compiled
    return open_cpu().load(Binary(ptx=compiled.ptx.decode(), cubin=b""))


def _run(loaded: Loaded, call: Call, values: Arrays, output: str) -> np.ndarray:
    """Run once; every check must be silent."""
    run: Run = loaded.run(call, values, Conditions(poison="nan"))
    assert run.completed
    assert run.findings == ()
    assert all(u.reason is Reason.CHECK_ABSENT for u in run.unchecked)  # races within a block
    assert run.inputs_intact
    assert run.guards_intact
    assert run.scratch_restored
    shape = next(b.shape for b in call.buffers if b.name == output)
    return np.frombuffer(run.outputs[output], dtype=np.float32).reshape(shape)


@pytest.mark.slow
@pytest.mark.parametrize("parameters", _spread("matmul_f32", 700), ids=_id)
def test_a_matmul_is_right_and_the_same_twice(parameters: dict[str, int]) -> None:
    loaded = _loaded("matmul_f32", parameters)
    whole = {"m": parameters["BM"], "n": 2 * parameters["BN"], "k": 3 * parameters["BK"]}
    ragged = ({"m": 1, "n": 1, "k": 1}, {"m": 31, "n": 37, "k": 29}, {"m": 2, "n": 130, "k": 131})
    for dimensions in (whole, *ragged):
        values = np.random.default_rng(1)
        a = values.standard_normal((dimensions["m"], dimensions["k"]), dtype=np.float32)
        b = values.standard_normal((dimensions["k"], dimensions["n"]), dtype=np.float32)
        call = _call("matmul_f32", parameters, dimensions)
        first, second = (_run(loaded, call, {"a": a, "b": b}, "c") for _ in range(2))
        terms = np.abs(a).astype(np.float64) @ np.abs(b)
        assert (np.abs(first - a.astype(np.float64) @ b) <= 1e-6 * terms).all()
        assert first.tobytes() == second.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("parameters", _spread("softmax_f32", 300), ids=_id)
def test_a_softmax_is_right_for_ordinary_and_for_special_rows(parameters: dict[str, int]) -> None:
    loaded = _loaded("softmax_f32", parameters)
    held = parameters["GROUP"] * parameters["VEC"] * parameters["HOLD"]
    for rows, cols in ((1, 1), (5, 37), (6, min(held, 512)), (6, min(held, 512) + 4 * parameters["GROUP"])):
        x = 4 * np.random.default_rng(2).standard_normal((rows, cols), dtype=np.float32)
        if rows > 5:
            x[0, : cols // 2] = -np.inf
            x[1] = -np.inf
            x[2, 3] = np.inf
            x[3, 5] = np.nan
            x[4] = 2000.0
        call = _call("softmax_f32", parameters, {"rows": rows, "cols": cols})
        got = _run(loaded, call, {"x": x}, "y")
        with np.errstate(invalid="ignore"):
            terms = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
            expected = terms / terms.sum(axis=1, keepdims=True)
        assert np.array_equal(np.isnan(got), np.isnan(expected))
        assert np.nanmax(np.abs(got - expected), initial=0.0) <= 1e-6
