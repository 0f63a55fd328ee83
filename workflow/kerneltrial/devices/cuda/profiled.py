"""The program under the profiler: `python -m kerneltrial.devices.cuda.profiled REQUEST`: two equal calls of a plan.

The first warms caches and code; the profiler skips its launches and looks at those of the second.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kerneltrial.devices.cuda.clocks import call_each_set
from kerneltrial.devices.cuda.context import Context
from kerneltrial.devices.cuda.device import load_module
from kerneltrial.devices.cuda.subjects import PlanSubject, SharedBuffers
from kerneltrial.devices.device import Binary
from kerneltrial.devices.messages import Packed, unpack
from kerneltrial.inputs.calls import Call
from kerneltrial.records.record import Record


class ProfileRequest(Record):
    """A binary and one call of it."""

    arch: str
    binary: Binary
    call: Call
    values: Packed


def main(arguments: Sequence[str]) -> int:
    """Run what the file holds."""
    request = msgspec.msgpack.decode(Path(arguments[0]).read_bytes(), type=ProfileRequest)
    run(Context(request.arch), request)
    return 0


def run(context: Context, request: ProfileRequest) -> None:
    """Two calls, one after the other, each waited for."""
    module = load_module(context, request.binary)
    shared = SharedBuffers((request.call,), [unpack(request.values)], context.queue.stream)
    subject = PlanSubject(module, request.call, shared, context.queue)
    subject.grow(1)
    for _ in range(2):
        call_each_set(context.queue, subject, shared)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
