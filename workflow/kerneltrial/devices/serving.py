"""The child's side of a runner: opens the device when it is first needed, and answers one request after another."""

import contextlib
import importlib
import os
import traceback
from typing import Any

import msgspec

from kerneltrial.devices import messages, opening
from kerneltrial.devices.device import DeviceProblem, Loaded, Opened, Refused
from kerneltrial.records.reason import Finding, Reason

_TRACE_FRAMES = -6
_DETAIL = 4000


def prepare_cpu() -> None:
    """Load LLVM and compile the `cpu` device's own run-time once: children forked later share both."""
    from kerneltrial.devices.cpu import device, native

    device.open_cpu()
    native.runtime()


def prepare_cuda() -> None:
    """Import what a card needs, but call no function of its driver, which would be lost in children forked later.

    All children have one connection to the card: they use one stream, and each connection takes time to open and close.
    """
    os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = "1"
    from kerneltrial.devices.cuda import device  # noqa: F401  its imports are what is wanted

    _import("cuda.bindings.driver", "pynvml")


def prepare_vendors() -> None:
    """Import the bindings of vendors' libraries, which load the libraries when they are first called."""
    _import("nvmath.bindings.cublas", "nvmath.bindings.cublasLt")


def _import(*names: str) -> None:
    for name in names:
        with contextlib.suppress(Exception):  # what is absent, or broken, is told by the child that needs it
            importlib.import_module(name)


def serve(argument: bytes, requests: Any) -> None:
    """The child's function."""
    served = _Served(msgspec.msgpack.decode(argument, type=messages.Start))
    decoder = msgspec.msgpack.Decoder(messages.Request)
    encoder = msgspec.msgpack.Encoder()
    while (content := requests.get()) is not None:
        requests.reply(encoder.encode(_answer(served, decoder.decode(content))))


class _Served:
    """The open device and what is loaded on it."""

    def __init__(self, start: messages.Start) -> None:
        self._start = start
        self._opened: Opened | None = None
        self._loaded: Loaded | None = None

    @property
    def opened(self) -> Opened:
        if self._opened is None:
            self._opened = opening.open_device(self._start.kind, self._start.arch)
        return self._opened

    @property
    def loaded(self) -> Loaded:
        if self._loaded is None:
            raise Refused(Finding(reason=Reason.LAUNCH_FAILED, detail="no binary is loaded"))
        return self._loaded

    def load(self, request: messages.Load) -> None:
        self._loaded = None
        code = self.opened.machine_code
        if code is not None:
            code.restart(request.code)
        self._loaded = self.opened.load(request.binary)

    def code(self) -> dict[str, bytes]:
        code = self.opened.machine_code
        return {} if code is None else code.made


def _answer(served: _Served, request: messages.Request) -> messages.Reply:
    try:
        return _done(served, request)
    except Refused as refused:
        return messages.Refusal(finding=refused.finding)
    except DeviceProblem as problem:
        return messages.Problem(detail=str(problem))
    except MemoryError:
        raise
    except Exception as problem:
        told = "".join(traceback.format_tb(problem.__traceback__, limit=_TRACE_FRAMES))[-_DETAIL:]
        return messages.Broken(detail=f"{type(problem).__name__}: {problem}\n{told}"[:_DETAIL])


def _done(served: _Served, request: messages.Request) -> messages.Reply:
    match request:
        case messages.Describe():
            return messages.Described(device=served.opened.device)
        case messages.Load():
            served.load(request)
            return messages.Done()
        case messages.GiveCode():
            return messages.Code(made=served.code())
        case messages.RunCall():
            values = messages.unpack(request.values)
            return messages.Ran(run=served.loaded.run(request.call, values, request.conditions))
        case messages.CountCall():
            values = messages.unpack(request.values)
            return messages.Counted(counts=served.loaded.count(request.call, values, request.conditions))
        case messages.MeasureCeilings():
            return messages.MeasuredCeilings(ceilings=served.opened.ceilings())
        case messages.TimeCalls():
            sets = tuple(messages.unpack(packed) for packed in request.values)
            return messages.TimedCalls(samples=served.opened.time(request.request, sets))
