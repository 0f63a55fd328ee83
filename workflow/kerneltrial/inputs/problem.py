"""What a person has to mend before a trial can run."""

from kerneltrial.records.problem import Problem


class InputProblem(Problem):
    """One line: what is wrong, where (file, field, value), what to do. The command ends with it, nothing is written."""

    is_of_what_is_locked = True

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))
