"""torch eager and torch.compile on the contract's own expression, where torch is installed: never needed, always said.

The expression is the contract's word and so is trusted; torch runs in a process of its own all the same, with a limit
of time, since it is slow to import, slow to compile, and may end its process.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from kerneltrial.devices.cuda.torch_child import TorchCase, TorchFailed, TorchReply, TorchRequest
from kerneltrial.devices.device import Values
from kerneltrial.devices.messages import Value
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.inputs.torch_expressions import function_of
from kerneltrial.records.compilers import CompilerName
from kerneltrial.records.contract import Contract, DimensionArgument, ScalarArgument

NAMES: tuple[CompilerName, ...] = ("torch_eager", "torch_compile")
_LIMIT_S = 600
_IN_PROCESS = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}  # a pool takes longer to start than one kernel
Case = tuple[str, Mapping[str, int], Sequence[Values]]
"""Name, dimensions, input sets."""


class Torch:
    """torch's process, a context manager: it starts to import torch at once, and touches no card before it is asked.

    Importing takes seconds, in which whoever wants figures later has other things to do. Where torch is not installed,
    or the contract is none for it, nothing is started, and every answer says why.
    """

    def __init__(self, contract: Contract, limit_s: float = _LIMIT_S) -> None:
        self._contract, self._limit_s = contract, limit_s
        self._why = _absent(contract) or _not_allowed(contract)
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        if not self._why:
            self._folder = tempfile.TemporaryDirectory(prefix="kerneltrial-torch-")
            self._place = Path(self._folder.name)
            caches = {"TORCHINDUCTOR_CACHE_DIR": self._folder.name, "TRITON_CACHE_DIR": self._folder.name}
            with open(self._place / "words", "wb") as words:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "kerneltrial.devices.cuda.torch_child", self._folder.name],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=words,
                    text=True,
                    env={**os.environ, **caches, **_IN_PROCESS},
                )
        return self

    def measured(self, cases: Sequence[Case]) -> TorchReply:
        """Figures and outputs by compiler, or why there are none. It can be asked once."""
        if self._process is None:
            return dict.fromkeys(NAMES, TorchFailed(why=self._why))
        (self._place / "request").write_bytes(msgspec.msgpack.encode(_request(self._contract, cases)))
        try:
            self._process.communicate("go\n", timeout=self._limit_s)
        except subprocess.TimeoutExpired:
            return dict.fromkeys(NAMES, TorchFailed(why=f"torch took longer than {self._limit_s:g} s"))
        reply = self._place / "reply"
        if self._process.returncode or not reply.is_file():
            words = (self._place / "words").read_text(errors="replace").strip().splitlines()
            last = next(iter(words[-1:]), "no word")
            why = f"torch's process ended with {self._process.returncode}: {last[:500]}"
            return dict.fromkeys(NAMES, TorchFailed(why=why))
        return msgspec.msgpack.decode(reply.read_bytes(), type=TorchReply)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._folder.cleanup()


def _not_allowed(contract: Contract) -> str:
    """What is not allowed is told before torch is started."""
    try:
        function_of(contract.torch, _names(contract))
    except InputProblem as problem:
        return str(problem)
    return ""


def _absent(contract: Contract) -> str:
    if any(array.role == "inout" for array in contract.arrays):
        return "the contract has an inout, which an expression does not change in place"
    if importlib.util.find_spec("torch") is None:
        return "torch is not installed: the extra torch brings it"
    return ""


def _names(contract: Contract) -> tuple[str, ...]:
    """What the expression may speak of: inputs, scalars, dimensions."""
    inputs = (array.name for array in contract.arrays if array.role == "input")
    scalars = (a.name for a in contract.arguments if isinstance(a, ScalarArgument))
    whole = {a.name for a in contract.arguments if isinstance(a, DimensionArgument)} | set(contract.dimensions)
    return (*inputs, *scalars, *sorted(whole))


def _request(contract: Contract, cases: Sequence[Case]) -> TorchRequest:
    arrays = {array.name: array for array in contract.arrays if array.role == "input"}
    scalars = {a.name: a for a in contract.arguments if isinstance(a, ScalarArgument)}
    constants = {name: float(s.value) if s.dtype.startswith("float") else int(s.value) for name, s in scalars.items()}
    return TorchRequest(
        expression=contract.torch,
        names=_names(contract),
        tf32=contract.tf32,
        outputs={array.name: array.dtype for array in contract.outputs},
        cases=tuple(
            TorchCase(
                name=name,
                numbers={**constants, **dimensions},
                inputs=tuple(
                    {
                        key: Value(dtype=arrays[key].dtype, shape=one[key].shape, data=memoryview(one[key].tobytes()))
                        for key in arrays
                    }
                    for one in sets
                ),
            )
            for name, dimensions, sets in cases
        ),
        compilers=NAMES,
    )
