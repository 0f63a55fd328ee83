"""A card that is not there: memory on the host, kernels that take the time they are told, CUPTI that records them.

It stands behind `cuda.bindings.driver`, so that the device's own code runs unchanged on a clock whose truth is known.
"""

import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from cuda.bindings import driver as real

from kerneltrial.devices.cuda.context import Context
from kerneltrial.devices.cuda.places import Pool
from kerneltrial.devices.cuda.queue import Queue
from kerneltrial.devices.cuda.state import Nvml
from kerneltrial.records.device import Device

LAUNCH_GAP_US, GRAPH_GAP_US, MEMSET_US, STEP_NS = 2.0, 0.25, 0.5, 32
SUCCESS = real.CUresult.CUDA_SUCCESS
L2_BYTES = 1 << 16
PAGE = 4096


class FakeCard:
    """`durations` gives microseconds by kernel name; the first kernel after a sweep takes `cold` times as long.

    A sweep over less than the L2 reads that much of `working_bytes` back into it, and takes off so much of the rest.

    `main`, which does nothing, takes as long as ever. A kernel that follows an event in a graph starts `event_gap_us`
    later than one that follows a kernel; behind a sweep one that follows a kernel waits `code_us` for its code.
    """

    def __init__(self, durations: dict[str, float], cold: float = 1.5) -> None:
        self.durations = {"sweep": 20.0, "main": 0.9, "scrub": 1.0, **durations}
        self.event_gap_us = 0.0
        self.code_us = 0.0
        self._after_event = self._cold_code = False
        self.cold = cold
        self.effects: dict[str, Callable[[list[int]], None]] = {}
        self.now_us = 1000.0
        self.recording: list[Any] | None = None
        self.recording_slows_cold = 1.0  # how many times as long a kernel behind a sweep takes while CUPTI records
        self.version = 13_000
        self.launched: list[str] = []
        self.configurations: list[Any] = []
        self.attributes: list[tuple[Any, ...]] = []
        self._memory: dict[int, Any] = {}
        self.virtual = True  # whether it has virtual memory management
        self.mapped: dict[int, tuple[int, str]] = {}  # by the first address: bytes, and what a kernel may do there
        self.scrubbed: list[int] = []
        self.fault = SUCCESS
        self._made = 0
        self._captured: list[Callable[[float], None]] | None = None
        self.working_bytes = 1 << 30
        self._missing = 0.0  # the share of what a kernel works on that is not in the L2
        self.read: list[tuple[int, int]] = []  # addresses and bytes that sweeps smaller than the L2 read

    def __getattr__(self, name: str) -> Any:
        """Enums and structures are the driver's own; a function that is not faked is a mistake of the test."""
        if name.startswith("cu"):
            raise AssertionError(f"the fake card has no {name}")
        return getattr(real, name)

    def cuInit(self, flags: int) -> tuple[Any, ...]:
        return (SUCCESS,)

    def cuDriverGetVersion(self) -> tuple[Any, ...]:
        return SUCCESS, self.version

    # memory
    def cuMemAlloc(self, nbytes: int) -> tuple[Any, ...]:
        if self._captured is not None:
            return real.CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 0
        block = ctypes.create_string_buffer(nbytes + 512)
        address = -(-ctypes.addressof(block) // 256) * 256
        self._memory[address] = block
        return SUCCESS, address

    def cuMemFree(self, address: int) -> tuple[Any, ...]:
        del self._memory[address]
        return (SUCCESS,)

    def cuMemHostAlloc(self, nbytes: int, flags: int) -> tuple[Any, ...]:
        return self.cuMemAlloc(nbytes)

    def cuMemFreeHost(self, address: int) -> tuple[Any, ...]:
        return self.cuMemFree(address)

    def cuMemHostGetDevicePointer(self, address: int, flags: int) -> tuple[Any, ...]:
        return SUCCESS, address

    def cuMemsetD8(self, address: int, value: int, nbytes: int) -> tuple[Any, ...]:
        ctypes.memset(address, value, nbytes)
        return (SUCCESS,)

    def cuMemcpyHtoD(self, to: int, source: int, nbytes: int) -> tuple[Any, ...]:
        ctypes.memmove(to, source, nbytes)
        return (SUCCESS,)

    cuMemcpyDtoH = cuMemcpyHtoD

    # virtual memory: what is reserved is memory of the host, what is mapped is known by `mapped`
    def cuDeviceGetAttribute(self, attribute: Any, handle: Any) -> tuple[Any, ...]:
        assert attribute == real.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
        return SUCCESS, int(self.virtual)

    def cuMemGetAllocationGranularity(self, kind: Any, option: Any) -> tuple[Any, ...]:
        return SUCCESS, PAGE

    def cuMemAddressReserve(self, nbytes: int, alignment: int, address: int, flags: int) -> tuple[Any, ...]:
        block = ctypes.create_string_buffer(nbytes + PAGE)
        start = -(-ctypes.addressof(block) // PAGE) * PAGE
        self._memory[start] = block
        return SUCCESS, start

    def cuMemCreate(self, nbytes: int, kind: Any, flags: int) -> tuple[Any, ...]:
        assert nbytes % PAGE == 0
        self._made -= 1
        self._memory[self._made] = nbytes
        return SUCCESS, self._made

    def cuMemMap(self, start: int, nbytes: int, offset: int, made: int, flags: int) -> tuple[Any, ...]:
        assert self._memory[made] == nbytes
        self.mapped[start] = nbytes, ""
        return (SUCCESS,)

    def cuMemSetAccess(self, start: int, nbytes: int, access: list[Any], count: int) -> tuple[Any, ...]:
        assert self.mapped[start][0] == nbytes
        self.mapped[start] = nbytes, access[0].flags.name.rpartition("_")[2]
        return (SUCCESS,)

    def cuMemUnmap(self, start: int, nbytes: int) -> tuple[Any, ...]:
        assert self.mapped.pop(start)[0] == nbytes
        return (SUCCESS,)

    def cuMemRelease(self, made: int) -> tuple[Any, ...]:
        del self._memory[made]
        return (SUCCESS,)

    def cuMemAddressFree(self, start: int, nbytes: int) -> tuple[Any, ...]:
        return self.cuMemFree(start)

    def touch(self, address: int, *, write: bool = False) -> None:
        """What a kernel does: a fault of the stream where it may not."""
        for start, (nbytes, allowed) in self.mapped.items():
            if start <= address < start + nbytes and allowed in (("READWRITE",) if write else ("READ", "READWRITE")):
                return
        self.fault = real.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS

    def cuStreamSynchronize(self, stream: Any) -> tuple[Any, ...]:
        return (self.fault,)

    # the stream
    def cuMemsetD8Async(self, address: int, value: int, nbytes: int, stream: Any) -> tuple[Any, ...]:
        def work(gap: float) -> None:
            ctypes.memset(address, value, nbytes)
            self._node("", MEMSET_US, gap)

        return self._put(work)

    def cuMemcpyHtoDAsync(self, to: int, source: int, nbytes: int, stream: Any) -> tuple[Any, ...]:
        def work(gap: float) -> None:
            ctypes.memmove(to, source, nbytes)
            self.now_us += 1.0

        return self._put(work)

    cuMemcpyDtoHAsync = cuMemcpyHtoDAsync

    def cuMemcpyDtoDAsync(self, to: int, source: int, nbytes: int, stream: Any) -> tuple[Any, ...]:
        def work(gap: float) -> None:
            ctypes.memmove(to, source, nbytes)
            self.now_us += 1.0

        return self._put(work)

    def cuLaunchKernelEx(self, configuration: Any, function: str, parameters: int, extra: int) -> tuple[Any, ...]:
        if function == "scrub":
            cell = (ctypes.c_void_p * 2).from_address(parameters)[0]
            self.scrubbed.append(ctypes.c_uint32.from_address(cell).value)
            return (SUCCESS,)
        if function == "sweep":
            return self._sweep(parameters)
        self.configurations.append(configuration)
        count = 8
        cells = list((ctypes.c_void_p * count).from_address(parameters)) if function in self.effects else []
        pointers = [ctypes.c_uint64.from_address(cell).value for cell in cells if cell]
        return self.kernel(function, pointers)

    def _sweep(self, parameters: int) -> tuple[Any, ...]:
        start, vectors = (
            ctypes.c_uint64.from_address((ctypes.c_void_p * 2).from_address(parameters)[i]).value for i in (0, 1)
        )

        def work(gap: float) -> None:
            if 16 * vectors < L2_BYTES:
                self.read.append((start, 16 * vectors))
                self._missing = max(0.0, self._missing - 16 * vectors / self.working_bytes)
            else:
                self._missing = 1.0
            self._after_event, self._cold_code = False, True
            self._node("sweep", self.durations["sweep"], gap)

        return self._put(work)

    def kernel(self, name: str, pointers: list[int]) -> tuple[Any, ...]:
        """Put a kernel on the stream."""

        def work(gap: float) -> None:
            us = self.durations[name] * (1 + (self.cold - 1) * self._missing * (name != "main"))
            if self.recording is not None and self._missing:
                us *= self.recording_slows_cold
            if self._after_event and gap == GRAPH_GAP_US:
                gap += self.event_gap_us
            elif self._cold_code:
                gap += self.code_us
            self._after_event = False
            self._missing = 0.0
            if name in self.effects:
                self.effects[name](pointers)
            self.launched.append(name)
            self._node(name, us, gap)

        return self._put(work)

    def cuEventRecord(self, event: Any, stream: Any) -> tuple[Any, ...]:
        def work(gap: float) -> None:
            event.us = self.now_us
            self._after_event = True

        return self._put(work)

    def cuEventRecordWithFlags(self, event: Any, stream: Any, flags: int) -> tuple[Any, ...]:
        return self.cuEventRecord(event, stream)

    def cuEventElapsedTime(self, start: Any, end: Any) -> tuple[Any, ...]:
        return SUCCESS, (end.us - start.us) / 1000

    def cuEventCreate(self, flags: int) -> tuple[Any, ...]:
        return SUCCESS, SimpleNamespace(us=0.0)

    def cuStreamCreate(self, flags: int) -> tuple[Any, ...]:
        return SUCCESS, 7

    def cuFuncSetAttribute(self, function: str, attribute: Any, value: int) -> tuple[Any, ...]:
        self.attributes.append((function, attribute.name, value))
        return (SUCCESS,)

    def cuModuleLoadData(self, content: bytes) -> tuple[Any, ...]:
        return SUCCESS, content

    def cuModuleGetFunction(self, module: Any, name: bytes) -> tuple[Any, ...]:
        return SUCCESS, name.decode()

    def _nothing(self, *arguments: Any) -> tuple[Any, ...]:
        return (SUCCESS,)

    cuStreamWaitValue32 = cuEventDestroy = cuStreamDestroy = cuModuleUnload = _nothing
    cuGraphDestroy = cuGraphUpload = cuGraphExecDestroy = _nothing

    # graphs
    def cuStreamBeginCapture(self, stream: Any, mode: Any) -> tuple[Any, ...]:
        self._captured = []
        return (SUCCESS,)

    def cuStreamEndCapture(self, stream: Any) -> tuple[Any, ...]:
        found, self._captured = self._captured, None
        return SUCCESS, found

    def cuGraphInstantiate(self, captured: Any, flags: int) -> tuple[Any, ...]:
        return SUCCESS, captured

    def cuGraphLaunch(self, executable: Any, stream: Any) -> tuple[Any, ...]:
        self._cold_code = False
        for work in executable:
            work(GRAPH_GAP_US)
        return (SUCCESS,)

    def _put(self, work: Callable[[float], None]) -> tuple[Any, ...]:
        if self._captured is not None:
            self._captured.append(work)
        else:
            work(LAUNCH_GAP_US)
        return (SUCCESS,)

    def _node(self, name: str, us: float, gap: float) -> None:
        start = self.now_us + gap
        self.now_us = start + us
        if self.recording is not None:
            stamps = (int(t * 1000) // STEP_NS * STEP_NS for t in (start, self.now_us))
            kind = FakeCupti.ActivityKind.CONCURRENT_KERNEL if name else FakeCupti.ActivityKind.MEMSET
            self.recording.append(
                SimpleNamespace(kind=kind, name=name, **dict(zip(("start", "end"), stamps, strict=True)))
            )

    def context(self) -> Context:
        """The device's own context on this card."""
        made = object.__new__(Context)
        fingerprint = {"l2_bytes": str(L2_BYTES), "multiprocessors": "2", "shared_bytes_per_block": "1024"}
        made.device = Device(kind="cuda", arch="sm_90a", name="fake", fingerprint=fingerprint)
        made.spent = None
        made._sweep = made._fences = made._scrub = made._staging = None
        made._handle = 0
        made.pool = Pool()
        made.queue = Queue()
        made.nvml = Nvml("0000:00:00.0")
        return made


class FakeNvml:
    """As much of `pynvml` as is read: who computes on the card, and whether it is still there."""

    def __init__(self) -> None:
        self.pids: Callable[[], list[int]] = lambda: [100]
        self.lost = False
        self.reasons: Callable[[], int] = lambda: 0

    def nvmlDeviceGetUUID(self, card: Any) -> str:
        if self.lost:
            raise RuntimeError("GPU is lost")
        return "GPU-fake"

    def nvmlDeviceGetComputeRunningProcesses(self, card: Any) -> list[Any]:
        return [SimpleNamespace(pid=pid) for pid in self.pids()]

    def nvmlDeviceGetCurrentClocksEventReasons(self, card: Any) -> int:
        return self.reasons()

    def behind(self, context: Context) -> Context:
        """The context with this in place of the machine's own NVML."""
        nvml = object.__new__(Nvml)
        nvml._nvml, nvml._card, nvml.absent = self, None, ""
        context.nvml = nvml
        return context


class FakeCupti:
    """Records of the fake card's kernels and memsets."""

    ActivityKind = SimpleNamespace(CONCURRENT_KERNEL=10, MEMSET=7)

    def __init__(self, card: FakeCard) -> None:
        self._card = card

    def activity_register_callbacks(self, requested: Any, completed: Any) -> None:
        self._completed = completed

    def activity_enable(self, kind: int) -> None:
        self._card.recording = self._card.recording or []

    def activity_disable(self, kind: int) -> None:
        self.activity_flush_all(1)
        self._card.recording = None

    def activity_flush_all(self, flag: int) -> None:
        if self._card.recording is not None:
            found, self._card.recording = self._card.recording, []
            self._completed(found)


class FakeCublasLt:
    """As much of `nvmath.bindings.cublasLt` as is used.

    Algorithm i takes `times[i]` microseconds (infinity: it refuses) and fills the output with `value`.
    """

    class cuBLASLtError(Exception):
        pass

    class MatmulDescAttribute:
        def __class_getitem__(cls, name: str) -> str:
            return name

    MatmulPreferenceAttribute = SimpleNamespace(MAX_WORKSPACE_BYTES="MAX_WORKSPACE_BYTES")

    def __init__(self, card: FakeCard, times: tuple[float, ...], value: float = 0.0) -> None:
        self.card, self.times = card, times
        self.open: list[str] = []
        self.described: dict[str, int] = {}
        for index, us in enumerate(times):
            card.durations[f"gemm{index}"] = us
            card.effects[f"gemm{index}"] = lambda pointers: ctypes.memmove(
                pointers[0], (ctypes.c_float * pointers[1])(*([value] * pointers[1])), 4 * pointers[1]
            )

    def get_version(self) -> int:
        return 130100

    def _made(self, kind: str) -> int:
        self.open.append(kind)
        return len(self.open)

    def create(self) -> int:
        return self._made("handle")

    def matmul_desc_create(self, compute: Any, scale: int) -> int:
        self.described["compute"] = compute
        return self._made("operation")

    def matmul_desc_set_attribute(self, thing: int, name: str, address: int, nbytes: int) -> None:
        assert nbytes == 4
        self.described[name] = ctypes.c_int32.from_address(address).value

    def matrix_layout_create(self, kind: int, rows: int, columns: int, leading: int) -> int:
        self.elements = rows * columns
        return self._made("layout")

    def matmul_preference_create(self) -> int:
        return self._made("preference")

    def matmul_preference_set_attribute(self, thing: int, name: str, address: int, nbytes: int) -> None:
        assert ctypes.c_uint64.from_address(address).value == 32 << 20

    def _closed(self, thing: int) -> None:
        self.open.pop()

    destroy = matmul_desc_destroy = matrix_layout_destroy = matmul_preference_destroy = _closed

    def MatmulHeuristicResult(self, count: int) -> Any:
        class Results(list[Any]):
            ptr = 5000

        return Results(SimpleNamespace(ptr=5000 + i) for i in range(count))

    def matmul_algo_get_heuristic(self, *arguments: Any) -> None:
        ctypes.c_int32.from_address(arguments[-1]).value = len(self.times)

    def matmul(self, *arguments: Any) -> None:
        algorithm = arguments[12] - 5000
        if self.times[algorithm] == float("inf"):
            raise self.cuBLASLtError("NOT_SUPPORTED")
        self.card.kernel(f"gemm{algorithm}", [arguments[10], self.elements])
