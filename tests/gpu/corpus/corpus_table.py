"""The corpus: small kernels of many kinds on ragged shapes, with their inputs, launches and bounds.

A kernel without a bound must give the same bits on every device. A bound `(relative, absolute)` is for kernels with
approximate instructions, tensor cores or sums of floats in an open order.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from kerneltrial.inputs.calls import Buffer, Call, Pointer, ResolvedLaunch, Scalar

Array = NDArray[np.generic]
Parameter = str | int | float


@dataclass(frozen=True)
class Place:
    """A buffer: what it holds before (None: poison or zeros), and its shape."""

    role: str
    dtype: str
    shape: tuple[int, ...]
    initial: str
    draw: Callable[[np.random.Generator], Array] | None = None
    read_as: str = ""


@dataclass(frozen=True)
class Kernel:
    """One kernel on one shape. `source` is a file of this folder, `parameters` names of buffers and numbers."""

    name: str
    source: str
    entry: str
    places: dict[str, Place]
    parameters: tuple[Parameter, ...]
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared: int = 0
    bound: tuple[float, float] | None = None
    needs: tuple[str, ...] = field(default=())

    def values(self) -> dict[str, Array]:
        """Inputs, the same on every machine."""
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        return {name: place.draw(rng) for name, place in self.places.items() if place.draw}

    def call(self, entry: str = "") -> Call:
        """The call, with the entry's name as the compiler gave it."""
        launch = ResolvedLaunch(
            entry=entry or self.entry, grid=(*self.grid, 1, 1)[:3], block=(*self.block, 1, 1)[:3],  # type: ignore[arg-type]
            cluster=(1, 1, 1), cooperative=False, shared_bytes=self.shared,
            parameters=tuple(cell for parameter in self.parameters for cell in self._cells(parameter)),
        )  # fmt: skip
        buffers = tuple(
            Buffer(name=name, role=p.role, dtype=p.dtype, shape=p.shape, initial=p.initial)  # type: ignore[arg-type]
            for name, p in self.places.items()
        )
        return Call(buffers=buffers, launches=(launch,))

    def _cells(self, parameter: Parameter) -> list[Pointer | Scalar]:
        if isinstance(parameter, float):
            return [Scalar(bytes=4, bits=int(np.float32(parameter).view(np.uint32)))]
        if isinstance(parameter, int):
            return [Scalar(bytes=4, bits=parameter & 0xFFFFFFFF)]
        if not self.source.endswith(".py"):
            return [Pointer(buffer=parameter)]
        # numba: every contiguous array is 0, 0, elements, bytes of one, address, extents, strides
        place = self.places[parameter]
        size = np.dtype(place.dtype).itemsize
        strides = [size * prod(place.shape[k + 1 :]) for k in range(len(place.shape))]
        longs = [Scalar(bytes=8, bits=v) for v in (0, 0, prod(place.shape), size)]
        return [*longs, Pointer(buffer=parameter), *(Scalar(bytes=8, bits=v) for v in (*place.shape, *strides))]


# -- buffers


def floats(*shape: int, dtype: str = "float32", scale: float = 1.0) -> Place:
    """Normal values with exact zeros among them."""

    def draw(rng: np.random.Generator) -> Array:
        values = rng.standard_normal(shape) * scale
        values[rng.random(shape) < 0.02] = 0.0
        return values.astype(dtype)

    return Place("input", dtype, shape, "given", draw)


def brains(*shape: int) -> Place:
    """bf16 as the upper halves of floats."""

    def draw(rng: np.random.Generator) -> Array:
        return (rng.standard_normal(shape).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)

    return Place("input", "uint16", shape, "given", draw)


def integers(*shape: int, dtype: str = "int32", low: int | None = None, high: int | None = None) -> Place:
    """Over the whole range of the type where no bounds are given."""
    span = np.iinfo(dtype)
    first, last = span.min if low is None else low, span.max if high is None else high
    return Place("input", dtype, shape, "given", lambda rng: rng.integers(first, last, shape, dtype, endpoint=True))


def fixed(values: Array) -> Place:
    return Place("input", values.dtype.name, values.shape, "given", lambda rng: values)


