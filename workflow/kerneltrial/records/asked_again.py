"""That an iteration's proposals are to be asked for anew, although replies to them are recorded."""

from kerneltrial.records.record import Positive, Record


class AskedAgain(Record):
    """`times` counts how often; each time is a fresh sample of the same questions, and is paid for."""

    iteration: Positive
    times: Positive
