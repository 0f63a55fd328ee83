"""What a child may use, and what it may see."""

from typing import Annotated

from msgspec import Meta

from kerneltrial.records.record import Count, Positive, Record

Seconds = Annotated[float, Meta(gt=0)]


class Limits(Record):
    """Bounds of one child.

    `wall_s` is the child's whole life, `cpu_s` its processor time. `memory_bytes` is the address space that it may
    add to what the nursery holds already (0: no bound, for drivers that reserve terabytes). `file_bytes` bounds every
    file that it writes. `processes` of 1 means threads only; more is a bound that the kernel enforces, though
    not on root.
    """

    wall_s: Seconds
    cpu_s: Positive
    memory_bytes: Count
    file_bytes: Count = 0
    processes: Positive = 1


class View(Record):
    """Paths that a child may read, and those that it may also write; a folder stands for all below it.

    Programs may be started only from below `execute`, whose files can be read too; without any, no program can.

    `python` adds the folders that an import may touch: the standard library, site-packages, the packages that the
    nursery holds, and the system's libraries. `driver` is for the child that opens a GPU: it may read everything, run
    the driver's own programs, write to `/dev`, `/proc` and `/tmp`, and see the host's process ids (NVML names
    processes by them); it still has no network. No candidate's host code runs in such a child.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    execute: tuple[str, ...] = ()
    python: bool = True
    driver: bool = False
