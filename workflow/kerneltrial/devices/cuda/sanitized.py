"""The program under compute-sanitizer: `python -m kerneltrial.devices.cuda.sanitized REQUEST`: each call once.

Buffers are allocations of their very size, without margins, and nothing is written that the plan does not have written:
so a tool sees what lies outside, and what was never written. Nothing is read back.

It prints a line of JSON before each call (its number, and where its buffers lie), and one when it has ended.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kerneltrial.devices.cuda.context import Context
from kerneltrial.devices.cuda.device import load_module
from kerneltrial.devices.cuda.driver import CudaError, call
from kerneltrial.devices.cuda.launches import BoundLaunch, Module, TurnedDown, require_room
from kerneltrial.devices.cuda.memory import buffer_bytes, given_bytes, settle
from kerneltrial.devices.device import Binary, Values
from kerneltrial.devices.messages import Packed, unpack
from kerneltrial.inputs.calls import Buffer, Call
from kerneltrial.records.record import Record


class Laid(Record):
    """One call and the values that it is given."""

    call: Call
    values: Packed


class SanitizeRequest(Record):
    """A binary and calls of it."""

    arch: str
    binary: Binary
    calls: tuple[Laid, ...]


def main(arguments: Sequence[str]) -> int:
    """Run what the file holds. A fault ends it, and is for the tool to tell of."""
    request = msgspec.msgpack.decode(Path(arguments[0]).read_bytes(), type=SanitizeRequest)
    context = Context(request.arch)
    ended = ""
    try:
        run(context, request)
    except TurnedDown as turned_down:
        ended = turned_down.finding.detail
    except CudaError as error:
        ended = str(error)
    print(json.dumps({"ended": ended}), flush=True)
    return 0


def run(context: Context, request: SanitizeRequest) -> None:
    """Every call, one after the other, each waited for. Memory is kept to the end, so that no address comes twice.

    Raises
    ------
    CudaError
        A call faulted, or the card is full.
    TurnedDown
        A launch cannot be made here.
    """
    module = load_module(context, request.binary)
    for number, laid in enumerate(request.calls):
        require_room(laid.call, context.memory_bytes)
        addresses = {buffer.name: _allocated(buffer) for buffer in laid.call.buffers}
        sizes = {buffer.name: buffer_bytes(buffer) for buffer in laid.call.buffers}
        print(json.dumps({"call": number, "buffers": {n: [at, sizes[n]] for n, at in addresses.items()}}), flush=True)
        for buffer in laid.call.buffers:
            _filled(buffer, addresses[buffer.name], unpack(laid.values))
        settle()
        _launched(context, module, laid.call, addresses)


def _allocated(buffer: Buffer) -> int:
    return int(call("cuMemAlloc", max(1, buffer_bytes(buffer))))


def _filled(buffer: Buffer, address: int, values: Values) -> None:
    """What the call starts from; outputs and uninitialised scratch stay as they are."""
    count = buffer_bytes(buffer)
    if not count:
        return
    if buffer.initial == "given":
        call("cuMemcpyHtoD", address, given_bytes(buffer, values).ctypes.data, count)
    elif buffer.initial in ("zeroed", "self_restoring"):
        call("cuMemsetD8", address, 0, count)


def _launched(context: Context, module: Module, plan: Call, addresses: dict[str, int]) -> None:
    queue = context.queue
    for launch in [BoundLaunch(module, launch, addresses, queue.stream) for launch in plan.launches]:
        launch.enqueue()
    queue.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
