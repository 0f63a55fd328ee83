"""What a person has to mend before a trial can run."""


class InputProblem(Exception):
    """One line: what is wrong, where (file, field, value), what to do. The command ends with it, nothing is written."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))
