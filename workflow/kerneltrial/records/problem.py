"""A broken pipeline is an exception; every room's own derives from this one."""

from typing import ClassVar


class Problem(Exception):
    """One clear line: what is wrong, where, and what to do. The command prints it and exits with 3, without a trace.

    `is_of_what_is_locked`: to mend it a file or a key is edited that a lock holds.
    """

    is_of_what_is_locked: ClassVar[bool] = False
