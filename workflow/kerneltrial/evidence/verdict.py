"""What a verification looked at, and what was wrong, level by level."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

Level = Literal["bytes", "signatures", "derivation", "decision", "rerun"]

PROVES: dict[Level, tuple[str, str]] = {
    "bytes": (
        "the files belong together and are those that their digests, the journal and the seal name",
        "who made them; whoever can make all of them anew can make their digests anew",
    ),
    "signatures": (
        "holders of these keys signed these bytes: the lock page, the receipt, all files at the seal",
        "when they signed; that a signer was honest; that there was no other run",
    ),
    "derivation": (
        "records follow from what they name: sources, builds, samples, the sealed cases from the revealed salt",
        "that the samples were measured on the machine that is named, or measured at all",
    ),
    "decision": (
        "prize, costs, confirmation and decision follow from the raw samples, the usage and the terms that are here",
        "that the terms, the prices and the calls are true",
    ),
    "rerun": (
        "winner and baseline are right here too, on the public and on the revealed sealed cases",
        "how fast they are elsewhere; right on these cases is no proof for others",
    ),
}


# What values lead to that have a form which no trial writes: a stranger may have made digests right around anything.
FOREIGN = (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)


@dataclass
class Verdict:
    """Counts of what was looked at; each problem is one line that names the file.

    A level that is not in `problems` was not looked at; `notes` say why, or what of it was left out. `other_version`
    says why only the bytes and signatures could be looked at, where that is so.
    """

    records: int = 0
    objects: int = 0
    measurements: int = 0
    journal_lines: int = 0
    other_version: str = ""
    problems: dict[Level, list[str]] = field(default_factory=dict)
    notes: dict[Level, list[str]] = field(default_factory=dict)

    def look(self, level: Level, problems: Iterable[str]) -> None:
        """A level was looked at, with these problems; that it cannot be looked at to its end is one of them."""
        found = self.problems.setdefault(level, [])
        try:
            found.extend(problems)
        except FOREIGN as fault:
            found.append(f"{level}: something here has a form that no trial writes ({type(fault).__name__}: {fault})")

    def note(self, level: Level, line: str) -> None:
        """Something to know of a level that is no problem."""
        self.notes.setdefault(level, []).append(line)

    def leave(self, level: Level) -> None:
        """What the level is about is not here: it was not looked at, unless something was wrong on the way to it."""
        if not self.problems.get(level):
            self.problems.pop(level, None)

    @property
    def lines(self) -> list[str]:
        """All problems, each once."""
        return list(dict.fromkeys(line for lines in self.problems.values() for line in lines))

    @property
    def whole(self) -> bool:
        return not any(self.problems.values())

    def table(self) -> list[str]:
        """One line a level and what it proves, and what it does not."""
        found = []
        for level, (proves, not_proved) in PROVES.items():
            lines = self.problems.get(level)
            state = "not done" if lines is None else counted(lines) if lines else "ok"
            notes = "; ".join(self.notes.get(level, []))
            found.append(f"{level:<11} {state}" + (f" ({notes})" if notes else ""))
            if lines is not None and not lines:
                found += [f"            shows: {proves}", f"            not:   {not_proved}"]
        return found


def counted(lines: list[str]) -> str:
    """How many problems there are, in words."""
    return f"{len(lines)} problem{'s' * (len(lines) != 1)}"
