"""What can go wrong with the store itself."""


class StoreProblem(Exception):
    """One line: what is wrong with which file, and what to do."""
