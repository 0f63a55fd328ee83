"""End-to-end evidence is worked out again from the stored runs of the application."""

from collections.abc import Iterator, Mapping
from typing import Any

from kerneltrial.evidence.alike import same
from kerneltrial.evidence.measured_as import Beside
from kerneltrial.measure.application import end_to_end, order
from kerneltrial.records.application import ApplicationRuns, EndToEndAsked
from kerneltrial.records.protocol import Protocol
from kerneltrial.store.canonical import builtins, convert


def application_problems(body: Mapping[str, Any], beside: Beside) -> Iterator[str]:
    """What a confirmation says of the application and does not follow from its runs, or rests on too few of them."""
    told = body["end_to_end"]
    entry = beside.measured.get(told.get("samples", ""))
    if entry is None or "end_to_end" not in beside.lock["asked"]:
        return  # not run, or named as missing elsewhere
    asked = convert(EndToEndAsked, beside.lock["asked"]["end_to_end"])
    runs = convert(ApplicationRuns, entry.value)
    if "".join(run.kernel for run in runs.runs) != order(asked.pairs):
        yield "end-to-end evidence: not all of the runs that the lock asks for, in their order"
        return
    yield from _of_another(entry.key, body["outcome"].get("winner", ""), beside)
    confidence = float(convert(Protocol, beside.lock["protocol"]).confidence)
    if not same(told, builtins(end_to_end(runs, asked, confidence, told["samples"]))):
        yield "end-to-end evidence: not what follows from the runs of the application"


def _of_another(key: Mapping[str, Any], winner: str, beside: Beside) -> Iterator[str]:
    """Runs of another application, on another card or with other kernels than those of the trial."""
    for place, whose, kernel in ((0, "the baseline", beside.baseline), (1, "the winner", beside.kernels.get(winner))):
        if key["kernels"][place] != kernel:
            yield f"end-to-end evidence: the application was run with another kernel than {whose}"
    lock = beside.lock
    if key["application"] != lock["asked"]["end_to_end"] or not key["files"].items() <= lock["files"].items():
        yield "end-to-end evidence: the runs are of another application, or of one that was run otherwise"
    if key["device"] != lock["device"]:
        yield "end-to-end evidence: the application was run on another device than the trial's"
