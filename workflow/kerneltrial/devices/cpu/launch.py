"""One launch on the host: parameters, the block's state, contexts, and what came of it."""

import math

import numpy as np
from numpy.typing import NDArray

from kerneltrial.devices.cpu import layout as at
from kerneltrial.devices.cpu.arena import Arena, aligned_bytes
from kerneltrial.devices.cpu.faults import Fault, explain, got_older
from kerneltrial.devices.cpu.kernel import Kernel
from kerneltrial.devices.cpu.launched import Launched
from kerneltrial.devices.cpu.logs import Tallies
from kerneltrial.devices.cpu.native import run_grid
from kerneltrial.devices.cpu.printing import Prints
from kerneltrial.devices.cpu.races import RECORD_BYTES
from kerneltrial.devices.cpu.records_global import GlobalRecords
from kerneltrial.devices.cpu.refusals import unsupported_feature
from kerneltrial.devices.cpu.turns import turns
from kerneltrial.devices.device import Refused
from kerneltrial.inputs.calls import Pointer, ResolvedLaunch
from kerneltrial.records.reason import Finding, Reason, ReasonClass

MAX_CONTEXT_BYTES = 1 << 30
UNSET = {0xFF: 0x7FFF7FFF7FFF7FFF, 0x7B: 0x7B7A7B7A7B7A7B7A}
UNSET_ELSE = -0x0484048404840485
"""What lies in registers that were never written, by the byte of the call's poison: a NaN of every float type; large,
finite and positive; under other poisons large and negative (0xFB7B..). So neither a sum, nor the largest, nor the
smallest of a row can begin with it. As an offset each leads out of every buffer; as predicates they are true, false,
true."""
_MAX_GRID = (2**31 - 1, 65535, 65535)
_MAX_BLOCK = (1024, 1024, 64)


def refusal(kernel: Kernel, launch: ResolvedLaunch) -> Finding | None:
    """What a GPU would say no to; raises `Refused` for what this device does not do."""
    if launch.cluster != (1, 1, 1):
        raise unsupported_feature("thread block clusters")
    threads = threads_of_block(launch)
    limit = min(at.MAX_THREADS, kernel.function.max_threads)
    shared = _shared_bytes(kernel, launch)
    if any(not 1 <= g <= m for g, m in zip(launch.grid, _MAX_GRID, strict=True)):
        return Finding(reason=Reason.LAUNCH_FAILED, detail=f"grid {launch.grid} is empty or too large")
    if any(not 1 <= b <= m for b, m in zip(launch.block, _MAX_BLOCK, strict=True)) or threads > limit:
        return Finding(reason=Reason.LAUNCH_FAILED, detail=f"block {launch.block} exceeds {limit} threads")
    if launch.shared_bytes < 0 or shared > at.MAX_SHARED_BYTES:
        return Finding(reason=Reason.LAUNCH_FAILED, detail=f"{shared} bytes of shared memory are too many")
    return _parameters_differ(kernel, launch)


def _parameters_differ(kernel: Kernel, launch: ResolvedLaunch) -> Finding | None:
    function = kernel.function
    want = [function.slots[index].size for index in function.parameters]
    have = [8 if isinstance(p, Pointer) else p.bytes for p in launch.parameters]
    if want == have:
        return None
    detail = f"entry {launch.entry} takes parameters of {want} bytes, the plan gives {have}"
    return Finding(reason=Reason.PARAMETERS_DIFFER, detail=detail[:2000])


def _shared_bytes(kernel: Kernel, launch: ResolvedLaunch) -> int:
    layout = kernel.layout
    return layout.dynamic_offset + launch.shared_bytes if layout.open_shared else layout.shared_bytes


def _parameter_bytes(kernel: Kernel, launch: ResolvedLaunch, arena: Arena) -> NDArray[np.uint8]:
    function = kernel.function
    content = aligned_bytes(max(16, at.align_up(function.parameter_bytes, 16)))
    content[:] = 0
    for index, parameter in zip(function.parameters, launch.parameters, strict=True):
        slot = function.slots[index]
        value = arena.address(parameter.buffer) if isinstance(parameter, Pointer) else parameter.bits
        packed = (value % (1 << 8 * slot.size)).to_bytes(slot.size, "little")
        content[slot.offset : slot.offset + slot.size] = np.frombuffer(packed, np.uint8)
    return content


