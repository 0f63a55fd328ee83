"""The proposer `files`: kernels in a folder, `NAME.cu` or `NAME.py` with `NAME.plan.yaml`, in order of name."""

from pathlib import Path

from kerneltrial.inputs.candidates import LANGUAGES, kernels
from kerneltrial.inputs.plans import plan_path, read_plan
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.propose.history import History
from kerneltrial.propose.proposer import Draft
from kerneltrial.records.proposal import Origin, Unusable
from kerneltrial.records.reason import Reason


class Files:
    """Proposes each file of `folder` once; which comes next follows from how many attempts the history holds."""

    name = "files"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            self.sources = kernels(folder)
        except OSError as fault:
            raise InputProblem(f"{folder}: cannot be listed ({fault.strerror}); proposer `files` reads it") from None
        if not self.sources:
            raise InputProblem(f"{folder}: holds no .cu or .py file; put one there, with its .plan.yaml")

    def propose(self, history: History, count: int) -> list[Draft | Unusable]:
        """Return the next `count` files; a broken plan is `Unusable` (BAD_PLAN) and uses its attempt."""
        mine = self.sources[history.attempts : history.attempts + count]
        drafts = [_draft(source) for source in mine]
        if len(drafts) < count:
            detail = f"no files left: all {len(self.sources)} of {self.folder.name} were proposed"
            drafts.append(Unusable(reason=Reason.SPACE_EXHAUSTED, detail=detail))
        return drafts


def _draft(source: Path) -> Draft | Unusable:
    try:
        content = source.read_bytes()
    except OSError as fault:
        raise InputProblem(f"{source}: cannot be read ({fault.strerror})") from None
    try:
        plan = read_plan(plan_path(source))
    except InputProblem as fault:
        named = str(fault).replace(str(source.parent) + "/", "")  # a record holds no path of this machine
        return Unusable(reason=Reason.BAD_PLAN, detail=named)
    return Draft(
        language=LANGUAGES[source.suffix],
        source=content,
        plan=plan,
        origin=Origin(hypothesis=f"As written in {source.name}.", pattern="none", parents=(), parameters={}),
    )
