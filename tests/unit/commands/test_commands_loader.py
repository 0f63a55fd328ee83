"""The exported loader: the same launches as a trial makes, guards, and the way back to the baseline."""

import ctypes
import importlib
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kerneltrial.commands.exported_package import write_package
from kerneltrial.commands.loader_text import Part, package_text, python_of
from kerneltrial.commands.torch_text import torch_package_text
from kerneltrial.inputs.boundary import boundary_shapes
from kerneltrial.inputs.calls import Call, Pointer
from kerneltrial.inputs.cases import read_cases
from kerneltrial.inputs.contracts import array_shapes, read_contract
from kerneltrial.inputs.expressions import ExpressionProblem, evaluate
from kerneltrial.inputs.plans import plan_path, read_plan
from kerneltrial.inputs.resolve import resolve
from kerneltrial.loader import LoaderProblem, load
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
        names = [(name, kind) for name in ("winner", "baseline") for kind in ("cubin", "ptx")]
        binaries = {f"{name}.{kind}": f"{kind} of the {name}".encode() for name, kind in names}
        write_package(folder, "loader", (contract, 'from "a" trial'), (parts, binaries))
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
    arrays = {array.name: (1 + place) << 34 for place, array in enumerate(contract.arrays)}
    chosen: str = getattr(package, contract.name)(STREAM, **{**arrays, **dimensions, **changes})
    return chosen


def _as_launched(call: Call, contract: Contract) -> list[tuple[Any, ...]]:
    """A trial's own launches of a call, in the terms of the pretended card; scratch has no address here."""
    addresses = {array.name: (1 + place) << 34 for place, array in enumerate(contract.arrays)}
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
    typestr: str = "<f4"
    read_only: bool = False

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "strides": self.strides,
            "typestr": self.typestr,
            "data": (self.address, self.read_only),
        }


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"x": Held((3, 9))}, r"x is f4 of \(3, 9\), the contract wants f4 of \(3, 8\)"),
        ({"x": Held((8, 3))}, r"x is f4 of \(8, 3\)"),
        ({"x": Held((3, 8), typestr="<i4")}, "x is i4 of"),
        ({"x": Held((3, 8), strides=(4, 12))}, "x is not contiguous"),
        ({"y": Held((3, 8), read_only=True, address=1 << 40)}, "y is read-only"),
        ({"x": types.SimpleNamespace(handle=4096, size=95)}, "x has 95 bytes, the contract wants 96"),
        ({"x": types.SimpleNamespace(handle=4096, size=96, device_id=1)}, "x is on device 1, the current one is 0"),
        ({"x": 0}, "x has the address 0"),
        ({"x": True}, "x is a bool"),
        ({"x": 1 << 20, "y": 1 << 20}, "x and y share memory"),
        ({"rows": 3.0}, r"rows=3\.0 must be a whole number"),
        ({"rows": "3"}, "rows='3' must be a whole number"),
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


def test_strides_of_what_is_contiguous_are_no_fault(card: Card, export: Package) -> None:
    contract, winner, baseline = _family("softmax_f32")
    package = export(contract, winner, baseline)
    assert _call(package, contract, {"rows": 3, "cols": 8}, x=Held((3, 8), strides=(32, 4))) == "winner"
    assert _call(package, contract, {"rows": 1, "cols": 8}, x=Held((1, 8), strides=(999, 4))) == "winner"


def test_memory_may_be_shared_where_the_contract_says_so(card: Card, export: Package) -> None:
    contract, winner, baseline = _family("softmax_f32")
    package = export(replace(contract, in_place={"y": "x"}), winner, baseline)
    assert _call(package, contract, {"rows": 3, "cols": 8}, x=1 << 20, y=1 << 20) == "winner"
    with pytest.raises(ValueError, match="share memory"):  # by a part of it
        _call(package, contract, {"rows": 300, "cols": 8}, x=1 << 20, y=(1 << 20) + 256)


def test_a_size_that_does_not_fit_its_parameter_is_never_another(card: Card, export: Package) -> None:
    """As int32 2**31 rows would be minus 2**31, in the baseline too."""
    contract, winner, baseline = _family("softmax_f32")
    package = export(contract, winner, baseline)
    for rows in (2**31, 2**31 + 5):
        with pytest.raises(ValueError, match=r"winner: rows=.*is outside of the contract.*; baseline: softmax"):
            _call(package, contract, {"rows": rows, "cols": 1})
        assert package.KERNEL.choice({"rows": rows, "cols": 1}) == "none"
    assert card.launched == []


@pytest.mark.parametrize(
    "change",
    [
        {"grid": ("rows", "65536", "1")},
        {"block": ("1024", "2", "1")},
        {"block": ("1", "1", "rows - 3")},
        {"shared_bytes": "cols * 100000"},
        {"cluster": ("17", "1", "1")},
        {"cluster": ("2", "1", "1")},
    ],
    ids=str,
)
def test_a_launch_that_no_card_takes_gives_way_to_the_baseline(
    card: Card, export: Package, change: dict[str, Any]
) -> None:
    contract, _, baseline = _family("softmax_f32")
    launch = replace(baseline.variants[0].launches[0], **change)
    package = export(contract, LaunchPlan(variants=(Variant(launches=(launch,)),)), baseline)
    assert _call(package, contract, {"rows": 3, "cols": 8}) == "baseline"


