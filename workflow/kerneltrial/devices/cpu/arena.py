"""The memory of a call: every buffer in one arena, with margins, flags for each byte, and poison where nothing is."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kerneltrial.devices.cpu import layout as at
from kerneltrial.devices.device import Conditions, DeviceProblem, Values
from kerneltrial.devices.placement import offset_of
from kerneltrial.devices.poison import MARGIN_DTYPE, poison_byte, poison_into
from kerneltrial.inputs.calls import Buffer, Call

_ITEM_BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}
MAX_ARENA_BYTES = 16 << 30


def item_bytes(dtype: str) -> int:
    return _ITEM_BYTES.get(dtype) or np.dtype(dtype).itemsize


@dataclass(frozen=True)
class Placed:
    """A buffer at `start` (bytes into the arena), `size` bytes long."""

    buffer: Buffer
    start: int
    size: int


class Arena:
    """`memory` and `flags` have a byte each for every byte that a kernel can address; `image_start` is where
    module-scope variables begin; `workspace` is where blocks of a cooperative launch meet. `poison` is the byte for
    memory of threads and blocks, which is not in the arena; `order` and `seed` say how they take turns, and `newest` is
    as in `Conditions`."""

    def __init__(self, call: Call, values: Values, conditions: Conditions, image: tuple[bytes, bytes]) -> None:
        self._conditions = conditions
        self.poison = poison_byte(conditions)
        self.order, self.seed, self.newest = conditions.order, conditions.seed, conditions.newest
        self.placed: dict[str, Placed] = {}
        position = at.MARGIN_BYTES
        for buffer in call.buffers:
            size = item_bytes(buffer.dtype)
            for extent in buffer.shape:
                size *= extent
            start = at.align_up(position, 256) + offset_of(conditions, buffer.name)
            self.placed[buffer.name] = Placed(buffer, start, size)
            position = start + size + at.MARGIN_BYTES
        self.image_start = at.align_up(position, 256)
        self.workspace = at.align_up(self.image_start + len(image[0]) + at.MARGIN_BYTES, 256)
        meeting = 256 + at.MARGIN_BYTES if any(launch.cooperative for launch in call.launches) else 0
        total = self.workspace + meeting
        if total > MAX_ARENA_BYTES:
            raise DeviceProblem(f"the call's buffers need {total} bytes, the cpu device has {MAX_ARENA_BYTES}")
        self.memory = aligned_bytes(total)
        self.flags = aligned_bytes(total)
        poison_into(self.memory, conditions, "", MARGIN_DTYPE)
        self.flags[:] = 0
        self._set_image(*image)
        if meeting:
            self.flags[self.workspace : self.workspace + 8] = at.READABLE | at.WRITABLE | at.WRITTEN
        for placed in self.placed.values():
            self._fill(placed, values)
        self._unused = self._unused_parts()
        self._guards = self._unused_memory()
        self._inputs = {p.buffer.name: self._view(p).tobytes() for p in self._of_role("input")}

    def _unused_parts(self) -> list[slice | NDArray[np.intp]]:
        """Where the bytes without rights lie: what is between buffers as it is, the rest byte by byte."""
        parts: list[slice | NDArray[np.intp]] = []
        position = 0
        for placed in self.placed.values():
            parts.append(slice(position, placed.start))
            position = placed.start + placed.size
        parts.append(np.flatnonzero(self.flags[position:] == 0) + position)
        return parts

    def _unused_memory(self) -> list[bytes]:
        return [self.memory[part].tobytes() for part in self._unused]

    def _of_role(self, *roles: str) -> list[Placed]:
        return [p for p in self.placed.values() if p.buffer.role in roles]

    def _view(self, placed: Placed) -> NDArray[np.uint8]:
        return self.memory[placed.start : placed.start + placed.size]

    def _set_image(self, content: bytes, flags: bytes) -> None:
        end = self.image_start + len(content)
        rights = np.frombuffer(flags, np.uint8)
        self.flags[self.image_start : end] = rights
        used = rights != 0
        self.memory[self.image_start : end][used] = np.frombuffer(content, np.uint8)[used]

    def _fill(self, placed: Placed, values: Values) -> None:
        buffer = placed.buffer
        rights = at.READABLE | (0 if buffer.role == "input" else at.WRITABLE)
        view = self._view(placed)
        if buffer.initial == "given":
            if buffer.name not in values:
                raise DeviceProblem(f"no values were given for buffer {buffer.name}")
            content = np.ascontiguousarray(values[buffer.name]).reshape(-1).view(np.uint8)
            if content.size != placed.size:
                raise DeviceProblem(f"{content.size} bytes were given for buffer {buffer.name} of {placed.size}")
            view[:] = content
            rights |= at.WRITTEN
        elif buffer.initial == "poisoned":
            poison_into(view, self._conditions, buffer.name, buffer.dtype)
        else:
            view[:] = 0
            rights |= at.WRITTEN
        self.flags[placed.start : placed.start + placed.size] = rights

    def open_workspace(self) -> int:
        """The address that a kernel sees of the meeting place, made new: its size, and a word for barriers."""
        self.memory[self.workspace : self.workspace + 8] = (8, 0, 0, 0, 0, 0, 0, 0)
        return at.GLOBAL_BASE + self.workspace

    def address(self, name: str) -> int:
        """The address that a kernel sees of a buffer."""
        return at.GLOBAL_BASE + self.placed[name].start

    def outputs(self) -> dict[str, bytes]:
        return {p.buffer.name: self._view(p).tobytes() for p in self._of_role("output", "inout")}

    def inputs_intact(self) -> bool:
        return all(self._view(p).tobytes() == self._inputs[p.buffer.name] for p in self._of_role("input"))

    def guards_intact(self) -> bool:
        """Whether all that is no buffer and no variable still holds the poison."""
        return self._unused_memory() == self._guards

    def scratch_restored(self) -> bool:
        restoring = [p for p in self._of_role("scratch") if p.buffer.initial == "self_restoring"]
        return all(not self._view(p).any() for p in restoring)

    def unwritten(self) -> list[tuple[str, int, int]]:
        """Outputs with bytes that were never written: name, how many bytes, and the first one's offset."""
        found = []
        for placed in self._of_role("output"):
            never = (self.flags[placed.start : placed.start + placed.size] & at.WRITTEN) == 0
            count = int(never.sum())
            if count:
                found.append((placed.buffer.name, count, int(never.argmax())))
        return found


def aligned_bytes(size: int) -> NDArray[np.uint8]:
    """Uninitialised bytes that begin at a multiple of 256."""
    try:
        raw = np.empty(size + 256, np.uint8)
    except MemoryError:
        raise DeviceProblem(f"no memory for {size} bytes on the cpu device") from None
    start = -raw.ctypes.data % 256
    return raw[start : start + size]
