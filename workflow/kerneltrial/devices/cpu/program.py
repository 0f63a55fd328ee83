"""Where a kernel's variables and a thread's context lie, decided before code is made."""

from dataclasses import dataclass, field
from itertools import chain

from kerneltrial.devices.cpu.asynchronous import RING_BYTES
from kerneltrial.devices.cpu.flow import Flow, bits
from kerneltrial.devices.cpu.layout import (
    CONSTANT,
    MARGIN_BYTES,
    MAX_LOCAL_BYTES,
    MAX_SHARED_BYTES,
    PUBLIC,
    READABLE,
    WRITABLE,
    WRITTEN,
    align_up,
)
from kerneltrial.devices.cpu.refusals import unsupported_feature
from kerneltrial.devices.cpu.syntax import WIDTHS, Function, Module, Variable

MAX_GLOBAL_BYTES = 256 << 20


@dataclass
class Layout:
    """Byte offsets by variable key; the image of module-scope memory with flags for each byte.

    `shared_bytes` is static; dynamic shared memory begins at `dynamic_offset`. A thread's context is `context_bytes`
    long: fixed fields, words of collectives, `spills` by register, `slots` by number where they must outlive a wait,
    a ring of asynchronous copies where it makes any, and `local_bytes` of local memory.
    """

    shared: dict[int, int] = field(default_factory=dict)
    shared_bytes: int = 0
    dynamic_offset: int = 0
    open_shared: bool = False
    local: dict[int, int] = field(default_factory=dict)
    local_bytes: int = 0
    local_offset: int = 0
    images: dict[int, int] = field(default_factory=dict)
    image: bytearray = field(default_factory=bytearray)
    image_flags: bytearray = field(default_factory=bytearray)
    public_words: int = 0
    spills: dict[int, int] = field(default_factory=dict)
    slots: dict[int, int] = field(default_factory=dict)
    ring_offset: int = 0
    context_bytes: int = 0


def lay_out(module: Module, function: Function, flow: Flow, public_words: int) -> Layout:
    """Place everything; raises `Refused` where it is larger than any GPU allows."""
    layout = Layout(public_words=public_words)
    variables = [*module.variables, *function.variables]
    _shared(layout, [v for v in variables if v.space == "shared"])
    _images(layout, [v for v in variables if v.space in ("global", "const")])
    offset = 0
    for variable in variables:
        if variable.space == "local":
            offset = align_up(offset, variable.align)
            layout.local[variable.key] = offset
            offset += variable.size
    layout.local_bytes = align_up(offset, 16)
    if layout.local_bytes > MAX_LOCAL_BYTES:
        raise unsupported_feature(f"{layout.local_bytes} bytes of local memory a thread")
    _context(layout, function, flow)
    return layout


def _shared(layout: Layout, variables: list[Variable]) -> None:
    offset = 0
    for variable in variables:
        if not variable.extern:
            offset = align_up(offset, variable.align)
            layout.shared[variable.key] = offset
            offset += variable.size
    if offset > MAX_SHARED_BYTES:
        raise unsupported_feature(f"{offset} bytes of static shared memory")
    layout.shared_bytes = offset
    layout.dynamic_offset = align_up(offset, 16)
    for variable in variables:
        if variable.extern:
            layout.open_shared = True
            layout.dynamic_offset = align_up(layout.dynamic_offset, max(16, variable.align))
    for variable in variables:
        if variable.extern:
            layout.shared[variable.key] = layout.dynamic_offset


def _images(layout: Layout, variables: list[Variable]) -> None:
    """Module-scope memory: zeroed where PTX gives no initial value, with a margin behind each variable."""
    for variable in variables:
        if variable.extern:
            raise unsupported_feature(f"extern variable {variable.name}")
        offset = align_up(len(layout.image), 256)
        layout.images[variable.key] = offset
        if offset + variable.size > MAX_GLOBAL_BYTES:
            raise unsupported_feature("module-scope variables that are too large")
        rights = READABLE | WRITTEN | (CONSTANT if variable.space == "const" else WRITABLE)
        for target, content in (
            (layout.image, variable.initial.ljust(variable.size, b"\0")),
            (layout.image_flags, bytes([rights]) * variable.size),
        ):
            target.extend(bytes(offset - len(target)))
            target.extend(content)
            target.extend(bytes(MARGIN_BYTES))


def _context(layout: Layout, function: Function, flow: Flow) -> None:
    waits = [block for block in flow.blocks if block.ends == "sync"]
    live = 0
    for block in waits:
        if block.index + 1 < len(flow.blocks):
            live |= flow.blocks[block.index + 1].live_in
        for register in (*block.last.reads, *block.last.writes):
            live |= 1 << register
    for index in flow.spins:
        live |= flow.blocks[flow.blocks[index].target].live_in
    offset = align_up(PUBLIC + 8 * layout.public_words, 16)
    vectors = [lanes for lanes in flow.superwords.together if any(live >> register & 1 for register in lanes)]
    for register in (*chain.from_iterable(vectors), *bits(live)):
        if register not in layout.spills:
            width = max(1, WIDTHS[function.registers[register]] // 8)
            offset = align_up(offset, width)
            layout.spills[register] = offset
            offset += width
    if waits or flow.spins:
        for index, slot in enumerate(function.slots):
            if slot.offset < 0:
                offset = align_up(offset, 16)
                layout.slots[index] = offset
                offset += slot.size
    if any(step.match.form.group == "copy" for block in flow.blocks for step in block.steps):
        layout.ring_offset = align_up(offset, 16)
        offset = layout.ring_offset + RING_BYTES
    layout.local_offset = align_up(offset, 16)
    layout.context_bytes = align_up(layout.local_offset + layout.local_bytes, 64)
