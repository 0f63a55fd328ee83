"""Vendor libraries as subjects of timing: cuBLAS, through NVIDIA's own bindings (`nvmath.bindings`), where it is there.

The library gets the addresses, the stream and the conditions that baseline and candidate get. Its workspace is its own,
as scratch is a candidate's.
"""

import math
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from kerneltrial.devices.cuda.context import Context
from kerneltrial.devices.cuda.memory import Guarded
from kerneltrial.devices.cuda.subjects import SharedBuffers
from kerneltrial.inputs.calls import Buffer, Product
from kerneltrial.inputs.dtypes import from_bytes, widen

WORKSPACE_BYTES = 32 << 20  # what NVIDIA's documentation of cuBLAS recommends on Hopper
_WORKSPACE = Buffer(name="workspace", role="scratch", dtype="uint8", shape=(WORKSPACE_BYTES,), initial="poisoned")
_HEURISTICS = 16  # so many of the library's own suggestions are tried, the fastest is taken
_TRIALS = 7
_CALLS_A_TRIAL = 16
_CUDA_TYPES = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 14}  # cudaDataType_t, library_types.h
# How far the library's result may lie from the baseline's, as a share of its norm: more is another computation.
_DIFFERENCE = {"float32": 1e-4, "float64": 1e-10, "float16": 1e-2, "bfloat16": 5e-2}


class Absent(Exception):
    """The library is not there, or does not do this product; the text says why."""


