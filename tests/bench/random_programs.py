"""Random CUDA programs, the same for the same seed: integers, floats, shared memory, branches, loops, barriers.

Each is a kernel whose every bit CUDA and PTX define, so that two devices must agree on all of it: integer arithmetic is
unsigned or by intrinsics (nothing overflows that must not), shifts and divisors are kept in range, floats go through
correctly rounded operations alone, and barriers, collectives and conflicts of atomics are where all threads come to.
The payload of a NaN, which PTX leaves open, is dropped where a float becomes bits or narrower.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from random_forms import FIELDS, FORMS, LITERALS, ROUNDED

ENTRIES = 256
"""Elements of each of the three inputs."""
RESULTS = 4
"""Words that each thread writes to `out`, of 64 bits."""
TYPES = {"u": "unsigned", "U": "unsigned long long", "f": "float", "d": "double"}

PRELUDE = """
typedef unsigned long long U;
static __device__ unsigned bits(float x) { return x != x ? 0x7fc00000u : __float_as_uint(x); }
static __device__ U bits(double x) { return x != x ? 0x7ff8000000000000ull : (U)__double_as_longlong(x); }
static __device__ float narrow(double x) { return x != x ? __uint_as_float(0x7fc00000u) : (float)x; }
static __device__ double widen(float x) { return x != x ? __hiloint2double(0x7ff80000, 0) : (double)x; }
"""
_HEAD = (
    "const unsigned* __restrict__ in_u, const float* __restrict__ in_f, const double* __restrict__ in_d, U* out, int n"
)

_BLOCKS = (1, 7, 32, 33, 50, 64, 96, 97, 128)


@dataclass(frozen=True)
class Program:
    """One kernel; its text needs the `PRELUDE` and the functions of its module."""

    entry: str
    text: str
    grid: int
    block: int


@dataclass(frozen=True)
class Programs:
    """The programs of one module, and its whole text."""

    source: str
    programs: tuple[Program, ...]


def module_of(seed: int, number: int, count: int) -> Programs:
    """Module `number` of a seed, with `count` kernels."""
    shared = "".join(_function(random.Random(f"{seed} {number} mix{k}"), k) for k in range(2))
    programs = tuple(_program(random.Random(f"{seed} {number} {k}"), f"k{k}") for k in range(count))
    return Programs(PRELUDE + shared + "".join(p.text for p in programs), programs)


def _function(draw: random.Random, number: int) -> str:
    """A device function; the second may call the first."""
    writer = _Writer(draw, f"mix{number}(")
    writer.known = {"u": ["a"], "f": ["x"], "U": [], "d": []}
    with writer.inner(f"static __device__ __noinline__ unsigned mix{number}(unsigned a, float x)"):
        for _ in range(3):
            writer.declare()
        writer.branch(2)
        writer.line(f"return {writer.value('u', 2)};")
    return "\n" + "\n".join(writer.lines) + "\n"


def _program(draw: random.Random, entry: str) -> Program:
    block, grid = draw.choice(_BLOCKS), draw.randint(1, 3)
    writer = _Writer(draw)
    head = f'extern "C" __global__ void __launch_bounds__({block}) {entry}({_HEAD})'
    with writer.inner(head):
        for text in (
            f"__shared__ unsigned s_u[{block}]; __shared__ double s_d[{block}]; __shared__ unsigned cells[16];",
            "unsigned tid = threadIdx.x, gid = blockIdx.x * blockDim.x + tid, local_u[8]; float local_f[4];",
            "for (unsigned k = tid; k < 16u; k += blockDim.x) cells[k] = in_u[k];",
            "for (unsigned k = 0; k < 8u; ++k) local_u[k] = in_u[gid + k & 255u];",
            "for (unsigned k = 0; k < 4u; ++k) local_f[k] = in_f[gid + k & 255u];",
            "unsigned w = in_u[gid & 255u]; float x = in_f[gid & 255u]; double y = in_d[gid & 255u]; U z = (U)w * w;",
            "__syncthreads();",
        ):  # fmt: skip
            writer.line(text)
        writer.uniform(draw.randint(3, 8), block)
        writer.results()
    return Program(entry, "\n" + "\n".join(writer.lines) + "\n", grid, block)


def _bits(type_: str, value: str) -> str:
    """A value's bits, as 64 bits."""
    return f"bits({value})" if type_ == "d" else f"(U)bits({value})" if type_ == "f" else f"(U){value}"


