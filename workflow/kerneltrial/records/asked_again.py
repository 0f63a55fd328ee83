"""That an iteration's proposals are to be asked for anew, although replies to them are recorded."""

from kerneltrial.records.record import Digest, Positive, Record


class AskedAgain(Record):
    """`times` counts how often; each time is a fresh sample of the same questions, and is paid for.

    `superseded` are the requests, of this iteration and of those after it, whose answers are no longer in force. They
    were paid for all the same, so this iteration's proposal still counts them.
    """

    iteration: Positive
    times: Positive
    superseded: tuple[Digest, ...] = ()
