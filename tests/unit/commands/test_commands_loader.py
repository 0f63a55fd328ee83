"""The exported loader: the same launches as a trial makes, guards, and the way back to the baseline."""

import ctypes
import importlib
import shutil
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kerneltrial.commands import loader_runtime
from kerneltrial.commands.loader_text import Part, package_text, plans_text, python_of
from kerneltrial.inputs.boundary import boundary_shapes
from kerneltrial.inputs.calls import Call, Pointer
from kerneltrial.inputs.cases import read_cases
from kerneltrial.inputs.contracts import array_shapes, read_contract
from kerneltrial.inputs.expressions import ExpressionProblem, evaluate
from kerneltrial.inputs.plans import plan_path, read_plan
from kerneltrial.inputs.resolve import resolve
from kerneltrial.propose.search.space import read_space
from kerneltrial.records.build import Abi
from kerneltrial.records.contract import Contract
from kerneltrial.records.plan import LaunchPlan, Variant

CLONE = Path(__file__).resolve().parents[3]


@dataclass
class Card:
    """A pretended `cuda.core`: notes what it is asked for. `broken` binaries do not load."""

    arch: str = "90"
    broken: tuple[bytes, ...] = ()
    launched: list[tuple[str, Any, tuple[Any, ...]]] = field(default_factory=list)
    filled: list[int] = field(default_factory=list)
    allocated: list[int] = field(default_factory=list)

    def module(self) -> types.ModuleType:
        core = types.ModuleType("cuda.core")
        core.Device = lambda: types.SimpleNamespace(device_id=0, arch=self.arch, allocate=self._allocate)  # type: ignore[attr-defined]
        core.ObjectCode = types.SimpleNamespace(from_cubin=self._load, from_ptx=self._load)  # type: ignore[attr-defined]
        core.LaunchConfig = lambda **given: types.SimpleNamespace(**given)  # type: ignore[attr-defined]
        core.launch = lambda stream, config, kernel, *args: self.launched.append((kernel.name, config, args))  # type: ignore[attr-defined]
        return core

    def _allocate(self, size: int, stream: Any) -> Any:
        address = (1 << 40) + (len(self.allocated) << 32)
        self.allocated.append(size)
        return types.SimpleNamespace(
            handle=address, size=size, fill=lambda value, stream: self.filled.append(address) if value == 0 else None
        )

    def _load(self, content: bytes) -> Any:
        if content in self.broken:
            raise RuntimeError("CUDA_ERROR_INVALID_IMAGE")
        return types.SimpleNamespace(
            get_kernel=lambda name: types.SimpleNamespace(name=name, attributes=types.SimpleNamespace())
        )


STREAM = types.SimpleNamespace(handle=7)
Package = Callable[..., Any]


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Card:
    found = Card()
    monkeypatch.setitem(sys.modules, "cuda.core", found.module())
    return found


@pytest.fixture
def export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Package]:
    """Writes a package as `kerneltrial export loader` does, with marks in place of binaries, and imports it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    made: list[str] = []

    def write(contract: Contract, winner: LaunchPlan, baseline: LaunchPlan, abi: Abi = "pointer") -> Any:
        folder = tmp_path / f"{contract.name}_{len(made)}_loader"
        folder.mkdir()
        parts = (Part("winner", winner, abi, "sm_90a"), Part("baseline", baseline, "pointer", "sm_90a"))
        (folder / "__init__.py").write_text(package_text(contract, 'from "a" trial'))
        (folder / "plans.py").write_text(plans_text(contract, parts))
        shutil.copy(loader_runtime.__file__, folder / "runtime.py")
        for name in ("winner", "baseline"):
            (folder / f"{name}.cubin").write_bytes(f"cubin of the {name}".encode())
            (folder / f"{name}.ptx").write_bytes(f"ptx of the {name}".encode())
        made.append(folder.name)
        return importlib.import_module(folder.name)

    yield write
    for name in list(sys.modules):
        if name.split(".")[0] in made:
            del sys.modules[name]


def _family(name: str, **parameters: int) -> tuple[Contract, LaunchPlan, LaunchPlan]:
    contract = read_contract(CLONE / f"kernels/{name}/contract.yaml")
    space = read_space(CLONE / f"kernels/{name}/space.yaml")
    winner = space.plan(parameters or space.file.seeds[0].parameters)
    return contract, winner, read_plan(plan_path(CLONE / f"kernels/{name}/baseline.cu"))


def _call(package: Any, contract: Contract, dimensions: dict[str, int], **changes: Any) -> str:
    arrays = {array.name: 4096 * (1 + place) for place, array in enumerate(contract.arrays)}
    chosen: str = getattr(package, contract.name)(STREAM, **{**arrays, **dimensions, **changes})
    return chosen


def _as_launched(call: Call, contract: Contract) -> list[tuple[Any, ...]]:
    """A trial's own launches of a call, in the terms of the pretended card; scratch has no address here."""
    addresses = {array.name: 4096 * (1 + place) for place, array in enumerate(contract.arrays)}
    found = []
    for one in call.launches:
        args = [
            addresses.get(p.buffer, "scratch") if isinstance(p, Pointer) else (p.bytes, p.bits) for p in one.parameters
        ]
        found.append((one.entry, one.grid, one.block, one.shared_bytes, args))
    return found


