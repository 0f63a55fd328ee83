"""Where two runs disagree, what it hangs on is found by running again, and is named where the device can name it."""

import msgspec
import numpy as np
import pytest

from kerneltrial.devices.device import Run
from kerneltrial.inputs.calls import Buffer, Call
from kerneltrial.judge.disagreement import Again, explain
from kerneltrial.records.reason import Reason

CALL = Call(buffers=(Buffer(name="y", role="output", dtype="float32", shape=(4,), initial="poisoned"),), launches=())
WORDS = "global read of 4 bytes, source line 15, got what was there before the write in source line 9"


def left(*values: float) -> Run:
    return Run(
        completed=True, outputs={"y": np.array(values, np.float32).tobytes()}, inputs_intact=True, guards_intact=True,
        scratch_restored=True, findings=(), unchecked=(),
    )  # fmt: skip


RIGHT, WRONG = left(1, 2, 3, 4), left(1, 2, 3, 9)
OLDER = msgspec.structs.replace(WRONG, older=(WORDS,))


@pytest.mark.parametrize(
    ("second", "newest", "forward", "reason", "words"),
    [
        (OLDER, RIGHT, RIGHT, Reason.GLOBAL_RACE, WORDS),
        (OLDER, WRONG, RIGHT, Reason.NOT_DETERMINISTIC, "order in which blocks or threads run"),
        (OLDER, WRONG, WRONG, Reason.OUTPUT_NOT_WRITTEN, "results depend on what lay in outputs"),
        (WRONG, RIGHT, WRONG, Reason.OUTPUT_NOT_WRITTEN, "results depend on what lay in outputs"),
    ],
)
def test_an_older_value_is_told_only_where_the_newest_one_makes_it_right(
    second: Run, newest: Run, forward: Run, reason: Reason, words: str
) -> None:
    again = Again(first=lambda: RIGHT, second_newest=lambda: newest, second_forward=lambda: forward)
    found = explain(CALL, RIGHT, second, again)
    assert found.reason is reason
    assert words in found.detail
    assert "1 of 4 elements" in found.detail
