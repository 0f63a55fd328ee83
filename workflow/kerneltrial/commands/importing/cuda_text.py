"""A plain CUDA baseline for an imported problem: a kernel an operation that adds up, elementwise work inside it.

Nothing is tuned: a product is a thread an output, a sum is a block an output (or a thread, where it is short). It is
what a person would write down first; where production runs something better, that is the baseline for the config.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kerneltrial.commands.importing.cuda_expressions import C
from kerneltrial.commands.importing.cuda_windows import Windows
from kerneltrial.commands.importing.graph import Graph, Op
from kerneltrial.records.plan import DType

THREADS = 256
SHORT = 32  # a sum of so many terms is one thread's work
_HEAD = """// Plain kernels by `kerneltrial import torch`: one for each operation that adds up, elementwise work inside.
__device__ inline float larger(float a, float b) { return a != a || a > b ? a : b; }
__device__ inline float smaller(float a, float b) { return a != a || a < b ? a : b; }
"""
# Of negative numbers PyTorch rounds a quotient down, and a remainder has the divisor's sign.
_HELPERS = {
    "floor_divided(": """__device__ inline long long floor_divided(long long a, long long b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
""",
    "left_over(": """__device__ inline float left_over(float a, float b) {
  const float r = fmodf(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
__device__ inline long long left_over(long long a, long long b) {
  const long long r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
""",
}
# How a reduction begins, takes a term, and joins two parts.
_FOLDS = {
    "sum": ("0", "total += {0};", "{0} + {1}"),
    "var": ("0", "total += {0};", "{0} + {1}"),
    "prod": ("1", "total *= {0};", "{0} * {1}"),
    "any": ("0", "total |= ({0} != 0);", "{0} | {1}"),
    "max": ("-INFINITY", "total = larger({0}, total);", "larger({0}, {1})"),
    "min": ("INFINITY", "total = smaller({0}, total);", "smaller({0}, {1})"),
}
_WHOLE = {
    "max": ("-9223372036854775807LL", "total = max((long long){0}, total);", "max({0}, {1})"),
    "min": ("9223372036854775807LL", "total = min((long long){0}, total);", "min({0}, {1})"),
}


@dataclass(frozen=True)
class Scratch:
    name: str
    dtype: DType
    elements: int


@dataclass(frozen=True)
class Launch:
    entry: str
    blocks: int
    threads: int
    args: tuple[str, ...]


@dataclass(frozen=True)
class Baseline:
    """Source, and what its plan says."""

    source: str
    scratch: tuple[Scratch, ...]
    launches: tuple[Launch, ...]


def baseline(graph: Graph, outputs: dict[str, str]) -> Baseline:
    """Kernels for a graph; `outputs` maps the contract's names to the graph's."""
    return _Writer(graph, outputs).written()


class _Writer(Windows):
    """One kernel after another."""

    def written(self) -> Baseline:
        texts, launches, scratch = [], [], []
        for op in self.ops.values():
            if op.name not in self.stored:
                continue
            self.lines, self.used, self.known, self.count = [], {}, [{}], 0
            blocks = self._kernel(op)
            out = self.array(op.name)
            arrays = [name for name in self.used if name != out]
            parameters = [f"const {C[self._kind_of(name)]}* {name}" for name in arrays]
            parameters.append(f"{C[op.kind]}* {out}")
            entry = f"make_{op.name}"
            head = f'extern "C" __global__ void {entry}({", ".join(parameters)}) {{'
            texts.append("\n".join([head, *self.lines, "}\n"]))
            launches.append(Launch(entry, blocks, THREADS, (*arrays, out)))
            if op.name not in self.contract:
                scratch.append(Scratch(out, "uint8" if op.kind == "bool" else op.kind, max(1, op.size)))
        helpers = [text for call, text in _HELPERS.items() if any(call in kernel for kernel in texts)]
        source = "\n".join(["".join([_HEAD, *helpers]), *texts])
        return Baseline(source, tuple(scratch), tuple(launches))

    def _kernel(self, op: Op) -> int:
        """Write the body of the kernel that makes `op`; return how many blocks it takes."""
        if op.form == "reduce" and self._length(op) > SHORT:
            self._by_block(op)
            return max(1, op.size)
        if op.form == "scan":
            return self._by_row(op)
        self.say(f"const int at = blockIdx.x * {THREADS} + threadIdx.x;")
        self.say(f"if (at >= {op.size}) return;")
        places = self.places("at", op.shape)
        self.known[-1][self.flat(places, op.shape)] = "at"
        out = f"{self.array(op.name)}[at]"
        match op.form:
            case "reduce":
                self._short(op, places, out)
            case "matmul":
                self._matmul(op, places, out)
            case "conv":
                self.transposed(op, places, out) if op.attributes["transposed"] else self.conv(op, places, out)
            case "pool":
                self.pool(op, places, out)
            case _:
                value = self._inside(op, places)
                self.say(f"{out} = {value};")
        return -(-op.size // THREADS) or 1

    def _length(self, op: Op) -> int:
        shape = self.shapes[str(op.operands[0])]
        return math.prod(shape[d] for d in op.attributes["dims"])

    def _term(self, op: Op, places: Sequence[str], number: str) -> str:
        """The element of a reduction's operand at output `places` and number `number` among those that vanish."""
        shape, dims = self.shapes[str(op.operands[0])], op.attributes["dims"]
        inner = iter(self.places(number, [shape[d] for d in dims]))
        outer = iter(places)
        return self.at(op.operands[0], [next(inner) if d in dims else next(outer) for d in range(len(shape))])

    def _loop(self, op: Op, places: Sequence[str], first: str, update: str, step: str) -> None:
        with self.block(f"for (int r = {first}; r < {self._length(op)}; r += {step})"):
            self.say(update.format(self._term(op, places, "r")))

    def _fold(self, op: Op) -> tuple[str, str, str, str]:
        """C type, beginning, update and joining of a reduction."""
        fn = op.attributes["fn"]
        real = self.kinds[str(op.operands[0])] == "float32"
        kind = "int" if fn == "any" else "float" if real else "long long"
        start, update, join = _WHOLE[fn] if not real and fn in _WHOLE else _FOLDS[fn]
        return kind, start, update, join

    def _divided(self, op: Op, total: str) -> str:
        if op.attributes["fn"] != "var":
            return total
        return f"{total} / {max(self._length(op) - op.attributes['correction'], 0.0)!r}f"

    def _short(self, op: Op, places: Sequence[str], out: str) -> None:
        if op.attributes["fn"].startswith("arg"):
            self._extremum(op, places, "0", "1")
            self.say(f"{out} = seat;")
            return
        kind, start, update, _ = self._fold(op)
        self.say(f"{kind} total = {start};")
        self._loop(op, places, "0", update, "1")
        if op.attributes["fn"] == "var":
            self.say(f"const float mean = total / {self._length(op)}.0f;")
            self.say("total = 0;")
            self._loop(op, places, "0", "total += ({0} - mean) * ({0} - mean);", "1")
        self.say(f"{out} = {self._divided(op, 'total')};")

    def _by_block(self, op: Op) -> None:
        """A block an output: its threads take every 256th term, and join their parts in shared memory."""
        self.say("const int thread = threadIdx.x;")
        places = self.places("at", op.shape) if op.size > 1 else ["0"] * len(op.shape)
        self.lines.insert(0, "  const int at = blockIdx.x;")
        out, fn = self.array(op.name), op.attributes["fn"]
        if fn.startswith("arg"):
            self._seats(op, places, out)
            return
        kind, start, update, join = self._fold(op)
        self.say(f"__shared__ {kind} part[{THREADS}];")
        self.say(f"{kind} total = {start};")
        self._loop(op, places, "thread", update, str(THREADS))
        self._tree(join)
        if fn == "var":
            self.say(f"const float mean = part[0] / {self._length(op)}.0f;")
            self.say("__syncthreads();")
            self.say("total = 0;")
            self._loop(op, places, "thread", "total += ({0} - mean) * ({0} - mean);", str(THREADS))
            self._tree(join)
        self.say(f"if (thread == 0) {out}[at] = {self._divided(op, 'part[0]')};")

    def _tree(self, join: str) -> None:
        self.say("part[thread] = total;")
        self.say("__syncthreads();")
        with self.block(f"for (int half = {THREADS // 2}; half > 0; half /= 2)"):
            self.say(f"if (thread < half) part[thread] = {join.format('part[thread]', 'part[thread + half]')};")
            self.say("__syncthreads();")

    def _extremum(self, op: Op, places: Sequence[str], first: str, step: str) -> None:
        """`best` and `seat`: the first place of the largest or smallest term."""
        better = ">" if op.attributes["fn"] == "argmax" else "<"
        kind = "float" if self.kinds[str(op.operands[0])] == "float32" else "long long"
        self.say(f"{kind} best = 0;")
        self.say("int seat = -1;")
        with self.block(f"for (int r = {first}; r < {self._length(op)}; r += {step})"):
            self.say(f"const {kind} term = {self._term(op, places, 'r')};")
            self.say(
                f"if (seat < 0 || term {better} best || (term != term && best == best)) {{ best = term; seat = r; }}"
            )

    def _seats(self, op: Op, places: Sequence[str], out: str) -> None:
        better = ">" if op.attributes["fn"] == "argmax" else "<"
        kind = "float" if self.kinds[str(op.operands[0])] == "float32" else "long long"
        self._extremum(op, places, "thread", str(THREADS))
        self.say(f"__shared__ {kind} part[{THREADS}];")
        self.say(f"__shared__ int seats[{THREADS}];")
        self.say("part[thread] = best; seats[thread] = seat;")
        self.say("__syncthreads();")
        with self.block(f"for (int half = {THREADS // 2}; half > 0; half /= 2)"):
            with self.block("if (thread < half && seats[thread + half] >= 0)"):
                self.say("const int other = seats[thread + half], own = seats[thread];")
                self.say(f"const {kind} there = part[thread + half], here = part[thread];")
                self.say("const bool nearer = (there == here || (there != there && here != here)) && other < own;")
                wins = f"own < 0 || there {better} here || (there != there && here == here) || nearer"
                self.say(f"if ({wins}) {{ part[thread] = there; seats[thread] = other; }}")
            self.say("__syncthreads();")
        self.say(f"if (thread == 0) {out}[at] = seats[0];")

    def _matmul(self, op: Op, places: Sequence[str], out: str) -> None:
        left, right = op.operands
        lead = list(places[:-2])
        self.say("float total = 0;")
        with self.block(f"for (int k = 0; k < {self.shapes[str(left)][-1]}; k++)"):
            a, b = self.at(left, [*lead, places[-2], "k"]), self.at(right, [*lead, "k", places[-1]])
            self.say(f"total += {a} * {b};")
        self.say(f"{out} = total;")

    def _by_row(self, op: Op) -> int:
        """A thread a row, since each sum rests on the one before."""
        dim, source = op.attributes["dim"], op.operands[0]
        rows = [size if axis != dim else 1 for axis, size in enumerate(op.shape)]
        many = math.prod(rows)
        self.say(f"const int at = blockIdx.x * {THREADS} + threadIdx.x;")
        self.say(f"if (at >= {many}) return;")
        places = self.places("at", rows)
        kind, sign = ("float" if op.kind == "float32" else "long long"), ("+" if op.attributes["fn"] == "sum" else "*")
        self.say(f"{kind} total = {0 if sign == '+' else 1};")
        with self.block(f"for (int r = 0; r < {op.shape[dim]}; r++)"):
            seats = [*places[:dim], "r", *places[dim + 1 :]]
            self.say(f"total = total {sign} {self.at(source, seats)};")
            self.say(f"{self.array(op.name)}[{self.flat(seats, op.shape)}] = total;")
        return -(-many // THREADS)