def _bits(argument: Any) -> Any:
    if isinstance(argument, int):
        return argument if argument < 1 << 40 else "scratch"
    size = ctypes.sizeof(argument)
    return size, int.from_bytes(bytes(argument), "little")


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("layernorm_residual_f32", {"GROUP": 256, "ROWS": 1, "VEC": 4, "KEEP": 2, "HOLD": 1, "WELFORD": 1, "EARLY": 0}),
        ("scan_i32", {}),
        ("deblock_u8", {"THREADS": 64, "WAY": 0, "TX": 4, "TY": 1, "WORD": 4}),
        ("spmv_csr_f32", {}),
        ("reduce_rows_f32", {"GROUP": 256, "ROWS": 1, "VEC": 4, "FLIGHT": 4, "SPLIT": 4, "FINISH": 0}),
    ],
    ids=str,
)
def test_the_launches_are_those_of_a_trial(card: Card, export: Package, name: str, parameters: dict[str, int]) -> None:
    contract, winner, baseline = _family(name, **parameters)
    package = export(contract, winner, baseline)
    cases = read_cases(CLONE / f"cases/{name}/cases.yaml")
    for dimensions in (*(case.dimensions for case in cases.cases), *boundary_shapes(contract, cases, 20, 1)):
        card.launched.clear()
        assert _call(package, contract, dimensions) == "winner"
        got = [(e, c.grid, c.block, c.shmem_size, [_bits(a) for a in args]) for e, c, args in card.launched]
        assert got == _as_launched(resolve(winner, contract, dimensions, "pointer"), contract), dimensions


def test_arrays_are_flattened_as_numba_takes_them(card: Card, export: Package) -> None:
    contract, winner, baseline = _family("transpose_f32")
    package = export(contract, winner, baseline, abi="numba_array")
    dimensions = {"rows": 12, "cols": 8}
    assert _call(package, contract, dimensions) == "winner"
    ((_, _, args),) = card.launched
    assert [_bits(a) for a in args] == _as_launched(resolve(winner, contract, dimensions, "numba_array"), contract)[0][
        4
    ]


def test_clusters_are_counted_as_cuda_core_counts_them(card: Card, export: Package) -> None:
    contract, _, baseline = _family("softmax_f32")
    launch = baseline.variants[0].launches[0]
    clustered = replace(launch, cluster=("2", "1", "1"), grid=("2 * rows", "1", "1"), cooperative=True)
    package = export(contract, LaunchPlan(variants=(Variant(launches=(clustered,)),)), baseline)
    assert _call(package, contract, {"rows": 3, "cols": 8}) == "winner"
    ((_, config, _),) = card.launched
    assert (config.grid, config.cluster, config.is_cooperative) == ((3, 1, 1), (2, 1, 1), True)


def test_an_expression_that_the_whitelist_does_not_hold_becomes_no_code() -> None:
    with pytest.raises(ExpressionProblem):
        python_of("__import__('os').system('true')")


def test_the_baseline_takes_what_the_winner_was_not_tried_on(card: Card, export: Package) -> None:
    contract, winner, baseline = _family("softmax_f32")
    package = export(contract, winner, baseline)
    assert _call(package, contract, {"rows": 3, "cols": 100_000}) == "baseline"  # the contract ends at 16384
    assert [entry for entry, _, _ in card.launched] == ["softmax"]
    narrow = LaunchPlan(variants=tuple(v for v in winner.variants if v.when != "1"))
    ragged = export(contract, narrow, baseline)
    assert _call(ragged, contract, {"rows": 3, "cols": 8}) == "winner"
    assert _call(ragged, contract, {"rows": 3, "cols": 7}) == "baseline"


