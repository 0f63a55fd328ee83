"""A broken pipeline is an exception; every room's own derives from this one."""


class Problem(Exception):
    """One clear line: what is wrong, where, and what to do. The command prints it and exits with 3, without a trace."""