class CublasProduct:
    """A matrix product by cuBLASLt, with the fastest of the algorithms that its heuristic suggests.

    Raises
    ------
    Absent
        The bindings or the library are not installed, or no algorithm takes this product.
    """

    nodes = 3  # a split of K may add a memset and a kernel that sums
    first = None  # the library tells no launch of its own

    def __init__(self, product: Product, shared: SharedBuffers, context: Context) -> None:
        self._product, self._shared, self._context = product, shared, context
        self._lt, cublas = _bindings()
        first = shared.placed(0)
        self._dtype = first[product.out].buffer.dtype
        self._owned: list[tuple[str, int]] = []
        self._workspace: Guarded | None = None
        try:
            self._handle = self._own("destroy", self._lt.create())
            self._describe(cublas, {name: placed.buffer for name, placed in first.items()})
            self._workspace = Guarded(_WORKSPACE, 0)
            self._algorithms = self._suggested()
            self._chosen = self._asked_for() or self._fastest()
        except self._lt.cuBLASLtError as error:
            self.free()
            raise Absent(f"cuBLAS turned the product down: {error}") from error
        except BaseException:
            self.free()
            raise

    @property
    def told(self) -> dict[str, str]:
        """Which library and algorithm, for the record."""
        return {
            "cublas_version": str(self._lt.get_version()),
            "cublas_binding": f"nvmath-python {_version()}",
            "cublas_algorithms_tried": str(len(self._algorithms)),
            "cublas_algorithm_chosen": str(self._algorithms.index(self._chosen)),
        }

    @property
    def allowed_difference(self) -> float:
        """How far the result may lie from the baseline's; see `_DIFFERENCE`."""
        return _DIFFERENCE[self._dtype] * (30 if self._product.tf32 else 1)

    def grow(self, calls: int) -> None:
        """A product has no inout, so calls share slots."""

    def enqueue(self, index: int) -> None:
        self._run(self._chosen, index)

    def renew(self) -> None:
        """The library is trusted not to keep answers in its workspace."""

    def margins_intact(self) -> bool:
        """Whether nothing was written beside the workspace."""
        return self._workspace is None or self._workspace.margins_intact()

    def free(self) -> None:
        for function, thing in reversed(self._owned):
            getattr(self._lt, function)(thing)
        self._owned.clear()
        if self._workspace is not None:
            self._workspace.free()
            self._workspace = None

    def _own(self, function: str, thing: int) -> int:
        self._owned.append((function, thing))
        return thing

    def _describe(self, cublas: Any, buffers: dict[str, Buffer]) -> None:
        """Row-major C = A B is column-major C' = B' A': the library's first factor is the right one."""
        lt, product = self._lt, self._product
        double = self._dtype == "float64"
        compute = cublas.ComputeType.COMPUTE_64F if double else cublas.ComputeType.COMPUTE_32F
        if product.tf32 and self._dtype == "float32":
            compute = cublas.ComputeType.COMPUTE_32F_FAST_TF32
        scale = _CUDA_TYPES["float64" if double else "float32"]
        self._one, self._zero = (np.array([value], np.float64 if double else np.float32) for value in (1, 0))
        self._operation = self._own("matmul_desc_destroy", lt.matmul_desc_create(compute, scale))
        flags = (("TRANSA", product.right_transposed), ("TRANSB", product.left_transposed))
        for name, transposed in flags:
            self._set("matmul_desc_set_attribute", self._operation, lt.MatmulDescAttribute[name], np.int32(transposed))
        self._layouts = [
            self._own("matrix_layout_destroy", self._layout(buffers[name]))
            for name in (product.right, product.left, product.out)
        ]

    def _layout(self, buffer: Buffer) -> int:
        """A row-major matrix is its transpose in column-major order."""
        rows, columns = buffer.shape
        return int(self._lt.matrix_layout_create(_CUDA_TYPES[buffer.dtype], columns, rows, columns))

    def _set(self, function: str, thing: int, attribute: Any, value: Any) -> None:
        cell = np.array([value])
        getattr(self._lt, function)(thing, attribute, cell.ctypes.data, cell.nbytes)

    def _suggested(self) -> list[int]:
        """Addresses of the algorithms that the heuristic suggests, best first by its own estimate."""
        lt = self._lt
        preference = self._own("matmul_preference_destroy", lt.matmul_preference_create())
        size = lt.MatmulPreferenceAttribute.MAX_WORKSPACE_BYTES
        self._set("matmul_preference_set_attribute", preference, size, np.uint64(WORKSPACE_BYTES))
        self._results = lt.MatmulHeuristicResult(_HEURISTICS)
        count = np.zeros(1, np.int32)
        a, b, c = self._layouts
        where = (self._results.ptr, count.ctypes.data)
        lt.matmul_algo_get_heuristic(self._handle, self._operation, a, b, c, c, preference, _HEURISTICS, *where)
        found = [int(self._results[i].ptr) for i in range(int(count[0]))]
        if not found:
            raise Absent("cuBLAS has no algorithm for this product")
        return found

    def _asked_for(self) -> int:
        """The algorithm that is asked for by its place; 0 where none is, or it does not run here."""
        if not 0 <= self._product.algorithm < len(self._algorithms):
            return 0
        algorithm = self._algorithms[self._product.algorithm]
        return algorithm if math.isfinite(self._trial_us(algorithm)) else 0

    def _fastest(self) -> int:
        times = {algorithm: self._trial_us(algorithm) for algorithm in self._algorithms}
        best = min(times, key=lambda algorithm: times[algorithm])
        if times[best] == float("inf"):
            raise Absent("none of the algorithms that cuBLAS suggests ran")
        return best

    def _trial_us(self, algorithm: int) -> float:
        """Least microseconds of a few readings by the graph clock; infinite where the algorithm does not run."""
        queue = self._context.queue

        def enqueue() -> None:
            for call in range(_CALLS_A_TRIAL):
                self._run(algorithm, call)

        try:
            self._run(algorithm, 0)
            queue.wait()
        except self._lt.cuBLASLtError:
            return float("inf")
        graph = queue.graph(enqueue)
        readings = []
        try:
            for _ in range(_TRIALS):
                with queue.held():
                    queue.record(queue.start)
                    graph.launch()
                    queue.record(queue.end)
                queue.wait()
                readings.append(queue.elapsed_us())
        finally:
            graph.free()
        return min(readings) / _CALLS_A_TRIAL

    def _run(self, algorithm: int, index: int) -> None:
        assert self._workspace is not None
        placed, product = self._shared.placed(index), self._product
        right, left, out = (placed[name].address for name in (product.right, product.left, product.out))
        a, b, c = self._layouts
        self._lt.matmul(
            self._handle,
            self._operation,
            self._one.ctypes.data,
            right,
            a,
            left,
            b,
            self._zero.ctypes.data,
            out,
            c,
            out,
            c,
            algorithm,
            self._workspace.address,
            WORKSPACE_BYTES,
            int(self._context.queue.stream),
        )


def difference(product: Product, buffers: Sequence[Buffer], mine: bytes, other: bytes) -> float:
    """How far two results of a product lie apart: the norm of their difference over that of the second."""
    out = next(buffer for buffer in buffers if buffer.name == product.out)
    one, two = (widen(from_bytes(content, out.dtype, out.shape), out.dtype) for content in (mine, other))
    return float(np.linalg.norm(one - two) / max(float(np.linalg.norm(two)), np.finfo(np.float64).tiny))


def _bindings() -> tuple[Any, Any]:
    try:
        from nvmath.bindings import cublas, cublasLt

        cublasLt.get_version()
    except ImportError as error:
        raise Absent("cuBLAS's bindings are not installed: the extra gpu brings them") from error
    except Exception as error:  # the library's loader has its own errors: each says what it looked for
        raise Absent(f"cuBLAS cannot be loaded: {str(error).splitlines()[0] if str(error) else error!r}") from error
    return cublasLt, cublas


def _version() -> str:
    try:
        return version("nvmath-python")
    except PackageNotFoundError:
        return "unknown"
