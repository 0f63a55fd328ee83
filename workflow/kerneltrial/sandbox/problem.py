"""What goes wrong with the sandbox itself."""

from kerneltrial.records.problem import Problem


class SandboxProblem(Problem):
    """The sandbox could not be set up or was used wrongly: one line for a person."""
