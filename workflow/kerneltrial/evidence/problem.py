"""What can go wrong with making or reading evidence."""

from kerneltrial.records.problem import Problem


class EvidenceProblem(Problem):
    """One line: what is wrong with which piece of evidence, and what to do."""
