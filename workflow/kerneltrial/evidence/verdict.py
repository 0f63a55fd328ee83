"""What a verification looked at, and what was wrong."""

from dataclasses import dataclass, field


@dataclass
class Verdict:
    """Counts of what was looked at; each problem is one line that names the file."""

    records: int = 0
    objects: int = 0
    measurements: int = 0
    journal_lines: int = 0
    problems: list[str] = field(default_factory=list)
