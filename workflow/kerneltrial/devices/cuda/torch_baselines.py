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
Case = tuple[str, Mapping[str, int], Sequence[Values]]
"""Name, dimensions, input sets."""


def measured(contract: Contract, cases: Sequence[Case], limit_s: float = _LIMIT_S) -> TorchReply:
    """Figures and outputs by compiler, or why there are none."""
    why = _absent(contract)
    if why:
        return dict.fromkeys(NAMES, TorchFailed(why=why))
    try:
        request = _request(contract, cases)
    except InputProblem as problem:
        return dict.fromkeys(NAMES, TorchFailed(why=str(problem)))
    return _asked(request, limit_s)


def _absent(contract: Contract) -> str:
    if any(array.role == "inout" for array in contract.arrays):
        return "the contract has an inout, which an expression does not change in place"
    if importlib.util.find_spec("torch") is None:
        return "torch is not installed: pip install 'kerneltrial[torch]'"
    return ""


def _request(contract: Contract, cases: Sequence[Case]) -> TorchRequest:
    arrays = {array.name: array for array in contract.arrays if array.role == "input"}
    scalars = {a.name: a for a in contract.arguments if isinstance(a, ScalarArgument)}
    whole = {a.name for a in contract.arguments if isinstance(a, DimensionArgument)} | set(contract.dimensions)
    names = (*arrays, *scalars, *sorted(whole))
    function_of(contract.torch, names)  # what is not allowed is told before torch is started
    constants = {name: float(s.value) if s.dtype.startswith("float") else int(s.value) for name, s in scalars.items()}
    return TorchRequest(
        expression=contract.torch,
        names=names,
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


def _asked(request: TorchRequest, limit_s: float) -> TorchReply:
    with tempfile.TemporaryDirectory(prefix="kerneltrial-torch-") as folder:
        asked, reply = Path(folder) / "request", Path(folder) / "reply"
        asked.write_bytes(msgspec.msgpack.encode(request))
        command = [sys.executable, "-m", "kerneltrial.devices.cuda.torch_child", str(asked), str(reply)]
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": folder, "TRITON_CACHE_DIR": folder}
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=limit_s, check=False, env=environment
            )
        except subprocess.TimeoutExpired:
            return dict.fromkeys(NAMES, TorchFailed(why=f"torch took longer than {limit_s:g} s"))
        if done.returncode or not reply.is_file():
            last = next(iter(done.stderr.strip().splitlines()[-1:]), "no word")
            return dict.fromkeys(NAMES, TorchFailed(why=f"torch's process ended with {done.returncode}: {last[:500]}"))
        return msgspec.msgpack.decode(reply.read_bytes(), type=TorchReply)
