"""What goes wrong with the toolchain itself."""

from kerneltrial.records.problem import Problem


class BuildProblem(Problem):
    """The compiler is absent or unusable, which is no candidate's fault: one line for a person."""
