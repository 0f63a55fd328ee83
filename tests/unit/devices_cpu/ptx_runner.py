"""Runs PTX texts and single instructions on the `cpu` device, for the tests beside."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kerneltrial.devices.cpu.device import open_cpu
from kerneltrial.devices.device import Binary, Conditions, Run, Values
from kerneltrial.inputs.calls import Buffer, Call, Pointer, ResolvedLaunch, Scalar

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
_REGISTER = {"pred": ".pred", 8: ".b32", 16: ".b16", 32: ".b32", 64: ".b64"}
_WIDTH = {"pred": 1, "bf16": 16, "f16x2": 32, "bf16x2": 32} | {f"{k}{w}": w for k in "usbf" for w in (8, 16, 32, 64)}


@dataclass(frozen=True)
class Argument:
    """A buffer of a test's kernel: an input has values, an output a shape."""

    name: str
    role: str
    dtype: str
    shape: tuple[int, ...]
    initial: str = ""


def array(name: str, values: NDArray[np.generic], role: str = "input") -> Argument:
    return Argument(name, role, values.dtype.name, values.shape, "given")


def out(name: str, dtype: str, *shape: int) -> Argument:
    return Argument(name, "output", dtype, shape, "poisoned")


def scratch(name: str, dtype: str, *shape: int, initial: str = "poisoned") -> Argument:
    return Argument(name, "scratch", dtype, shape, initial)


def call_of(
    arguments: list[Argument | int | float],
    grid: tuple[int, ...],
    block: tuple[int, ...],
    shared_bytes: int = 0,
    entry: str = "kern",
) -> Call:
    """A call of one launch; ints become 32-bit scalars, floats f32."""
    parameters: list[Pointer | Scalar] = []
    for a in arguments:
        if isinstance(a, Argument):
            parameters.append(Pointer(buffer=a.name))
        elif isinstance(a, float):
            parameters.append(Scalar(bytes=4, bits=int(np.float32(a).view(np.uint32))))
        else:
            parameters.append(Scalar(bytes=4, bits=a))
    buffers = tuple(
        Buffer(name=a.name, role=a.role, dtype=a.dtype, shape=a.shape, initial=a.initial)  # type: ignore[arg-type]
        for a in arguments
        if isinstance(a, Argument)
    )
    launch = ResolvedLaunch(
        entry=entry,
        grid=(*grid, 1, 1)[:3],  # type: ignore[arg-type]
        block=(*block, 1, 1)[:3],  # type: ignore[arg-type]
        cluster=(1, 1, 1),
        cooperative=False,
        shared_bytes=shared_bytes,
        parameters=tuple(parameters),
    )
    return Call(buffers=buffers, launches=(launch,))


def run(ptx: str, call: Call, values: Values, checks: str = "all", poison: str = "nan", budget: int = 10**9) -> Run:
    """Load and run once."""
    loaded = open_cpu().load(Binary(ptx=ptx, cubin=b""))
    conditions = Conditions(poison=poison, checks=checks, budget_instructions=budget)  # type: ignore[arg-type]
    return loaded.run(call, values, conditions)


def output(result: Run, name: str, dtype: str) -> NDArray[np.generic]:
    return np.frombuffer(result.outputs[name], dtype)


@dataclass(frozen=True)
class InstructionKernel:
    """A kernel that runs each of some opcodes on each row of operands, and how its results are read."""

    ptx: str
    call: Call
    values: dict[str, NDArray[np.generic]]
    shape: tuple[int, int, int]
    masks: tuple[int, ...]

    def read(self, content: bytes) -> list[list[tuple[int, ...]]]:
        """For each opcode, the results row by row."""
        rows, opcodes, results = self.shape
        found = np.frombuffer(content, np.uint64).reshape(self.shape)
        return [
            [tuple(int(found[row, number, k]) & self.masks[k] for k in range(results)) for row in range(rows)]
            for number in range(opcodes)
        ]


