"""The outputs of timed launches are checked too: honest when checked and wrong when timed is wrong."""

from collections.abc import Sequence

from kerneltrial.devices.device import Run
from kerneltrial.inputs.calls import Call
from kerneltrial.judge.answers import Answers, compare_all
from kerneltrial.records.case import Case
from kerneltrial.records.reason import Finding


def timed_fault(answers: Answers, case: Case, call: Call, outputs: Sequence[dict[str, bytes]]) -> Finding | None:
    """The first fault in what the timed launches left, one mapping a draw; or None."""
    for draw, left in enumerate(outputs):
        run = Run(
            completed=True,
            outputs=left,
            inputs_intact=True,
            guards_intact=True,
            scratch_restored=True,
            findings=(),
            unchecked=(),
        )
        measures = {name: c.measure for name, c in answers.baseline(case, draw).items()}
        compared = compare_all(run, call, answers.drawn(case, draw).expected, measures.get)
        fault = next((c.finding for c in compared if c.finding is not None), None)
        if fault is not None:
            return Finding(reason=fault.reason, detail=f"in a timed launch of case {case.name}: {fault.detail}")
    return None
