"""What can go wrong with a proposer itself, as opposed to what it proposes."""

from kerneltrial.records.problem import Problem


class ProposerProblem(Problem):
    """One line: which proposer cannot be asked, why, and what to do."""
