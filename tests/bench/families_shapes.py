"""What `families_on_gpu.py` times of each kernel family: shapes, values, and what PyTorch has to set against it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kerneltrial.inputs.contracts import array_shapes
from kerneltrial.inputs.expressions import evaluate
from kerneltrial.inputs.torch_expressions import function_of
from kerneltrial.records.contract import Contract, ScalarArgument

Shape = dict[str, int]
Arrays = dict[str, Any]
Entrant = Callable[[Any, Arrays, Shape], Callable[[], Any]]
"""From torch, the inputs and the dimensions: what computes the outputs."""


@dataclass(frozen=True)
class Timed:
    """Shapes of a family, and further entrants of PyTorch's by name.

    `compiled`: torch.compile is asked too; `autotuned`: with autotuning for these shapes alone, as it takes long.
    """

    shapes: Sequence[Shape]
    entrants: Mapping[str, Entrant]
    compiled: bool = True
    autotuned: tuple[str, ...] = ()
    capturable: bool = True  # False: the expression waits for the card, and is timed call by call


def _mnk(*sizes: tuple[int, int, int]) -> list[Shape]:
    return [dict(zip("mnk", size, strict=True)) for size in sizes]


def _rows(*sizes: tuple[int, int]) -> list[Shape]:
    return [{"rows": rows, "cols": cols} for rows, cols in sizes]


def _sparse(torch: Any, arrays: Arrays, dims: Shape) -> Callable[[], Any]:
    """cuSPARSE, as torch calls it."""
    size = (dims["rows"], dims["cols"])
    matrix = torch.sparse_csr_tensor(arrays["offsets"], arrays["columns"], arrays["values"], size)
    return lambda: matrix @ arrays["x"]


def _scatter(torch: Any, arrays: Arrays, dims: Shape) -> Callable[[], Any]:
    x = arrays["x"]
    one = torch.ones(1, dtype=torch.int32, device=x.device)
    return lambda: torch.zeros(256, dtype=torch.int32, device=x.device).scatter_add_(0, x.long(), one.expand(x.shape))


def _histc(torch: Any, arrays: Arrays, dims: Shape) -> Callable[[], Any]:
    return lambda: torch.histc(arrays["x"].float(), bins=256, min=0, max=256).int()


_LARGE, _SMALL = (8192, 4096), ((64, 1024), (64, 4096))
_MATMULS = _mnk(
    (256, 256, 256),
    (384, 256, 320),
    (512, 512, 512),
    (1024, 1024, 1024),
    (2048, 2048, 2048),
    (4096, 4096, 4096),
)
_ROWS = _rows(_LARGE, *_SMALL)

FAMILIES: dict[str, Timed] = {
    "matmul_f32": Timed(_MATMULS, {}, autotuned=("256x256x256",)),
    "matmul_large_f32": Timed(_MATMULS, {}, autotuned=("256x256x256",)),
    "matmul_f16": Timed(_mnk((256, 256, 256), (1024, 1024, 1024), (4096, 4096, 4096)), {}, autotuned=("256x256x256",)),
    "matmul_bf16": Timed(_mnk((256, 256, 256), (1024, 1024, 1024), (4096, 4096, 4096)), {}, autotuned=("256x256x256",)),
    "matmul_bias_gelu_f32": Timed(_mnk((256, 256, 256), (2048, 2048, 2048)), {}, autotuned=("256x256x256",)),
    "matmul_residual_norm_f32": Timed(_mnk((256, 256, 256), (2048, 2048, 2048)), {}, autotuned=("256x256x256",)),
    "softmax_f32": Timed(_ROWS, {}),
    "softmax_wide_f32": Timed(_rows((256, 131072), (8, 131072)), {}),
    "layernorm_residual_f32": Timed(_ROWS, {}),
    "rmsnorm_residual_f32": Timed(_ROWS, {}),
    "reduce_rows_f32": Timed(_ROWS, {}),
    "reduce_columns_f32": Timed(_ROWS, {}),
    "transpose_f32": Timed(_ROWS, {}),
    "scan_i32": Timed([{"n": 2**24}, {"n": 2**18}], {}),
    "histogram_u8": Timed([{"n": 2**26}, {"n": 2**18}], {"scatter_add": _scatter, "histc": _histc}, capturable=False),
    "cross_entropy_f32": Timed([{"rows": r, "classes": c} for r, c in ((4096, 32000), (64, 4096), (64, 1024))], {}),
    "conv3x3_f32": Timed(
        [
            {"inputs": 128, "outputs": 128, "height": 224, "width": 224},
            {"inputs": 64, "outputs": 64, "height": 56, "width": 56},
        ],
        {},
    ),
    "diagonal_matmul_f32": Timed([{"m": 4096, "n": 4096}, {"m": 512, "n": 512}], {}),
    "dct8x8_quant_i16": Timed([{"down": 512, "across": 512}, {"down": 135, "across": 240}], {}),
    "sad_search_u8": Timed([{"down": 135, "across": 240}, {"down": 68, "across": 120}], {}),
    "deblock_u8": Timed([{"down": 512, "across": 512}, {"down": 135, "across": 240}], {}),
    "spmv_csr_f32": Timed(
        [
            {"rows": 1 << 20, "cols": 1 << 20, "entries": 1 << 24},
            {"rows": 1 << 14, "cols": 1 << 14, "entries": 1 << 18},
        ],
        {"cuSPARSE": _sparse},
    ),
}

PARTS: dict[str, tuple[str, ...]] = {
    "rows": (
        "softmax_f32", "softmax_wide_f32", "layernorm_residual_f32", "rmsnorm_residual_f32", "reduce_rows_f32",
        "reduce_columns_f32", "transpose_f32", "cross_entropy_f32",
    ),
    "products": (
        "matmul_f32", "matmul_large_f32", "matmul_f16", "matmul_bf16", "matmul_bias_gelu_f32",
        "matmul_residual_norm_f32", "diagonal_matmul_f32",
    ),
    "others": (
        "scan_i32", "histogram_u8", "conv3x3_f32", "dct8x8_quant_i16", "sad_search_u8", "deblock_u8", "spmv_csr_f32",
    ),
}  # fmt: skip
"""The families in parts that one call of a few minutes can measure."""


def inputs_of(torch: Any, contract: Contract, dims: Shape, device: str = "cuda") -> Arrays:
    """Values within the contract's bounds: signed normal floats, even integers; the same at each call."""
    generator = torch.Generator(device=device).manual_seed(7)
    shapes = array_shapes(contract, dims)
    found = {}
    for array in contract.arrays:
        if array.role == "output":
            continue
        kind, shape = getattr(torch, array.dtype), shapes[array.name]
        if array.dtype.startswith(("float", "bfloat")):
            found[array.name] = torch.randn(shape, generator=generator, device=device).to(kind)
            continue
        low = int(array.low or 0)
        below = evaluate(array.below, dims) if array.below else int(array.high or 0) + 1
        drawn = torch.randint(low, below, shape, generator=generator, device=device)
        if array.ascending:
            drawn = drawn.flatten().sort().values
            drawn[0], drawn[-1] = low, below - 1
        found[array.name] = drawn.to(kind).reshape(shape)
    return found


def expression_of(torch: Any, contract: Contract, arrays: Arrays, dims: Shape) -> tuple[Any, dict[str, Any]] | None:
    """The contract's own expression as a function, and its arguments; None where it has none."""
    if not contract.torch:
        return None
    scalars = {a.name: float(a.value) for a in contract.arguments if isinstance(a, ScalarArgument)}
    given = {**arrays, **scalars, **dims}
    return function_of(contract.torch, tuple(given))(torch), given
