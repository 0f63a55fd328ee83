"""The program that times torch: `python -m kerneltrial.devices.cuda.torch_child FOLDER`.

torch takes seconds to import, has an allocator and a stream of its own, and may not be installed; so it gets a process
of its own. It imports torch, waits for a line on its standard input, and answers the folder's `request` by its `reply`;
an input that closes before ends it. The functions take the module as an argument.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from kerneltrial.devices.messages import Packed, unpack
from kerneltrial.inputs.dtypes import numpy_dtype
from kerneltrial.inputs.torch_expressions import function_of
from kerneltrial.records.compilers import CompilerName
from kerneltrial.records.plan import DType
from kerneltrial.records.record import Record
from kerneltrial.sandbox import libc

_BATCH_US = 2000.0  # long beside what it takes to start a graph on an idle queue
_CALLS_AT_MOST = 1024
_READINGS = 20
_WARM_UPS = 3
_DETAIL = 2000


class TorchCase(Record):
    """A case: numbers by name, and input sets that calls rotate through."""

    name: str
    numbers: dict[str, float | int]
    inputs: tuple[Packed, ...]


class TorchRequest(Record):
    """What to compute, for which cases, and the outputs that are expected: name, dtype and, by case, shape."""

    expression: str
    names: tuple[str, ...]
    tf32: bool
    outputs: dict[str, DType]
    cases: tuple[TorchCase, ...]
    compilers: tuple[CompilerName, ...]


class TorchTimed(Record, tag_field="state", tag="timed"):
    """Microseconds of a call by case, and the outputs of each case's input sets."""

    version: str
    latency_us: dict[str, float]
    outputs: dict[str, tuple[dict[str, bytes], ...]]


class TorchFailed(Record, tag_field="state", tag="failed"):
    """Why there are none."""

    why: str


TorchReply = dict[str, TorchTimed | TorchFailed]


def main(arguments: Sequence[str]) -> int:
    """Answer one request; what torch prints goes where this process's own words go."""
    libc.die_with_parent()
    import torch

    if not sys.stdin.readline():
        return 0
    folder = Path(arguments[0])
    request = msgspec.msgpack.decode((folder / "request").read_bytes(), type=TorchRequest)
    written = folder / "written"
    written.write_bytes(msgspec.msgpack.encode(answered(torch, request)))
    written.rename(folder / "reply")
    return 0


def answered(torch: Any, request: TorchRequest) -> TorchReply:
    """By compiler, its figures or why there are none."""
    torch.backends.cuda.matmul.allow_tf32 = request.tf32
    torch.backends.cudnn.allow_tf32 = request.tf32
    found: TorchReply = {}
    for compiler in request.compilers:
        try:
            found[compiler] = _timed(torch, request, compiler)
        except Exception as fault:  # torch, its compiler and the expression fail in ways of their own
            line = next(iter(str(fault).splitlines()), "")
            found[compiler] = TorchFailed(why=f"{type(fault).__name__}: {line}"[:_DETAIL])
    return found


def _timed(torch: Any, request: TorchRequest, compiler: CompilerName) -> TorchTimed:
    function = function_of(request.expression, request.names)(torch)
    if compiler == "torch_compile":
        function = torch.compile(function)
    latency_us, outputs = {}, {}
    for case in request.cases:
        sets = [_arguments(torch, request.names, case.numbers, packed) for packed in case.inputs]
        outputs[case.name] = tuple(_bytes(torch, function(**one), request.outputs) for one in sets)
        latency_us[case.name] = _latency_us(torch, function, sets)
    return TorchTimed(version=str(torch.__version__), latency_us=latency_us, outputs=outputs)


def _arguments(torch: Any, names: Sequence[str], numbers: Mapping[str, float | int], packed: Packed) -> dict[str, Any]:
    given: dict[str, Any] = {**numbers}
    for name, array in unpack(packed).items():
        tensor = torch.from_numpy(array.copy())
        if packed[name].dtype == "bfloat16":
            tensor = tensor.view(torch.bfloat16)
        given[name] = tensor.cuda()
    return {name: given[name] for name in names}


def _bytes(torch: Any, result: Any, outputs: Mapping[str, DType]) -> dict[str, bytes]:
    """Results in the order of the contract's outputs, as the bytes that a kernel would leave."""
    results = result if isinstance(result, tuple | list) else (result,)
    if len(results) != len(outputs):
        raise ValueError(f"the expression gives {len(results)} results, the contract has {len(outputs)} outputs")
    found = {}
    for (name, dtype), tensor in zip(outputs.items(), results, strict=True):
        host = tensor.detach().contiguous().cpu()
        if dtype == "bfloat16":
            host = host.view(torch.int16)
        array = host.numpy()
        if array.dtype.itemsize != numpy_dtype(dtype).itemsize:
            raise ValueError(f"{name}: the expression gives {array.dtype}, the contract has {dtype}")
        found[name] = array.tobytes()
    return found


def _latency_us(torch: Any, function: Callable[..., Any], sets: Sequence[Mapping[str, Any]]) -> float:
    """One call in a CUDA graph of many, run once before it is timed; the median of several readings."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(_WARM_UPS):
            for one in sets:
                function(**one)
    torch.cuda.synchronize()
    calls = len(sets)
    while True:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for turn in range(calls):
                function(**sets[turn % len(sets)])
        graph.replay()
        readings = [_replay_us(torch, graph) for _ in range(_READINGS)]
        if median(readings) >= _BATCH_US or 2 * calls > _CALLS_AT_MOST:
            return median(readings) / calls
        calls *= 2


def _replay_us(torch: Any, graph: Any) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    graph.replay()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) * 1000


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))  # the reply is written; what torch does to end in good order takes seconds