@pytest.mark.parametrize("name", ["plans.py", "runtime.py", "winner.cubin", "baseline.ptx"])
@pytest.mark.parametrize("how", ["altered", "missing"])
def test_a_package_that_was_altered_is_refused(card: Card, export: Package, name: str, how: str) -> None:
    contract, winner, baseline = _family("softmax_f32")
    package = export(contract, winner, baseline)
    path = Path(package.__file__).parent / name
    if how == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes() + b"\n")
    kernel = type(package.KERNEL)
    runtime = sys.modules[kernel.__module__]
    with pytest.raises(runtime.Altered, match=rf"{name}: is not what was exported .*export the kernel again"):
        kernel(path.parent, package.PROMISE, package.CODES, package.FILES)
    if name == "winner.cubin":  # after the import too, and no baseline runs in its place
        with pytest.raises(runtime.Altered):
            _call(package, contract, {"rows": 3, "cols": 8})
        assert card.launched == []


def test_sums_name_every_file(export: Package) -> None:
    contract, winner, baseline = _family("softmax_f32")
    folder = Path(export(contract, winner, baseline).__file__).parent
    named = {line.split("  ")[1] for line in (folder / "SHA256SUMS").read_text().splitlines()}
    assert named == {path.name for path in folder.iterdir() if path.is_file()} - {"SHA256SUMS"}
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=folder, check=True)


FAMILIES = sorted(path.parent.name for path in (CLONE / "kernels").glob("*/space.yaml"))


@pytest.mark.parametrize("form", ["loader", "torch"])
def test_what_is_written_is_as_ruff_would_have_it(tmp_path: Path, form: Any) -> None:
    """Whoever takes a package into a repository of their own has its linter on it."""
    for name in FAMILIES:
        contract, winner, baseline = _family(name)
        folder = tmp_path / f"{name}_loader"
        folder.mkdir()
        parts = (Part("winner", winner, "pointer", "sm_90a"), Part("baseline", baseline, "pointer", ""))
        write_package(folder, form, (contract, "a test"), (parts, {}))
    _lint(tmp_path)


def _lint(folder: Path) -> None:
    words = [sys.executable, "-m", "ruff", "check", "--isolated", "--quiet", str(folder)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("form", ["loader", "torch"])
@pytest.mark.parametrize("name", ["class", "torch", "KERNEL", "Path", "softmax"])
def test_names_that_python_or_the_package_has_itself_give_way(tmp_path: Path, form: Any, name: str) -> None:
    contract, _, baseline = _family("softmax_f32")
    words = {"x": "stream", "y": "KERNEL", "rows": "d", "cols": "torch"}

    def renamed(text: str) -> str:
        return " ".join(words.get(word, word) for word in text.split())

    arguments = tuple(
        replace(
            one, name=words[one.name], **({"shape": tuple(map(renamed, one.shape))} if hasattr(one, "shape") else {})
        )
        for one in contract.arguments
    )
    dimensions = {words[key]: span for key, span in contract.dimensions.items()}
    strange = replace(contract, name=name, arguments=arguments, dimensions=dimensions)
    launch = replace(baseline.variants[0].launches[0], grid=("d", "1", "1"), args=("stream", "KERNEL"))
    plan = LaunchPlan(variants=(Variant(launches=(launch,)),))
    folder = tmp_path / "strange_loader"
    folder.mkdir()
    write_package(folder, form, (strange, "a test"), ((Part("winner", plan, "pointer", ""),), {}))
    _lint(folder)


def test_words_of_a_contract_end_no_text_and_steer_no_terminal(tmp_path: Path) -> None:
    contract, winner, baseline = _family("softmax_f32")
    words = 'a """ b \\ c\x1b[2J\u202e \x00\r\n\tlast "'
    parts = (Part("winner", winner, "pointer", ""), Part("baseline", baseline, "pointer", ""))
    for form in ("loader", "torch"):
        folder = tmp_path / form
        folder.mkdir()
        write_package(folder, form, (replace(contract, description=words), "a test"), (parts, {}))  # type: ignore[arg-type]
        text = (folder / "__init__.py").read_text()
        compile(text, "package", "exec")
        assert text.replace("\n", "").isprintable()


def test_bounds_that_no_call_looks_at_are_said(tmp_path: Path) -> None:
    contract, winner, _ = _family("spmv_csr_f32")
    write_package(tmp_path, "loader", (contract, "a test"), ((Part("winner", winner, "pointer", ""),), {}))
    assert "- columns from 0, below cols" in (tmp_path / "__init__.py").read_text()


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "cannot be read"), (b"", "does not say"), (b"\xff", "does not say"), (b'{"plan": 1}', "does not say")],
    ids=["none", "empty", "no text", "another form"],
)
def test_a_folder_without_a_kernel_is_told(tmp_path: Path, content: bytes | None, said: str) -> None:
    if content is not None:
        (tmp_path / "kernel.json").write_bytes(content)
    with pytest.raises(LoaderProblem, match=rf"kernel\.json: {said}"):
        load(tmp_path)


def test_many_words_stand_on_lines_of_their_own() -> None:
    contract, _, _ = _family("spmv_csr_f32")
    for text in (package_text(contract, "a test", {}), torch_package_text(contract, "a test", {})):
        compile(text, "package", "exec")
        assert max(len(line) for line in text.splitlines() if line.startswith("def ")) < 80
