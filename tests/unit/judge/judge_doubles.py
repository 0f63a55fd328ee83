"""A matmul contract, its oracle, and a runner that calls Python functions in place of kernels."""

import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerneltrial.devices.device import Binary, Conditions, Refused, Run, Values
from kerneltrial.devices.poison import poison_into
from kerneltrial.inputs.calls import Call
from kerneltrial.inputs.oracle import Oracle, load
from kerneltrial.judge.setup import JudgeSetup, Subject
from kerneltrial.records.build import Built, NoCubin
from kerneltrial.records.case import Case, Cases
from kerneltrial.records.contract import Array, Contract, DimensionArgument, Range, Tolerance
from kerneltrial.records.plan import Launch, LaunchPlan, Scratch, Variant
from kerneltrial.records.protocol import Protocol
from kerneltrial.records.reason import Finding

Arrays = dict[str, NDArray[Any]]
Kernel = Callable[[Arrays, Arrays, dict[str, Any]], Finding | None]

ORACLE = """
import numpy as np
def oracle(inputs, dims):
    return {"C": inputs["A"].astype(np.float64) @ inputs["B"].astype(np.float64)}
def terms(inputs, dims):
    return {"C": np.abs(inputs["A"].astype(np.float64)) @ np.abs(inputs["B"].astype(np.float64))}
"""
PTX = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n"


def contract(**changes: Any) -> Contract:
    dims = {name: Range(minimum=1, maximum=512) for name in "mnk"}
    fields: dict[str, Any] = {
        "name": "matmul",
        "description": "C = A B",
        "arguments": (
            Array(name="A", role="input", dtype="float32", shape=("m", "k")),
            Array(name="B", role="input", dtype="float32", shape=("k", "n")),
            Array(name="C", role="output", dtype="float32", shape=("m", "n")),
            *(DimensionArgument(name=name) for name in "mnk"),
        ),
        "dimensions": dims,
        "tolerances": {"C": Tolerance(scaled=Decimal(64))},
        "operations": "2 * m * n * k",
        "bytes": "4 * (m * k + k * n + m * n)",
    }
    return Contract(**{**fields, **changes})


def plan(when: str = "1", scratch: tuple[Scratch, ...] = ()) -> LaunchPlan:
    args = ("A", "B", "C", *(s.name for s in scratch), "m", "n", "k")
    launch = Launch(entry="k", grid=("m", "n", "1"), block=("1", "1", "1"), args=args)
    return LaunchPlan(variants=(Variant(when=when, launches=(launch,)),), scratch=scratch)


def cases(*shapes: tuple[int, int, int]) -> Cases:
    wanted = shapes or ((8, 7, 9), (16, 16, 16))
    return Cases(
        cases=tuple(
            Case(name=f"case_{number}", kind="correctness", dimensions=dict(zip("mnk", shape, strict=True)))
            for number, shape in enumerate(wanted)
        )
    )


def multiply(inputs: Arrays, buffers: Arrays, state: dict[str, Any]) -> None:
    """The honest kernel: float32 throughout."""
    buffers["C"][:] = inputs["A"] @ inputs["B"]


class FakeRunner:
    """Runs a Python function on poisoned buffers; `state` lives as long as the runner, as a module's memory does."""

    def __init__(self, kernel: Kernel = multiply, refuses: Finding | None = None, unchecked: tuple[Finding, ...] = ()):
        self.kernel = kernel
        self.refuses = refuses
        self.unchecked = unchecked
        self.state: dict[str, Any] = {}
        self.conditions: list[Conditions] = []
        self.flags: dict[str, bool] = {"inputs_intact": True, "guards_intact": True, "scratch_restored": True}
        self.loaded = 0

    def load(self, binary: Binary) -> None:
        self.loaded += 1

    def run(self, call: Call, values: Values, conditions: Conditions) -> Run:
        if self.refuses is not None:
            raise Refused(self.refuses)
        self.conditions.append(conditions)
        self.state["conditions"] = conditions
        buffers: Arrays = {}
        for buffer in call.buffers:
            if buffer.initial == "poisoned":
                filled = np.empty(int(np.prod(buffer.shape)) * np.dtype(buffer.dtype).itemsize, np.uint8)
                poison_into(filled, conditions, buffer.name, buffer.dtype)
                buffers[buffer.name] = filled.view(buffer.dtype).reshape(buffer.shape)
            elif buffer.role == "inout":
                buffers[buffer.name] = np.array(values[buffer.name])
            elif buffer.initial != "given":
                buffers[buffer.name] = np.zeros(buffer.shape, buffer.dtype)
        with np.errstate(all="ignore"):
            finding = self.kernel(dict(values), buffers, self.state)
        names = [b.name for b in call.buffers if b.role in ("output", "inout")]
        return Run(
            completed=finding is None,
            outputs={name: buffers[name].tobytes() for name in names},
            findings=() if finding is None else (finding,),
            unchecked=self.unchecked,
            **self.flags,
        )


def subject(kernel: Kernel = multiply, a_plan: LaunchPlan | None = None, ptx: str = PTX) -> Subject:
    return Subject(binary=binary(ptx), plan=a_plan or plan(), abi="pointer", runner=FakeRunner(kernel))


def reference(kernel: Kernel = multiply) -> Subject:
    """A second opinion: other code than the baseline's."""
    return subject(kernel, ptx=PTX.replace("ret;", "bar.sync 0; ret;"))


def binary(ptx: str = PTX) -> Binary:
    return Binary(ptx=ptx, cubin=b"")


def built() -> Built:
    return Built(
        candidate="a" * 64,
        abi="pointer",
        ptx="b" * 64,
        cubin=NoCubin(),
        entries=(),
        compiler="none",
        options=(),
        log="c" * 64,
        same_ptx_as=(),
    )


def oracle(folder: Path, text: str = ORACLE) -> Oracle:
    path = folder / "oracle.py"
    path.write_text(text)
    return load(path)


def setup(folder: Path, **changes: Any) -> JudgeSetup:
    fields: dict[str, Any] = {
        "contract": contract(),
        "cases": cases(),
        "protocol": Protocol(boundary_shapes=4),
        "oracle": oracle(folder),
        "baseline": subject(),
        "folder": folder,
    }
    return JudgeSetup(**{**fields, **changes})


def one_line(text: str) -> bool:
    return re.search(r"\n", text) is None and 20 < len(text) < 1000
