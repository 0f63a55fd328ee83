"""What goes wrong with the toolchain itself."""


class BuildProblem(Exception):
    """The compiler is absent or unusable, which is no candidate's fault: one line for a person."""
