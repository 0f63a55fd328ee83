"""What a profiler's counters say of one kernel on one case, on request."""

from kerneltrial.records.record import Name, Record, Text


class Profiled(Record, tag_field="state", tag="profiled"):
    """Counters of one warm call by ncu's names: sums over the plan's launches, shares weighted by their durations.

    `sentence` says in words what holds the kernel up, for people and for prompts.
    """

    case: Name
    counters: dict[str, float]
    sentence: Text


class NoProfile(Record, tag_field="state", tag="none"):
    """There are no counters, and why."""

    why: Text


NOT_ASKED = NoProfile(why="not asked for: protocol.profile is none")
