"""Which exceptions are a broken pipeline, told in one line; all else is a fault of this package and keeps its trace."""

import errno

PROBLEMS = (
    "InputProblem",
    "ExpressionProblem",
    "PlanProblem",
    "StoreProblem",
    "DeviceProblem",
    "SandboxProblem",
    "JudgeProblem",
    "QualificationProblem",
    "StageProblem",
)


def one_line(error: BaseException) -> str | None:
    """The one line of a problem, or None where `error` is none."""
    names = {cls.__name__ for cls in type(error).__mro__}
    if names & set(PROBLEMS):
        return " ".join(str(error).split())
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{error.filename or 'a file'}: the disk is full; free some space and run the same command again"
    return None
