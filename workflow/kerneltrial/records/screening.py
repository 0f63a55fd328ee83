"""What the screen of PTX does about each thing that it finds: refuse, ask a person, or let it pass."""

from typing import Literal

from kerneltrial.records.record import Record

Action = Literal["reject", "review", "allow"]


class Screening(Record):
    """One action a topic; `judge.screen` says what belongs to each.

    `reject`: the candidate is invalid and never runs. `review`: it is judged as any other, and what would have been
    valid is unchecked until a person has looked: it can lead to no GO. `allow`: it passes without a word. PTX that
    cannot be read to its end is refused whatever this says.
    """

    module_state: Action = "reject"
    clock: Action = "reject"
    launch_identity: Action = "reject"
    unknown_function: Action = "reject"
    trap: Action = "review"
    discard: Action = "reject"
    cache_policy: Action = "review"
    placement: Action = "review"
    dependent_launch: Action = "review"


Topic = Literal[
    "module_state",
    "clock",
    "launch_identity",
    "unknown_function",
    "trap",
    "discard",
    "cache_policy",
    "placement",
    "dependent_launch",
]
