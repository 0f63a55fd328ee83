"""One stream, and the ways to time what is put on it: graphs, events, and a queue that is held until it is full."""

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from kerneltrial.devices.cuda.driver import CudaError, bindings, call, release

EVENT_RESOLUTION_US = 0.5  # CUDA driver API, cuEventElapsedTime
_HELD_AT_MOST_S = 2.0


class Queue:
    """A stream with a pair of events and a flag in host memory that can hold the stream back."""

    def __init__(self) -> None:
        driver = bindings()
        self.stream = call("cuStreamCreate", driver.CUstream_flags.CU_STREAM_NON_BLOCKING.value)
        self.start = call("cuEventCreate", driver.CUevent_flags.CU_EVENT_DEFAULT.value)
        self.end = call("cuEventCreate", driver.CUevent_flags.CU_EVENT_DEFAULT.value)
        self._host = int(call("cuMemHostAlloc", 4, driver.CU_MEMHOSTALLOC_DEVICEMAP))
        self._flag = ctypes.c_uint32.from_address(self._host)
        self._flag.value = 0
        self._flag_on_device = call("cuMemHostGetDevicePointer", self._host, 0)
        self._turn = 0
        self.gave_way = 0  # how often a held queue was let go because filling it took too long

    def wait(self) -> None:
        """Block until all work on the stream is done; a fault of a kernel is raised here."""
        call("cuStreamSynchronize", self.stream)

    def record(self, event: Any) -> None:
        call("cuEventRecord", event, self.stream)

    def record_node(self, event: Any) -> None:
        """Record an event from within a graph that is being captured."""
        flag = bindings().CUevent_record_flags.CU_EVENT_RECORD_EXTERNAL.value
        call("cuEventRecordWithFlags", event, self.stream, flag)

    def elapsed_us(self) -> float:
        """Microseconds between the two events; the stream must have been waited for."""
        return float(call("cuEventElapsedTime", self.start, self.end)) * 1000.0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the stream until the body has put all its work on it, so that no launch waits for the host.

        Should the body itself be waiting for the stream (a full hardware queue), a timer lets the stream go.
        """
        self._turn += 1
        turn = self._turn
        equal = bindings().CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_GEQ.value
        call("cuStreamWaitValue32", self.stream, self._flag_on_device, turn, equal)
        timer = threading.Timer(_HELD_AT_MOST_S, self._give_way, (turn,))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            self._flag.value = turn

    def _give_way(self, turn: int) -> None:
        self.gave_way += 1
        self._flag.value = turn

    def graph(self, enqueue: Callable[[], None]) -> "Graph":
        """Capture what `enqueue` puts on the stream."""
        mode = bindings().CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        call("cuStreamBeginCapture", self.stream, mode)
        try:
            enqueue()
        except BaseException:
            self._abandon_capture()
            raise
        return Graph(call("cuStreamEndCapture", self.stream), self.stream)

    def _abandon_capture(self) -> None:
        with suppress(CudaError):  # where the capture is invalid already, the error that made it so is on its way
            release("cuGraphDestroy", call("cuStreamEndCapture", self.stream))

    def close(self) -> None:
        release("cuEventDestroy", self.start)
        release("cuEventDestroy", self.end)
        release("cuStreamDestroy", self.stream)
        release("cuMemFreeHost", self._host)


class Graph:
    """An executable graph, uploaded to the card."""

    def __init__(self, captured: Any, stream: Any) -> None:
        self._stream = stream
        try:
            self._executable = call("cuGraphInstantiate", captured, 0)
        finally:
            release("cuGraphDestroy", captured)
        call("cuGraphUpload", self._executable, stream)

    def launch(self) -> None:
        call("cuGraphLaunch", self._executable, self._stream)

    def free(self) -> None:
        release("cuGraphExecDestroy", self._executable)
