"""The shipped space in Python: a plan for every shape, and kernels that are right on the `cpu` device."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from kerneltrial.build.builder import Builder
from kerneltrial.build.preloading import preload
from kerneltrial.devices.cpu.device import open_cpu
from kerneltrial.devices.device import Binary, Conditions, Loaded
from kerneltrial.inputs.calls import Call
from kerneltrial.inputs.contracts import read_contract
from kerneltrial.inputs.resolve import parameter_sizes, resolve
from kerneltrial.propose.proposer import Draft, candidate_of
from kerneltrial.propose.search.space import read_space
from kerneltrial.records.build import Built
from kerneltrial.records.device import Device
from kerneltrial.records.proposal import Origin
from kerneltrial.records.reason import Reason
from kerneltrial.sandbox.nursery import Nursery
from kerneltrial.store.objects import Objects

FOLDER = Path(__file__).resolve().parents[3] / "kernels/matmul_f32"
CPU = Device(kind="cpu", name="cpu", arch="sm_90", fingerprint={})
SPACE = read_space(FOLDER / "space_numba.yaml", CPU)
CONTRACT = read_contract(FOLDER / "contract.yaml")
SIZES = (1, 31, 256, 8192)
SEEDS = [seed.parameters for seed in SPACE.file.seeds]
FURTHER = [
    {"BM": 16, "BN": 64, "BK": 8, "TM": 2, "TN": 4, "STAGES": 2, "SPLIT": 2},
    {"BM": 64, "BN": 32, "BK": 16, "TM": 8, "TN": 1, "STAGES": 2, "SPLIT": 1},
]


def _id(parameters: dict[str, int]) -> str:
    return "-".join(f"{name}{value}" for name, value in parameters.items())


def _call(parameters: dict[str, int], dimensions: dict[str, int]) -> Call:
    return resolve(SPACE.plan(parameters), CONTRACT, dimensions, "numba_array")


@pytest.mark.parametrize("parameters", [*SEEDS, *FURTHER, *SPACE.configurations[7::150]], ids=_id)
def test_the_plan_holds_for_every_shape(parameters: dict[str, int]) -> None:
    split = parameters["SPLIT"]
    sizes = parameter_sizes(SPACE.plan(parameters), CONTRACT, "numba_array")
    for m, n, k in product(SIZES, repeat=3):
        call = _call(parameters, {"m": m, "n": n, "k": k})
        first = call.launches[0]
        across, down, splits = first.grid
        (parts,) = (b for b in call.buffers if b.role == "scratch")
        assert across * parameters["BN"] >= n > (across - 1) * parameters["BN"]
        assert down * parameters["BM"] >= m > (down - 1) * parameters["BM"]
        assert 1 <= splits <= split
        assert splits <= -(-k // parameters["BK"])  # no block without a step
        assert parts.shape[0] <= 4 * 2**20
        apart = split > 1 and m * n <= 2**20 and k > parameters["BK"]
        assert [launch.entry for launch in call.launches] == (["matmul_part", "add_parts"] if apart else ["matmul"])
        if apart:
            assert parts.shape[0] >= splits * m * n
            assert call.launches[1].grid[0] * 256 >= m * n
        for launch in call.launches:
            assert tuple(8 if not hasattr(p, "bytes") else p.bytes for p in launch.parameters) == sizes[launch.entry]


@pytest.fixture(scope="module")
def numba_nursery() -> Iterator[Nursery]:
    with Nursery(preload({"numba_cuda"})) as nursery:
        yield nursery


@pytest.fixture
def loaded(numba_nursery: Nursery, tmp_path: Path, request: pytest.FixtureRequest) -> tuple[dict[str, int], Loaded]:
    parameters: dict[str, int] = request.param
    origin = Origin(hypothesis="", pattern="none", parents=(), parameters={})
    draft = Draft("numba_cuda", SPACE.source(parameters), SPACE.plan(parameters), origin)
    objects = Objects(tmp_path)
    built = Builder(numba_nursery, CONTRACT, "sm_80").build(candidate_of(draft), draft.source, objects)
    assert isinstance(built, Built), built
    return parameters, open_cpu().load(Binary(ptx=objects.get(built.ptx).decode(), cubin=b""))


def _run(loaded: Loaded, call: Call, values: dict[str, np.ndarray]) -> np.ndarray:
    """Run once; every check must be silent."""
    run = loaded.run(call, values, Conditions(poison="nan"))
    assert run.completed
    assert run.findings == ()
    assert all(finding.reason is Reason.CHECK_ABSENT for finding in run.unchecked)
    assert run.inputs_intact
    assert run.guards_intact
    shape = next(b.shape for b in call.buffers if b.name == "c")
    return np.frombuffer(run.outputs["c"], dtype=np.float32).reshape(shape)


@pytest.mark.slow
@pytest.mark.parametrize("loaded", [*SEEDS, *FURTHER], ids=_id, indirect=True)
def test_a_configuration_is_right_and_the_same_twice(loaded: tuple[dict[str, int], Loaded]) -> None:
    parameters, kernel = loaded
    whole = {"m": parameters["BM"], "n": 2 * parameters["BN"], "k": 3 * parameters["BK"]}
    for dimensions in (whole, {"m": 1, "n": 1, "k": 1}, {"m": 31, "n": 37, "k": 29}, {"m": 2, "n": 130, "k": 131}):
        values = np.random.default_rng(1)
        a = values.standard_normal((dimensions["m"], dimensions["k"]), dtype=np.float32)
        b = values.standard_normal((dimensions["k"], dimensions["n"]), dtype=np.float32)
        call = _call(parameters, dimensions)
        first, second = (_run(kernel, call, {"a": a, "b": b}) for _ in range(2))
        terms = np.abs(a).astype(np.float64) @ np.abs(b)
        assert (np.abs(first - a.astype(np.float64) @ b) <= 1e-6 * terms).all()
        assert first.tobytes() == second.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("loaded", [SEEDS[1]], ids=_id, indirect=True)
def test_a_row_of_infinities_spreads_to_its_own_row_alone(loaded: tuple[dict[str, int], Loaded]) -> None:
    """What lies beyond a matrix is zero in both tiles: zero times infinity would be NaN where there is none."""
    parameters, kernel = loaded
    a, b = np.ones((5, 19), dtype=np.float32), np.ones((19, 7), dtype=np.float32)
    a[2, :], b[18, 3] = np.inf, np.inf
    got = _run(kernel, _call(parameters, {"m": 5, "n": 7, "k": 19}), {"a": a, "b": b})
    assert np.array_equal(np.isinf(got), np.isinf(a @ b))
    assert not np.isnan(got).any()
