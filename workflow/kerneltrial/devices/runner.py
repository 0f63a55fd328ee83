"""A runner: a device in a limited child that serves one candidate. Its death is a finding, not an exception."""

import contextlib
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Protocol, Self, TypeVar

import msgspec

from kerneltrial.devices import messages
from kerneltrial.devices.device import (
    Binary,
    Conditions,
    DeviceProblem,
    Refused,
    Run,
    Samples,
    TimingRequest,
    Values,
    not_completed,
)
from kerneltrial.inputs.calls import Call
from kerneltrial.records.counts import Counts
from kerneltrial.records.device import Device, DeviceKind, changes
from kerneltrial.records.reason import Finding, Reason
from kerneltrial.records.roofline import Ceilings
from kerneltrial.sandbox.conversation import Conversation, Ended, Usage
from kerneltrial.sandbox.limits import Limits, View
from kerneltrial.sandbox.nursery import Nursery

_LONGEST_REPLY = 1 << 34  # outputs of a case above 2**31 elements, with room
_OPEN_S = 120.0  # a driver that wakes a card
_LIFE_S = 24 * 3600
_SPENT = frozenset({Reason.DEVICE_FAULT, Reason.DEVICE_LOST, Reason.HANG, Reason.MISALIGNED, Reason.TRAP})
_R = TypeVar("_R", bound=messages.Reply)


def runner_limits(kind: DeviceKind) -> Limits:
    """Bounds of a runner's child. Each call has its own watchdog; a GPU's driver reserves terabytes of addresses."""
    if kind == "cuda":
        return Limits(wall_s=_LIFE_S, cpu_s=_LIFE_S, memory_bytes=0, file_bytes=1 << 40, processes=64)
    return Limits(wall_s=_LIFE_S, cpu_s=_LIFE_S, memory_bytes=16 << 30)


class CodeShelf(Protocol):
    """Where machine code lies between children. A binary's code is handed to children of that binary alone.

    So whoever took a child over could spoil the code of the candidate that it held already, and no other's.
    """

    def known(self, binary: Binary) -> dict[str, bytes]:
        """What is known of a binary; empty where nothing is, or where it was damaged."""

    def add(self, binary: Binary, made: Mapping[str, bytes]) -> None:
        """Keep what a child made; never fails, as it can be made again."""


