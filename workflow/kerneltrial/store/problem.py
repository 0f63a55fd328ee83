"""What can go wrong with the store itself."""

from kerneltrial.records.problem import Problem


class StoreProblem(Problem):
    """One line: what is wrong with which file, and what to do."""