def execute(
    opcodes: list[str], results: list[str], sources: list[str], columns: list[list[int]], tail: str = ""
) -> list[list[tuple[int, ...]]]:
    """Each opcode on each row of operands (bit patterns); all have the same types. `tail` ends the operand list.

    Gives, for each opcode, the results row by row.
    """
    kernel = instruction_kernel(opcodes, results, sources, columns, tail)
    done = run(kernel.ptx, kernel.call, kernel.values, checks="bounds")
    assert done.completed, done.findings
    return kernel.read(done.outputs["out"])


def instruction_kernel(
    opcodes: list[str], results: list[str], sources: list[str], columns: list[list[int]], tail: str = ""
) -> InstructionKernel:
    """The kernel of `execute`."""
    n = len(columns[0])
    store = len(results) * 8
    lines = [HEADER, ".visible .entry kern(.param .u64 in, .param .u64 out)", "{"]
    lines += ["  .reg .b32 %i<4>;", "  .reg .b64 %a<6>;", "  .reg .b32 %z<2>;"]
    lines += [f"  .reg {_register(t)} %s{k};" for k, t in enumerate(sources)]
    lines += [f"  .reg {_register(t)} %d{k};" for k, t in enumerate(results)]
    lines += [
        "  ld.param.u64 %a0, [in];", "  ld.param.u64 %a1, [out];",
        "  mov.u32 %i0, %ctaid.x;", "  mov.u32 %i1, %ntid.x;", "  mov.u32 %i2, %tid.x;",
        "  mad.lo.s32 %i3, %i0, %i1, %i2;", f"  setp.ge.u32 %q, %i3, {n};", "  @%q bra end;",
        f"  mul.wide.u32 %a2, %i3, {8 * len(sources)};", "  add.u64 %a3, %a0, %a2;",
        f"  mul.wide.u32 %a4, %i3, {store * len(opcodes)};", "  add.u64 %a5, %a1, %a4;",
    ]  # fmt: skip
    lines.insert(3, "  .reg .pred %q;")
    for k, t in enumerate(sources):
        if t == "pred":
            lines += [f"  ld.global.u32 %z0, [%a3+{8 * k}];", f"  setp.ne.u32 %s{k}, %z0, 0;"]
        else:
            lines.append(f"  ld.global.b{max(16, _WIDTH[t])} {_loaded(t, k)}, [%a3+{8 * k}];")
    targets = "|".join(f"%d{k}" for k in range(len(results)))
    operands = ", ".join([targets, *(f"%s{k}" for k in range(len(sources)))])
    for number, opcode in enumerate(opcodes):
        lines.append(f"  {opcode} {operands}{tail};")
        for k, t in enumerate(results):
            place = f"[%a5+{store * number + 8 * k}]"
            if t == "pred":
                lines += [f"  selp.u32 %z1, 1, 0, %d{k};", f"  st.global.u32 {place}, %z1;"]
            else:
                lines.append(f"  st.global.b{_stored(t)} {place}, %d{k};")
    lines += ["end:", "  ret;", "}"]
    table = np.array(columns, np.uint64).T.copy()
    arguments = [array("in", table), out("out", "uint64", n, len(opcodes), len(results))]
    masks = tuple((1 << _stored(t)) - 1 if t != "pred" else 1 for t in results)
    call = call_of(list(arguments), (-(-n // 64),), (64,))
    return InstructionKernel("\n".join(lines), call, {"in": table}, (n, len(opcodes), len(results)), masks)


def _register(t: str) -> str:
    return _REGISTER["pred"] if t == "pred" else _REGISTER[_WIDTH[t]]


def _loaded(t: str, k: int) -> str:
    return f"%s{k}"


def _stored(t: str) -> int:
    return 32 if t == "pred" else {8: 32}.get(_WIDTH[t], _WIDTH[t])