class Runner:
    """A context manager around one child. Not to be used by two threads at once.

    The child is forked when it is first needed, and anew, with the same binary loaded, after it died or its device
    was spoilt by a fault.

    Parameters
    ----------
    arch
        What binaries are compiled for; a GPU that does not run it is a `DeviceProblem`.
    call_s
        Wall seconds for one load, run or count; beyond them the call is a hang.
    time_s
        Wall seconds for one timing.
    locked
        The device of the trial's lock: one with another driver, card or limits is a `DeviceProblem`. Only for `cuda`,
        since counts do not depend on the host.
    shelf
        Where machine code of the `cpu` device lies between children, if anywhere.
    """

    def __init__(
        self,
        nursery: Nursery,
        device_kind: DeviceKind,
        limits: Limits | None = None,
        *,
        arch: str = "sm_80",
        call_s: float = 60.0,
        time_s: float = 900.0,
        locked: Device | None = None,
        shelf: CodeShelf | None = None,
    ) -> None:
        self._nursery = nursery
        self._start = messages.Start(kind=device_kind, arch=arch)
        self._limits = limits or runner_limits(device_kind)
        self._call_s = call_s
        self._time_s = time_s
        self._locked = locked
        self._shelf = shelf if device_kind == "cpu" else None
        self._conversation: Conversation | None = None
        self._greeted = False
        self._binary: Binary | None = None
        self._shelved = False  # whether the child runs code that came from the shelf
        self._used = Usage(cpu_s=0.0, wall_s=0.0, max_rss_bytes=0)

    def begin(self) -> None:
        """Fork the child and have it open the device, without waiting for it: what is asked next waits."""
        if self._conversation is None:
            self._conversation = self._nursery.open(
                "kerneltrial.devices.serving:serve",
                msgspec.msgpack.encode(self._start),
                self._limits,
                view(self._start.kind),
                _LONGEST_REPLY,
            )
            self._conversation.send(msgspec.msgpack.encode(messages.Describe()), _OPEN_S)

    def device(self) -> Device:
        """The device, opened. Raises `DeviceProblem`."""
        return self._expect(messages.Describe(), messages.Described, _OPEN_S).device

    def load(self, binary: Binary) -> None:
        """Load a binary in place of the one before.

        Raises
        ------
        Refused
            It cannot run here, or the child died or hung over it.
        DeviceProblem
            The device is at fault.
        """
        self._keep_code()
        self._binary = binary
        self._load()

    def run(self, call: Call, values: Values, conditions: Conditions) -> Run:
        """Run one call; a hang or a death is a finding of the `Run`. Raises as `load`."""
        try:
            packed = messages.pack(call, values)
            request = messages.RunCall(call=call, values=packed, conditions=conditions)
            run = self._expect(request, messages.Ran, self._call_s).run
        except _Lost as lost:
            return _lost_run(lost.finding)
        if not run.completed and self._start.kind == "cuda":
            self._drop()  # after a fault nothing in that process works any more
        return run

    def count(self, call: Call, values: Values, conditions: Conditions) -> Counts:
        """Count one call. Raises as `load`; `Refused` also where the call itself has a fault."""
        request = messages.CountCall(call=call, values=messages.pack(call, values), conditions=conditions)
        return self._expect(request, messages.Counted, self._call_s).counts

    def time(self, request: TimingRequest, values: Sequence[Values]) -> Samples:
        """Time a candidate beside the baseline. Raises as `load`."""
        packed = tuple(messages.pack(request.candidate_call, one) for one in values)
        asked = messages.TimeCalls(request=request, values=packed)
        return self._expect(asked, messages.TimedCalls, self._time_s).samples

    def ceilings(self) -> Ceilings:
        """Measure what the device does at most. Raises as `load`."""
        return self._expect(messages.MeasureCeilings(), messages.MeasuredCeilings, self._time_s).ceilings

    @property
    def used(self) -> Usage:
        """What children that have ended used: sums of seconds, the largest peak of memory."""
        return self._used

    def _expect(self, request: messages.Request, kind: type[_R], wall_s: float) -> _R:
        if not self._greeted:
            self._greet()
        try:
            reply = self._ask(request, wall_s)
        except _Lost:
            if not self._shelved:
                raise
            self._compile_anew()
            reply = self._ask(request, wall_s)
        if not isinstance(reply, kind):
            raise DeviceProblem(f"{self._start.kind}: the runner answered {type(reply).__name__} out of turn")
        return reply

    def _greet(self) -> None:
        self.begin()
        self._require_locked(self._answer(_OPEN_S))
        self._greeted = True
        if self._binary is not None:
            self._load()

    def _require_locked(self, reply: messages.Reply) -> None:
        """What is measured on another card or driver does not belong to the trial."""
        if self._locked is None or self._locked.kind != "cuda" or not isinstance(reply, messages.Described):
            return
        differ = changes(self._locked, reply.device)
        if differ:
            self._drop()
            raise DeviceProblem(
                f"cuda: the card is not as it was locked: {'; '.join(differ)}; make it so again, or start a new trial: "
                "`kerneltrial lock --new`"
            )

    def _load(self) -> None:
        if not self._greeted:
            self._greet()
        elif self._binary is not None:
            code = {} if self._shelf is None else self._shelf.known(self._binary)
            self._shelved = bool(code)
            try:
                self._ask(messages.Load(binary=self._binary, code=code), self._call_s)
            except _Lost:
                if not self._shelved:
                    raise
                self._compile_anew()

    def _compile_anew(self) -> None:
        """A child that was lost over code from the shelf says nothing of its binary: one without a shelf tells."""
        self._shelf, self._shelved = None, False
        self._drop()
        self._greet()

    def _keep_code(self) -> None:
        """Put what the child made of its binary on the shelf; a child that is gone has made nothing."""
        if self._shelf is None or not self._greeted or self._binary is None:
            return
        with contextlib.suppress(Refused, DeviceProblem):
            reply = self._ask(messages.GiveCode(), self._call_s)
            if isinstance(reply, messages.Code) and reply.made:
                self._shelf.add(self._binary, reply.made)

    def _ask(self, request: messages.Request, wall_s: float) -> messages.Reply:
        assert self._conversation is not None
        self._conversation.send(msgspec.msgpack.encode(request), wall_s)
        return self._answer(wall_s)

    def _answer(self, wall_s: float) -> messages.Reply:
        assert self._conversation is not None
        answer = self._conversation.answer(wall_s)
        if isinstance(answer, Ended):
            self._drop()
            raise _Lost(_finding(answer))
        reply = msgspec.msgpack.decode(answer, type=messages.Reply)
        match reply:
            case messages.Refusal():
                if reply.finding.reason in _SPENT and self._start.kind == "cuda":
                    self._drop()
                raise Refused(reply.finding)
            case messages.Problem():
                self._drop()
                raise DeviceProblem(reply.detail)
            case messages.Broken():
                raise _Lost(Finding(reason=Reason.RUNNER_DIED, detail=f"the device's own code failed: {reply.detail}"))
        return reply

    def _drop(self) -> None:
        if self._conversation is not None:
            usage = self._conversation.close()
            self._conversation, self._greeted = None, False
            self._used = Usage(
                cpu_s=self._used.cpu_s + usage.cpu_s,
                wall_s=self._used.wall_s + usage.wall_s,
                max_rss_bytes=max(self._used.max_rss_bytes, usage.max_rss_bytes),
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            with contextlib.suppress(OSError):
                self._drop()

    def close(self) -> None:
        """End the child; it may be closed again. On a GPU that takes a while: several are best closed side by side."""
        with contextlib.suppress(OSError):
            self._keep_code()
            self._drop()


def view(kind: DeviceKind) -> View:
    """What a runner's child sees: on `cuda` all that the driver may want, on `cpu` Python alone."""
    return View(driver=kind == "cuda")


class _Lost(Refused):
    """The child died or hung. A caller that has no `Run` to put it in sees a refusal."""


def _finding(ended: Ended) -> Finding:
    reasons = {"wall": Reason.HANG, "cpu": Reason.HANG, "memory": Reason.OUT_OF_MEMORY}
    return Finding(reason=reasons.get(ended.how, Reason.RUNNER_DIED), detail=ended.detail[:4000])


def _lost_run(finding: Finding) -> Run:
    """What can be said of a call whose child is gone."""
    detail = "inputs, guards and scratch could not be read: the child is gone"
    return not_completed(finding, (Finding(reason=Reason.CHECK_ABSENT, detail=detail),))