def _contexts(kernel: Kernel, block: tuple[int, int, int]) -> NDArray[np.uint8]:
    threads = block[0] * block[1] * block[2]
    size = kernel.layout.context_bytes
    if threads * size > MAX_CONTEXT_BYTES:
        raise unsupported_feature(f"{threads * size} bytes of local memory and registers a block")
    contexts = aligned_bytes(threads * size)
    contexts[:] = 0
    heads = contexts.view(np.int32).reshape(threads, size // 4)
    linear = np.arange(threads)
    heads[:, at.TID_X // 4] = linear % block[0]
    heads[:, at.TID_Y // 4] = linear // block[0] % block[1]
    heads[:, at.TID_Z // 4] = linear // (block[0] * block[1])
    heads[:, at.LINEAR // 4] = linear
    heads[:, at.LANE // 4] = linear % 32
    return contexts


def threads_of_block(launch: ResolvedLaunch) -> int:
    return launch.block[0] * launch.block[1] * launch.block[2]


def number_of_blocks(launch: ResolvedLaunch) -> int:
    return launch.grid[0] * launch.grid[1] * launch.grid[2]


def _geometry(launch: ResolvedLaunch) -> dict[str, int]:
    """Fields of the block's state that the plan gives."""
    return {
        **{f"nctaid.{axis}": value for axis, value in zip("xyz", launch.grid, strict=True)},
        **{f"ntid.{axis}": value for axis, value in zip("xyz", launch.block, strict=True)},
        "threads": threads_of_block(launch),
        "dynamic_bytes": launch.shared_bytes,
    }


def _of_kernel(kernel: Kernel) -> dict[str, int]:
    """Fields of the block's state that the compiled kernel gives."""
    return {
        "thread": kernel.address,
        "thread_budget": kernel.instructions + 1,
        "granule_shift": kernel.granule_shift,
        "context_bytes": kernel.layout.context_bytes,
        "public_bytes": 4 * kernel.layout.public_words,
        "local_offset": kernel.layout.local_offset,
        "local_bytes": kernel.layout.local_bytes,
        "ring_offset": kernel.layout.ring_offset,
    }


class Worker:
    """State, contexts and shared memory of the blocks `first` to before `end`, to be run one after the other."""

    def __init__(self, kernel: Kernel, launch: ResolvedLaunch, arena: Arena, budget: int, blocks: range) -> None:
        self._kernel, self._launch, self._arena = kernel, launch, arena
        self.budget = budget
        self.shared_bytes = _shared_bytes(kernel, launch)
        checks_all = kernel.level == "all"
        records = (self.shared_bytes >> kernel.granule_shift) + 2 if checks_all else 1
        self._shared, self._shadow = aligned_bytes(self.shared_bytes + 256), aligned_bytes(records * RECORD_BYTES)
        self._shadow[:] = 0
        self._parameters = _parameter_bytes(kernel, launch, arena)
        self._contexts = _contexts(kernel, launch.block)
        self.state = np.zeros(at.BLOCK_BYTES // 8, np.int64)
        self.set(
            **_geometry(launch),
            **_of_kernel(kernel),
            **_of_arena(arena),
            **_order(arena, launch),
            shared=self._shared.ctypes.data,
            params=self._parameters.ctypes.data,
            shared_bytes=self.shared_bytes,
            budget=budget,
            shadow=self._shadow.ctypes.data,
            epoch=1,
            check_exits=int(checks_all),
            first_block=blocks.start,
            end_block=blocks.stop,
            read_mask=at.READABLE * _ONES,
        )

    def set(self, **fields: int) -> None:
        """Set fields of the state."""
        for name, value in fields.items():
            self.state[at.BLOCK[name] // 8] = value

    def get(self, name: str) -> int:
        """A field of the state."""
        return int(self.state[at.BLOCK[name] // 8])

    def run(self) -> bool:
        """Run the blocks; false after a fault."""
        return self.step(resume=False) == 0

    def step(self, resume: bool) -> int:
        """Run the blocks, or resume the one that spins: 0, 1 after a fault, 2 where it spins (again)."""
        return run_grid(self.state.ctypes.data, self._contexts.ctypes.data, threads_of_block(self._launch), resume)

    def older(self) -> str:
        """Words on the last read that got an older value; empty where none did."""
        read, wrote = (self._kernel.sites[self.get(f"older_{which}")] for which in ("read", "wrote"))
        return got_older(read, wrote, self.get("older_address"), self._arena) if read.kind else ""

    @property
    def bytes(self) -> int:
        """What it holds."""
        return self._contexts.size + self._shared.size + self._shadow.size

    def finding(self) -> Finding:
        """What the fault was; raises `Refused` where it says nothing of the kernel."""
        found = explain(_fault(self, self._kernel, self._launch), self._kernel, self._arena, self.shared_bytes)
        if found.reason.reason_class is ReasonClass.UNCHECKED:
            raise Refused(found)
        return found


_ONES = 0x0101010101010101


def _of_arena(arena: Arena) -> dict[str, int]:
    """Fields of the block's state that the call's memory gives."""
    return {
        "arena": arena.memory.ctypes.data,
        "arena_bytes": arena.memory.size,
        **{f"arena_units{n}": arena.memory.size // n for n in (1, 2, 4, 8, 16)},
        "flags": arena.flags.ctypes.data,
        "globals": at.GLOBAL_BASE + arena.image_start,
        "poison": arena.poison * 0x01010101,
        "unset": UNSET.get(arena.poison, UNSET_ELSE),
    }


def _order(arena: Arena, launch: ResolvedLaunch) -> dict[str, int]:
    """Fields that say in which order blocks, warps and lanes take their turns. Lanes go up or down, as a coin says."""
    blocks = turns(number_of_blocks(launch), arena.order, arena.seed)
    warps = turns(-(-math.prod(launch.block) // 32), arena.order, arena.seed + 1)
    down = arena.order == "backward" or (arena.order == "shuffled" and arena.seed % 2 == 1)
    return {
        "backward": int(down), "block_stride": blocks.stride, "block_shift": blocks.shift,
        "warp_stride": warps.stride, "warp_shift": warps.shift,
    }  # fmt: skip


def run_launch(
    kernel: Kernel, launch: ResolvedLaunch, arena: Arena, budget: int, tallies: Tallies | None = None
) -> Launched:
    """Run one launch that `refusal` has nothing against, block by block; a kernel that counts adds to `tallies`."""
    records = GlobalRecords(kernel, launch, arena)
    worker = Worker(kernel, launch, arena, budget, range(number_of_blocks(launch)))
    worker.set(**(tallies.fields() if tallies else {}), **records.fields())
    prints = Prints() if kernel.prints else None
    worker.set(**(prints.fields() if prints else {}))
    finding = None if worker.run() else worker.finding()
    return Launched(
        finding, worker.get("budget"), worker.get("barriers"), worker.shared_bytes, records.checked,
        bool(worker.get("noncoherent")), prints, worker.older(),
    )  # fmt: skip


def _fault(worker: Worker, kernel: Kernel, launch: ResolvedLaunch) -> Fault:
    field = worker.get
    code = field("fault")
    site, address = kernel.sites[field("fault_site")], field("fault_address")
    if site.group is not None:
        number, address = site.group.culprit(address, _shared_bytes(kernel, launch))
        site = kernel.sites[number]
    if code in (at.DEADLOCK, at.EXITED, at.EXHAUSTED):
        site = kernel.sites[0]
    return Fault(
        code=code,
        site=site,
        address=address,
        thread=field("fault_thread"),
        other=field("fault_other"),
        entry=launch.entry,
        grid=launch.grid,
        block_size=launch.block,
        block=(field("ctaid.x"), field("ctaid.y"), field("ctaid.z")),
    )
