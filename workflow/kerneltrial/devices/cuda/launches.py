"""Machine code on the card, and the launches of a call bound to addresses."""

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

from kerneltrial.devices.cuda.driver import TURNED_DOWN, CudaError, bindings, call, release
from kerneltrial.devices.cuda.memory import buffer_bytes
from kerneltrial.inputs.calls import Call, Pointer, ResolvedLaunch, Scalar
from kerneltrial.records.reason import Finding, Reason

_STATIC_LIMIT = 48 * 1024  # above it a function must be allowed its dynamic shared memory by attribute
_PORTABLE_CLUSTER = 8  # larger clusters must be allowed by attribute


class TurnedDown(Exception):
    """The launch cannot be made on this card; `finding` says why. The context lives on."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.detail)
        self.finding = finding


def require_room(plan: Call, memory_bytes: int) -> None:
    """Raise `TurnedDown` where a plan's own scratch leaves no room for anything else on the card.

    Else a candidate that asks for a terabyte would end the trial as a card that is full does. Up to half of the card's
    memory, less what the contract's buffers take, is the plan's to use; 0 bytes: the card's memory is not known.
    """
    scratch = sum(buffer_bytes(buffer) for buffer in plan.buffers if buffer.role == "scratch")
    others = sum(buffer_bytes(buffer) for buffer in plan.buffers if buffer.role != "scratch")
    allowed = max(0, memory_bytes // 2 - others)
    if memory_bytes and scratch > allowed:
        detail = (
            f"the plan's scratch takes {scratch} bytes; beside the contract's buffers at most {allowed} are allowed, "
            f"half of the card's {memory_bytes} in all"
        )
        raise TurnedDown(Finding(reason=Reason.LAUNCH_FAILED, detail=detail))


def row_of_blocks(
    entry: str, blocks: int, threads: int, parameters: Sequence[Pointer | Scalar], shared_bytes: int = 0
) -> ResolvedLaunch:
    """A launch of so many blocks in one row, without clusters: what kernels of our own take."""
    return ResolvedLaunch(
        entry=entry,
        grid=(blocks, 1, 1),
        block=(threads, 1, 1),
        cluster=(1, 1, 1),
        cooperative=False,
        shared_bytes=shared_bytes,
        parameters=tuple(parameters),
    )


class Module:
    """A loaded cubin."""

    def __init__(self, cubin: bytes) -> None:
        self._handle = call("cuModuleLoadData", cubin)
        self._functions: dict[str, Any] = {}

    def function(self, entry: str) -> Any:
        """The kernel of this name; raise `TurnedDown` where there is none."""
        if entry not in self._functions:
            try:
                self._functions[entry] = call("cuModuleGetFunction", self._handle, entry.encode())
            except CudaError as error:
                if error.code != "CUDA_ERROR_NOT_FOUND":
                    raise
                detail = f"the binary has no entry {entry}"
                raise TurnedDown(Finding(reason=Reason.ENTRY_MISSING, detail=detail)) from error
        return self._functions[entry]

    def unload(self) -> None:
        release("cuModuleUnload", self._handle)


class BoundLaunch:
    """One launch with its parameters in memory, ready to be put on a stream any number of times."""

    def __init__(self, module: Module, launch: ResolvedLaunch, addresses: Mapping[str, int], stream: Any) -> None:
        self._launch = launch
        self._function = module.function(launch.entry)
        self._cells = [_cell(parameter, addresses) for parameter in launch.parameters]
        pointers = [ctypes.addressof(cell) for cell in self._cells]
        self._pointers = (ctypes.c_void_p * max(1, len(pointers)))(*pointers)
        self._configuration = _configuration(launch, stream)
        self._allow()

    def enqueue(self) -> None:
        """Put the launch on its stream; raise `TurnedDown` where the driver does not take it."""
        try:
            call("cuLaunchKernelEx", self._configuration, self._function, ctypes.addressof(self._pointers), 0)
        except CudaError as error:
            raise self._turned_down(error) from error

    def _allow(self) -> None:
        names = bindings().CUfunction_attribute
        try:
            if self._launch.shared_bytes > _STATIC_LIMIT:
                wanted = names.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                call("cuFuncSetAttribute", self._function, wanted, self._launch.shared_bytes)
            x, y, z = self._launch.cluster
            if x * y * z > _PORTABLE_CLUSTER:
                allowed = names.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
                call("cuFuncSetAttribute", self._function, allowed, 1)
        except CudaError as error:
            raise self._turned_down(error) from error

    def _turned_down(self, error: CudaError) -> Exception:
        if error.code not in TURNED_DOWN:
            return error
        launch = self._launch
        detail = (
            f"{error.code} from {error.where}: {launch.entry} with grid {launch.grid}, block {launch.block}, "
            f"cluster {launch.cluster}, cooperative {launch.cooperative}, {launch.shared_bytes} dynamic shared bytes"
        )
        return TurnedDown(Finding(reason=Reason.LAUNCH_FAILED, detail=detail))


def _cell(parameter: Pointer | Scalar, addresses: Mapping[str, int]) -> Any:
    """A parameter in memory, as wide as the kernel expects it."""
    if isinstance(parameter, Pointer):
        return ctypes.c_uint64(addresses[parameter.buffer])
    kind = ctypes.c_uint32 if parameter.bytes == 4 else ctypes.c_uint64
    return kind(parameter.bits)  # ctypes wraps a negative number to its two's complement


def _configuration(launch: ResolvedLaunch, stream: Any) -> Any:
    driver = bindings()
    configuration = driver.CUlaunchConfig()
    configuration.gridDimX, configuration.gridDimY, configuration.gridDimZ = launch.grid
    configuration.blockDimX, configuration.blockDimY, configuration.blockDimZ = launch.block
    configuration.sharedMemBytes = launch.shared_bytes
    configuration.hStream = stream
    attributes = []
    if launch.cluster != (1, 1, 1):
        cluster = driver.CUlaunchAttribute()
        cluster.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        dimension = cluster.value.clusterDim
        dimension.x, dimension.y, dimension.z = launch.cluster
        attributes.append(cluster)
    if launch.cooperative:
        cooperative = driver.CUlaunchAttribute()
        cooperative.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        cooperative.value.cooperative = 1
        attributes.append(cooperative)
    configuration.attrs = attributes
    configuration.numAttrs = len(attributes)
    return configuration
