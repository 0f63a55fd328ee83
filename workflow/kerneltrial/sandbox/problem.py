"""What goes wrong with the sandbox itself."""


class SandboxProblem(Exception):
    """The sandbox could not be set up or was used wrongly: one line for a person."""
