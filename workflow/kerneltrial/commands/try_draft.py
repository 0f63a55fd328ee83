"""`kerneltrial try FILE`: have a draft judged, from within a program that proposes."""

import argparse
import json
import os
import time
from itertools import count
from pathlib import Path

from kerneltrial.inputs.problem import InputProblem

_POLL_S = 0.03
_STATUS = {"right": 0, "none": 2}


def run(given: argparse.Namespace, root: Path) -> int:
    """Print the verdict as JSON; 0 right, 1 wrong, 2 no tries left."""
    mailbox = os.environ.get("KERNELTRIAL_TRY", "")
    if not mailbox:
        raise InputProblem("try: works only within a program that kerneltrial runs (proposer: command)")
    try:
        draft = (root / given.draft).read_bytes()
    except OSError as fault:
        raise InputProblem(f"{given.draft}: cannot be read ({fault.strerror})") from None
    answer = _answered(_posted(Path(mailbox), draft))
    print(answer.strip())
    return _STATUS.get(str(json.loads(answer).get("verdict")), 1)


def _posted(mailbox: Path, draft: bytes) -> Path:
    """Put the draft into the mailbox under the next free number."""
    for number in count(1):
        claim = mailbox / f"try-{number:04d}.claim"
        try:
            claim.touch(exist_ok=False)
        except FileExistsError:
            continue
        claim.with_suffix(".new").write_bytes(draft)
        return claim.with_suffix(".new").rename(claim.with_suffix(".json"))
    raise AssertionError("numbers do not end")


def _answered(posted: Path) -> str:
    result = posted.with_suffix(".result")
    while not result.exists():
        time.sleep(_POLL_S)
    return result.read_text(encoding="utf-8")