def out(*shape: int, dtype: str = "float32", read_as: str = "") -> Place:
    return Place("output", dtype, shape, "poisoned", None, read_as or dtype)


def inout(values: Array, read_as: str = "") -> Place:
    return Place("inout", values.dtype.name, values.shape, "given", lambda rng: values.copy(), read_as)


def scratch(*shape: int, dtype: str = "float32", initial: str = "poisoned") -> Place:
    return Place("scratch", dtype, shape, initial)


def _up(a: int, b: int) -> int:
    return -(-a // b)


# -- kernels


def _elementwise() -> list[Kernel]:
    n = 1003
    made = []

    def add(entry: str, dtype: str, per: int = 1, to: str = "", bound: tuple[float, float] | None = None,
            scale: float = 2.0, last: tuple[Parameter, ...] = ()) -> None:  # fmt: skip
        source = floats(n, dtype=dtype, scale=scale) if dtype[0] == "f" else integers(n, dtype=dtype)
        places = {"x": source, "y": source, "z": out(n * per, dtype=to or dtype)}
        made.append(Kernel(entry, "elementwise.cu", entry, places, ("x", "y", "z", n, *last), (_up(n, 96),), (96,),
                           bound=bound))  # fmt: skip

    add("axpy", "float32", last=(-1.7,))
    for entry in ("saturated", "quotients", "trigonometry", "called"):
        add(entry, "float32")
    # atanf takes rcp.approx.ftz.f32, whose last bit is a card's own: 2^-23 of its argument, and of the sum
    add("logarithms", "float32", bound=(1.2e-7, 1.2e-7))
    add("directed", "float32", 12)
    add("directed_double", "float64", 8)
    add("bits", "uint32", 12)
    add("wide_integers", "uint64", 8)
    add("small_division", "int32")
    add("product_of_128_bits", "uint64", 2)
    add("bytes_dot", "int32")
    add("sorted_in_local", "int32")
    for entry in ("exponentials", "sigmoid", "gelu", "fast_division"):
        add(entry, "float32", bound=(4e-6, 1e-6))
    add("double_functions", "float64", bound=(1e-14, 1e-14))
    n2 = 517
    places = {"x": floats(n2), "d": floats(n2, dtype="float64"), "z": out(12 * n2, dtype="int64")}
    made.append(Kernel("conversions", "elementwise.cu", "conversions", places, ("x", "d", "z", n2), (9,), (64,)))
    made.append(Kernel("mandelbrot", "elementwise.cu", "mandelbrot", {"z": out(45, 67, dtype="int32")}, ("z", 67, 45),
                       (5, 6), (16, 8)))  # fmt: skip
    made.append(Kernel("philox", "elementwise.cu", "philox", {"z": out(777, dtype="uint32")}, ("z", 777, 42), (7,),
                       (128,)))  # fmt: skip
    gather = {"t": floats(37, 11), "i": integers(50, low=-100, high=100), "z": out(550)}
    made.append(Kernel("gathered", "elementwise.cu", "gathered", gather, ("t", "i", "z", 550, 37, 11), (9,), (64,)))
    crc = {"x": integers(61, 13, dtype="uint8"), "z": out(61, dtype="uint32")}
    made.append(Kernel("crc32", "elementwise.cu", "crc32", crc, ("x", "z", 61, 13), (2,), (32,)))
    return made


def _matmul() -> list[Kernel]:
    made = []

    def add(entry: str, m: int, n: int, k: int, places: dict[str, Place], grid: tuple[int, ...],
            block: tuple[int, ...], last: int = 0, extra: tuple[str, ...] = (),
            bound: tuple[float, float] | None = None) -> None:  # fmt: skip
        made.append(Kernel(f"{entry}_{m}x{n}x{k}", "matmul.cu", entry, places, ("A", "B", "C", *extra, m, n, last or k),
                           grid, block, bound=bound))  # fmt: skip

    for m, n, k in ((31, 37, 29), (64, 48, 80)):
        plain = {"A": floats(m, k), "B": floats(k, n), "C": out(m, n)}
        grid16 = (_up(n, 16), _up(m, 16))
        add("naive", m, n, k, plain, grid16, (16, 16))
        add("tiled", m, n, k, plain, grid16, (16, 16))
        add("registers", m, n, k, plain, (_up(n, 32), _up(m, 32)), (64,))
        add("pipelined", m, n, k, plain, grid16, (16, 16))
        more = {"part": scratch(3, m, n), "done": scratch(16, dtype="uint32", initial="self_restoring")}
        add("split_k", m, n, k, plain | more, (*grid16, 3), (16, 16), extra=("part", "done"))
    m, n, k = 23, 19, 40
    grid = (_up(n, 8), _up(m, 8))
    grid16 = (_up(n, 16), _up(m, 16))
    add("transposed", m, n, k, {"A": floats(k, m), "B": floats(n, k), "C": out(m, n)}, grid, (8, 8))
    double = {"A": floats(m, k, dtype="float64"), "B": floats(k, n, dtype="float64"), "C": out(m, n, dtype="float64")}
    add("tiled_double", m, n, k, double, grid16, (16, 16))
    whole = {"A": integers(m, k), "B": integers(k, n), "C": out(m, n, dtype="int32")}
    add("tiled_int", m, n, k, whole, grid16, (16, 16))
    add("int8_rows", m, n, k, {"A": integers(m, k), "B": integers(n, k), "C": out(m, n, dtype="int32")}, grid, (8, 8))
    halves = {"A": floats(m, k, dtype="float16"), "B": floats(n, k, dtype="float16")}
    add("half2_columns", m, n, k, halves | {"C": out(m, n, dtype="float16")}, grid, (8, 8), last=k // 2)
    add("half_in_float", m, n, k, halves | {"C": out(m, n)}, grid, (8, 8))
    brain = {"A": brains(m, k), "B": brains(n, k), "C": out(m, n, dtype="uint16", read_as="bfloat16")}
    add("bf16_columns", m, n, k, brain, grid, (8, 8))
    made.append(Kernel("gemv", "matmul.cu", "gemv", {"A": floats(21, 60), "x": floats(60), "y": out(21)},
                       ("A", "x", "y", 21, 60), (6,), (128,)))  # fmt: skip
    return made


def _tensor() -> list[Kernel]:
    m, n, k = 48, 32, 64
    made = []
    # f32 accumulators: within 2^-20 of the sum of absolute terms of each mma, here some 50 at most
    near, half_near = (1e-5, 1e-4), (2e-2, 2e-2)

    def add(entry: str, a: Place, b: Place, c: Place, wide: int, bound: tuple[float, float] | None = near) -> None:
        made.append(Kernel(entry, "tensor.cu", entry, {"A": a, "B": b, "C": c}, ("A", "B", "C", n, k),
                           (n // wide, m // 16), (32,), bound=bound))  # fmt: skip

    halves, columns = floats(m, k, dtype="float16"), floats(n, k, dtype="float16")
    add("wmma_float", halves, floats(k, n, dtype="float16"), out(m, n), 16)
    add("wmma_half", halves, floats(k, n, dtype="float16"), out(m, n, dtype="float16"), 16, half_near)
    add("wmma_bf16", brains(m, k), brains(n, k), out(m, n), 16)
    add("mma_half", halves, columns, out(m, n), 8)
    add("mma_bf16", brains(m, k), brains(n, k), out(m, n), 8)
    add("mma_tf32", floats(m, k), floats(n, k), out(m, n), 8)
    add("mma_int8", integers(m, k, dtype="int8"), integers(n, k, dtype="int8"), out(m, n, dtype="int32"), 8, None)
    add("by_ldmatrix", halves, floats(k, n, dtype="float16"), out(m, n), 8)
    return made


def _reductions() -> list[Kernel]:
    made = []

    def add(entry: str, places: dict[str, Place], parameters: tuple[Parameter, ...], grid: int, block: int,
            bound: tuple[float, float] | None = None) -> None:  # fmt: skip
        made.append(Kernel(entry, "reductions.cu", entry, places, parameters, (grid,), (block,), bound=bound))

    n = 1001
    small = integers(n, low=-50, high=100)
    add("tree_sum", {"x": floats(n), "y": out(8)}, ("x", "y", n), 8, 128)
    add("shuffle_sum", {"x": floats(n), "y": out(3)}, ("x", "y", n), 3, 128)
    add("argmax", {"x": floats(5, 301), "y": out(5, dtype="int32")}, ("x", "y", 301), 5, 128)
    add("redux", {"x": integers(n), "y": out(128, dtype="int32")}, ("x", "y", n), 8, 128)
    add("votes", {"x": small, "y": out(n, dtype="int32")}, ("x", "y", n), 8, 128)
    add("moments", {"x": floats(7, 213, scale=3.0), "y": out(7, 2)}, ("x", "y", 213), 7, 64)
    start = np.array([0, -(2**31), 2**31 - 1, 0, 0, 0, 0, 0], np.int32)
    add("integer_atomics", {"x": integers(n), "y": inout(start)}, ("x", "y", n), 8, 128)
    add("float_atomics", {"x": floats(n), "y": inout(np.zeros(3, np.float32))}, ("x", "y", n), 8, 128, (1e-5, 1e-4))
    lowest = np.array([np.float32(-1e9).view(np.int32)], np.int32)
    add("float_max_by_cas", {"x": floats(n), "y": inout(lowest)}, ("x", "y", n), 8, 128)
    last = {"x": floats(n), "y": out(1), "part": scratch(6), "done": scratch(1, dtype="uint32",
            initial="self_restoring")}  # fmt: skip
    add("last_block_sum", last, ("x", "y", "part", "done", n), 6, 64)
    add("scan_steps", {"x": integers(4, 201), "y": out(4, 201, dtype="int32")}, ("x", "y", 201), 4, 256)
    add("scan_tree", {"x": floats(4, 201), "y": out(4, 201)}, ("x", "y", 201), 4, 128)
    add("scan_warps", {"x": floats(4, 201), "y": out(4, 201)}, ("x", "y", 201), 4, 256)
    look = {"x": small, "y": out(n, dtype="int32"), "s": scratch(16, dtype="int32", initial="zeroed")}
    add("scan_look_back", look, ("x", "y", "s", n), 8, 128)
    kept = {"x": small, "y": out(n, dtype="int32"), "c": out(1, dtype="int32")}
    add("compact", kept, ("x", "y", "c", n), 1, 256)
    add("tiles", {"x": floats(n), "y": out(n)}, ("x", "y", n), 8, 128)
    add("aggregated", {"x": small, "y": inout(np.zeros(2, np.int32))}, ("x", "y", n), 8, 128)
    add("matched", {"x": small, "y": out(n, dtype="int32")}, ("x", "y", n), 8, 128)
    return made


def _rows() -> list[Kernel]:
    made = []
    near = (4e-6, 2e-6)
    for rows, n in ((3, 17), (5, 333)):
        x = floats(rows, n, scale=4.0)

        def add(entry: str, w: int = 0, block: int = 128, bound: tuple[float, float] | None = None, rows: int = rows,
                n: int = n, x: Place = x, y: Place | None = None) -> None:  # fmt: skip
            weight = {"w": floats(w, dtype=x.dtype)} if w else {}
            places = {"x": x, **weight, "y": y or out(rows, n)}
            names = ("x", "w", "y", n) if w else ("x", "y", n)
            made.append(Kernel(f"{entry}_{n}", "rows.cu", entry, places, names, (rows,), (block,), bound=bound))

        add("softmax", bound=near)
        add("softmax_online", block=32, bound=near)
        add("log_softmax", bound=near)
        add("layer_norm", n, bound=near)
        add("rms_norm", n)
        add("row_l1", y=out(rows))
        half = floats(rows, n, dtype="float16")
        add("rms_norm_half", n, x=half, y=out(rows, n, dtype="float16"))
    places = {"x": floats(500), "w": floats(28), "y": out(500)}
    made.append(Kernel("batch_norm", "rows.cu", "batch_norm", places, ("x", "w", "y", 500), (4,), (128,)))
    return made


def _halves() -> list[Kernel]:
    n = 450
    made = []

    def add(entry: str, source: Place, per: int, to: str, bound: tuple[float, float] | None = None,
            read_as: str = "") -> None:  # fmt: skip
        places = {"x": source, "y": source, "z": out(n * per, dtype=to, read_as=read_as)}
        made.append(Kernel(entry, "halves.cu", entry, places, ("x", "y", "z", n), (_up(n, 64),), (64,), bound=bound))

    one, pair = floats(n, dtype="float16", scale=2.0), floats(n, 2, dtype="float16", scale=2.0)
    add("half_axpy", one, 1, "float16")
    add("half_arithmetic", one, 10, "float16")
    add("half2_arithmetic", pair, 12, "float16")
    add("half_comparisons", floats(n, dtype="float16", scale=1e-6), 1, "int32")
    add("half_conversions", floats(n, scale=3.0), 8, "float16")
    add("bf16_arithmetic", brains(n), 8, "uint16", read_as="bfloat16")
    add("bf16x2_arithmetic", brains(n, 2), 8, "uint16", read_as="bfloat16")
    add("bf16_conversions", floats(n), 4, "uint16", read_as="bfloat16")
    add("half_division", one, 1, "float16", (1e-3, 1e-6))
    add("half_exp", one, 1, "float16", (2e-3, 1e-5))
    add("half2_tanh", pair, 2, "float16", (1e-3, 2e-3))
    whole = Place("input", "float16", (n, 2), "given", lambda rng: rng.integers(-3, 4, (n, 2)).astype(np.float16))
    sums = {"x": whole, "y": inout(np.zeros((4, 2), np.float16))}
    made.append(Kernel("half_atomics", "halves.cu", "half_atomics", sums, ("x", "y", n), (8,), (64,)))
    return made


def _fields() -> list[Kernel]:
    h, w = 45, 53
    made = []

    def add(entry: str, x: Place, y: Place, parameters: tuple[Parameter, ...], grid: tuple[int, ...],
            block: tuple[int, ...], shared: int = 0, **more: Place) -> None:  # fmt: skip
        places = {"x": x, **more, "y": y}
        made.append(Kernel(entry, "fields.cu", entry, places, parameters, grid, block, shared))

    grid = (_up(w, 16), _up(h, 16))
    image = floats(h, w)
    add("transpose", image, out(w, h), ("x", "y", h, w), grid, (16, 16))
    bytes_ = integers(h, w, dtype="uint8")
    add("transpose_bytes", bytes_, out(w, h, dtype="uint8"), ("x", "y", h, w), grid, (16, 16))
    for entry in ("heat", "heat_tiled", "conv3x3"):
        add(entry, image, out(h, w), ("x", "y", h, w), grid, (16, 16))
    add("laplace3d", floats(5, 19, 23), out(5, 19, 23), ("x", "y", 5, 19, 23), (2, 3, 5), (16, 8))
    add("conv_channels", floats(3, 17, 21), out(4, 17, 21), ("x", "f", "y", 3, 17, 21), (2, 3, 4), (16, 8),
        f=floats(4, 3, 3, 3))  # fmt: skip
    add("blur_rows", image, out(h, w), ("x", "y", h, w), (h,), (32,), shared=4 * (w + 4))
    add("median3x3", integers(h, w), out(h, w, dtype="int32"), ("x", "y", h, w), grid, (16, 16))
    add("box_bytes", integers(301, 4, dtype="uint8"), out(301, 4, dtype="uint8"), ("x", "y", 301), (3,), (128,))
    add("life", bytes_, out(h, w, dtype="uint8"), ("x", "y", h, w), grid, (16, 16))
    add("dct8x8", floats(24, 40, scale=50.0), out(24, 40), ("x", "y", 5), (5, 3), (8, 8))
    area = integers(32, 40, dtype="uint8")
    add("sad_search", area, out(2, 3, dtype="int32"), ("x", "r", "y", 40, 5), (3, 2), (64,), r=area)
    angle = -2 * np.pi * np.arange(64) / 64
    roots = fixed(np.stack([np.cos(angle), np.sin(angle)], 1).astype(np.float32))
    add("fft64", floats(5, 64, 2), out(5, 64, 2), ("x", "y", "r"), (5,), (32,), r=roots)
    return made


def _sparse(rows: int, columns: int) -> dict[str, Place]:
    rng = np.random.default_rng(3)
    lengths = rng.integers(0, 60, rows) * (rng.random(rows) < 0.8)
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    column = rng.integers(0, columns, int(start[-1])).astype(np.int32)
    return {"s": fixed(start), "c": fixed(column), "v": floats(int(start[-1])), "x": floats(columns), "y": out(rows)}


def _tables() -> list[Kernel]:
    made = []

    def add(entry: str, places: dict[str, Place], parameters: tuple[Parameter, ...], grid: int, block: int,
            shared: int = 0, bound: tuple[float, float] | None = None) -> None:  # fmt: skip
        made.append(Kernel(entry, "tables.cu", entry, places, parameters, (grid,), (block,), shared, bound))

    n = 3001
    words = integers(n, dtype="uint32")
    zeros = inout(np.zeros(64, np.uint32))
    add("histogram_shared", {"x": words, "y": zeros}, ("x", "y", n), 5, 128)
    add("histogram_global", {"x": words, "y": zeros}, ("x", "y", n), _up(n, 128), 128)
    add("bitonic", {"x": integers(3, 199), "y": out(3, 199, dtype="int32")}, ("x", "y", 199), 3, 256)
    add("odd_even", {"x": floats(3, 77), "y": out(3, 77)}, ("x", "y", 77), 3, 64, 4 * 77)
    add("radix_pass", {"x": words, "y": out(n, dtype="uint32")}, ("x", "y", n, 8), 1, 128)
    sparse = _sparse(150, 90)
    add("csr_rows", sparse, ("s", "c", "v", "x", "y", 150), 3, 64)
    add("csr_warps", sparse, ("s", "c", "v", "x", "y", 150), 38, 128)
    text = integers(6, 40, dtype="uint8")
    pair = {"a": text, "b": text, "y": out(6, dtype="int32")}
    add("edit_distance", pair, ("a", "b", "y", 40), 6, 41)
    add("bodies", {"x": floats(70, 4), "y": out(70, 3)}, ("x", "y", 70), 3, 32, 0, (1e-4, 1e-3))
    nodes = integers(200, low=0, high=39)
    far = np.full(40, 1000000, np.int32)
    far[0] = 0
    graph = {"f": nodes, "t": nodes, "c": integers(200, low=1, high=50), "y": inout(far)}
    add("relax", graph, ("f", "t", "c", "y", 200, 41), 1, 64)
    add("run_lengths", {"x": integers(500), "y": out(500, dtype="int32")}, ("x", "y", 500), 4, 128)
    return made


def _blocks() -> list[Kernel]:
    made = []
    n = 500
    for entry, dtype, results, grid in (
        ("cub_sum", "int32", 8, 8), ("cub_sum_float", "float32", 8, 8), ("cub_scan", "int32", n, 8),
        ("cub_sort", "uint32", n, 2), ("cub_warp_max", "float32", 16, 8),
    ):  # fmt: skip
        source = floats(n) if dtype == "float32" else integers(n, dtype=dtype)
        made.append(Kernel(entry, "blocks.cu", entry, {"x": source, "y": out(results, dtype=dtype)}, ("x", "y", n),
                           (grid,), (64,)))  # fmt: skip
    return made


def _numba() -> list[Kernel]:
    f = "numba_kernels.py"
    line = {"x": floats(333), "y": floats(333), "z": out(333)}
    product = {"a": floats(21, 13), "b": floats(13, 18), "c": out(21, 18)}
    sums = {"x": floats(100, 7, dtype="float64"), "y": out(7, dtype="float64")}
    bins = {"x": integers(700, dtype="int32", low=0), "y": inout(np.zeros(16, np.int32))}
    steps = {"x": integers(90, dtype="int32", low=0), "y": out(90, dtype="int32")}
    return [
        Kernel("numba_axpy", f, "axpy", line, ("x", "y", "z"), (6,), (64,)),
        Kernel("numba_matmul", f, "matmul", product, ("a", "b", "c"), (3, 3), (8, 8)),
        Kernel("numba_column_sums", f, "column_sums", sums, ("x", "y"), (7,), (64,)),
        Kernel("numba_histogram", f, "histogram", bins, ("x", "y"), (6,), (128,)),
        Kernel("numba_collatz", f, "collatz", steps, ("x", "y"), (3,), (32,)),
    ]


def kernels() -> list[Kernel]:
    """All of the corpus; names are unique."""
    parts = (_elementwise, _matmul, _tensor, _reductions, _rows, _halves, _fields, _tables, _blocks, _numba)
    return [kernel for part in parts for kernel in part()]