def test_a_binary_that_does_not_load_gives_way(card: Card, export: Package) -> None:
    contract, winner, baseline = _family("softmax_f32")
    card.broken = (b"cubin of the winner", b"ptx of the winner")
    assert _call(export(contract, winner, baseline), contract, {"rows": 3, "cols": 8}) == "baseline"
    card.broken += (b"cubin of the baseline", b"ptx of the baseline")
    with pytest.raises(ValueError, match=r"winner: cubin: CUDA_ERROR_INVALID_IMAGE.*baseline: cubin: CUDA_ERROR"):
        _call(export(contract, winner, baseline), contract, {"rows": 3, "cols": 8})


def test_machine_code_is_for_its_own_card_and_ptx_for_others(card: Card, export: Package) -> None:
    contract, winner, baseline = _family("softmax_f32")
    card.arch = "100"
    card.broken = (b"ptx of the winner",)  # so that only the cubin, which is for sm_90a, could be the winner
    assert _call(export(contract, winner, baseline), contract, {"rows": 3, "cols": 8}) == "baseline"


def test_scratch_is_kept_and_zeroed_as_the_plan_says(card: Card, export: Package) -> None:
    contract, winner, baseline = _family("scan_i32")
    sums, *others = winner.scratch
    winner = replace(winner, scratch=(sums, *(replace(scratch, initial="zeroed") for scratch in others)))
    package = export(contract, winner, baseline)
    for _ in range(3):
        _call(package, contract, {"n": 5000})
    assert len(card.allocated) == 3
    assert len(card.filled) == 6
    _call(package, contract, {"n": 100_000})  # two of the three must grow
    assert len(card.allocated) == 5
    contract, winner, baseline = _family("reduce_columns_f32")  # tickets restore themselves
    card.filled.clear()
    package = export(contract, winner, baseline)
    for _ in range(3):
        _call(package, contract, {"rows": 4096, "cols": 128})
    assert len(card.filled) == 1


@dataclass
class Held:
    """A device array as other libraries show theirs."""

    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    address: int = 4096

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": self.shape, "strides": self.strides, "typestr": "<f4", "data": (self.address, False)}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"x": Held((3, 9))}, "x has 108 bytes, the contract wants 96"),
        ({"x": Held((3, 8), strides=(4, 12))}, "x is not contiguous"),
        ({"x": Held((3, 8), address=4100)}, "x is not aligned to 256 bytes"),
        ({"x": 4100}, "x is not aligned"),
        ({"x": "hello"}, "x is a str"),
        ({"rows": 0}, "rows=0 must be at least 1"),
    ],
    ids=str,
)
def test_what_the_contract_does_not_allow_is_refused(
    card: Card, export: Package, changes: dict[str, Any], words: str
) -> None:
    contract, winner, baseline = _family("softmax_f32")
    package = export(contract, winner, baseline)
    assert _call(package, contract, {"rows": 3, "cols": 8}, x=Held((3, 8))) == "winner"
    with pytest.raises(ValueError, match=words):
        _call(package, contract, {"rows": 3, "cols": 8}, **changes)
    assert len(card.launched) == 1


@pytest.mark.parametrize(
    "expression",
    [
        "2 and 3",
        "(m > 3) * 7 + 1",
        "not m",
        "m or n",
        "-m // 4",
        "ceil_div(m, 4) + max(m, n, 3)",
        "1 < m < n",
        "m % 3 == 0",
    ],
)
def test_an_expression_means_in_python_what_it_means_in_a_plan(expression: str) -> None:
    for d in ({"m": m, "n": n} for m in (1, 4, 6) for n in (1, 5)):
        got = eval(python_of(expression), {"d": d, "ceil_div": lambda a, b: -(-a // b)})
        assert (type(got), got) == (int, evaluate(expression, d))


def test_shapes_are_the_contracts(export: Package) -> None:
    contract, winner, baseline = _family("spmv_csr_f32")
    package = export(contract, winner, baseline)
    dimensions = {"rows": 5, "cols": 7, "entries": 11}
    plans = importlib.import_module(f"{package.__name__}.plans")
    assert {name: array.shape for name, array in plans.arrays(dimensions).items()} == array_shapes(contract, dimensions)