class _Writer:
    """Draws statements; `known` are the variables in scope, by type."""

    def __init__(self, draw: random.Random, avoid: str = "") -> None:
        self.draw = draw
        self.avoid = [avoid] if avoid else []
        self.lines: list[str] = []
        self.known: dict[str, list[str]] = {"u": ["w", "tid", "gid"], "U": ["z"], "f": ["x"], "d": ["y"]}
        self.fixed = {"tid", "gid"}
        self._depth = 0
        self._count = 0
        if avoid:  # functions have no arrays, and call none that comes after them
            self.avoid += ["in_", "mix1(", "(n "]

    def line(self, text: str) -> None:
        self.lines.append("  " * self._depth + text)

    @contextmanager
    def inner(self, head: str, tail: str = "") -> Iterator[None]:
        """A block; what is declared there goes out of scope with it."""
        self.line(head + " {")
        self._depth += 1
        outside = {type_: list(names) for type_, names in self.known.items()}
        yield
        self.known = outside
        self._depth -= 1
        self.line("}" + tail)

    def name(self) -> str:
        self._count += 1
        return f"v{self._count}"

    # -- values

    def value(self, type_: str, depth: int) -> str:
        """An expression; `depth` bounds how deep it nests."""
        if depth <= 0 or self.draw.random() < 0.15:
            return self._leaf(type_)
        form = self._allowed(FORMS[type_])
        deeper = dict.fromkeys("abc", type_) | FIELDS
        used = {field: self.value(t, depth - 1) for field, t in deeper.items() if "{" + field + "}" in form}
        return form.format(r=self.draw.choice(ROUNDED), **used)

    def _allowed(self, forms: tuple[str, ...]) -> str:
        return self.draw.choice([form for form in forms if not any(word in form for word in self.avoid)])

    def _leaf(self, type_: str) -> str:
        names = self.known.get(type_, [])
        if names and self.draw.random() < 0.8:
            return self.draw.choice(names)
        if type_ == "q":
            return f"({self._leaf('u')} > {self._leaf('u')})"
        return self._allowed(LITERALS[type_])

    def results(self) -> None:
        """Write four words of a thread, of every variable and array in scope, so that nothing is computed in vain."""
        names = [(t, name) for t, found in self.known.items() for name in found if name not in self.fixed]
        self.draw.shuffle(names)
        local = " + ".join(f"local_u[{k}]" for k in range(8)), " + ".join(f"local_f[{k}]" for k in range(4))
        for k, type_ in enumerate(self.draw.sample(["u", "U", "f", "d"], RESULTS)):
            words = [_bits(type_, self.value(type_, 2))] + [_bits(*pair) for pair in names[k::RESULTS]]
            words += [_bits("u", f"({local[0]} + cells[tid & 15u])")] * (k == 0) + [_bits("f", f"({local[1]})")] * (
                k == 1
            )
            self.line(f"out[gid * {RESULTS}u + {k}u] = {' * 31u ^ '.join(words)};")

    # -- statements

    def declare(self) -> None:
        type_, name = self.draw.choice("uuuUffd"), self.name()
        self.line(f"{TYPES[type_]} {name} = {self.value(type_, self.draw.randint(1, 3))};")
        self.known[type_].append(name)

    def assign(self) -> None:
        type_ = self.draw.choice("uuuUffd")
        name = self.draw.choice([n for n in self.known[type_] if n not in self.fixed] or [""])
        if not name:
            self.declare()
            return
        by = self.draw.choice(("", "+", "-", "*") if type_ in "fd" else ("", "+", "^", "*"))
        self.line(f"{name} {by}= {self.value(type_, self.draw.randint(1, 3))};")

    def body(self, depth: int) -> None:
        """Some statements that threads need not reach together."""
        for _ in range(self.draw.randint(1, 3)):
            self.statement(depth)

    def statement(self, depth: int) -> None:
        plain: tuple[Callable[[], None], ...] = (self.declare, self.assign, self.assign)
        nested = (self.branch, self.branch, self.loop, self.switch)
        if depth > 0 and self.draw.random() < 0.4:
            self.draw.choice(nested)(depth)
        elif not self.avoid and self.draw.random() < 0.25:
            self.local()
        else:
            self.draw.choice(plain)()

    def local(self) -> None:
        """To or from an array of the thread's own, by a computed index."""
        array, size, type_ = self.draw.choice((("local_u", 8, "u"), ("local_f", 4, "f")))
        place = f"{array}[{self.value('u', 1)} & {size - 1}u]"
        if self.draw.random() < 0.5:
            self.line(f"{place} = {self.value(type_, 2)};")
            return
        name = self.name()
        self.line(f"{TYPES[type_]} {name} = {place};")
        self.known[type_].append(name)

    def branch(self, depth: int) -> None:
        with self.inner(f"if ({self.value('q', 2)})"):
            self.body(depth - 1)
        if self.draw.random() < 0.5:
            with self.inner("else"):
                self.body(depth - 1)

    def loop(self, depth: int) -> None:
        counter = self.name()
        with self.inner(f"for (unsigned {counter} = 0; {counter} < ({self.value('u', 1)} & 7u); ++{counter})"):
            self.known["u"].append(counter)
            self.fixed.add(counter)
            self.body(depth - 1)
            if self.draw.random() < 0.5:
                self.line(f"if ({self.value('q', 1)}) {self.draw.choice(('break', 'continue'))};")
                self.assign()

    def switch(self, depth: int) -> None:
        with self.inner(f"switch ({self.value('u', 2)} & 3u)"):
            for case in range(3):
                with self.inner(f"case {case}u:", self.draw.choice((" break;", ""))):
                    self.body(depth - 1)

    # -- what all threads of a block come to

    def uniform(self, count: int, block: int, depth: int = 1) -> None:
        """Statements between which all threads meet."""
        meetings = [self.exchange, self.collect] + [self.lanes] * (block % 32 == 0)
        for _ in range(count):
            chance = self.draw.random()
            if chance < 0.55:
                self.statement(3)
            elif chance < 0.85 or not depth:
                self.draw.choice(meetings)()
            elif chance < 0.93:
                with self.inner(self.draw.choice(("if (blockIdx.x & 1u)", "if (n & 2)", "if (in_u[blockIdx.x] & 1u)"))):
                    self.uniform(2, block, depth - 1)
            else:
                counter = self.name()
                with self.inner(f"for (int {counter} = 0; {counter} < (n & 3); ++{counter})"):
                    self.uniform(2, block, depth - 1)

    def exchange(self) -> None:
        """Each thread writes one place of shared memory, and reads another's after a barrier."""
        array, type_ = self.draw.choice((("s_u", "u"), ("s_d", "d")))
        self.line(f"{array}[(tid + {self.draw.randint(0, 130)}u) % blockDim.x] = {self.value(type_, 2)};")
        self.line("__syncthreads();")
        name = self.name()
        self.line(f"{TYPES[type_]} {name} = {array}[{self.value('u', 1)} % blockDim.x];")
        self.known[type_].append(name)
        self.line("__syncthreads();")

    def collect(self) -> None:
        """Atomics of one kind, whose order does not matter, on a few places of shared memory."""
        operation = self.draw.choice(("Add", "Min", "Max", "And", "Or", "Xor"))
        self.line(f"atomic{operation}(&cells[{self.value('u', 1)} & 15u], {self.value('u', 2)});")
        self.line("__syncthreads();")
        name = self.name()
        self.line(f"unsigned {name} = cells[{self.value('u', 1)} & 15u];")
        self.known["u"].append(name)
        self.line("__syncthreads();")

    def lanes(self) -> None:
        """A collective of whole warps."""
        name, type_ = self.name(), self.draw.choice("uuf")
        value = self.value(type_, 2)
        texts = [
            f"__shfl_xor_sync(~0u, {value}, {self.draw.randint(1, 31)})",
            f"__shfl_sync(~0u, {value}, (int)({self.value('u', 1)} & 31u))",
            f"__shfl_down_sync(~0u, {value}, {self.draw.randint(1, 31)}u)",
        ]
        if type_ == "u":
            texts += [
                f"__reduce_{self.draw.choice(('add', 'min', 'xor'))}_sync(~0u, {value})",
                f"__ballot_sync(~0u, {self.value('q', 1)})",
                f"(unsigned)__any_sync(~0u, {self.value('q', 1)})",
            ]
        self.line(f"{TYPES[type_]} {name} = {self.draw.choice(texts)};")
        self.known[type_].append(name)
