"""`kerneltrial try FILE` as a program of its own: hand a draft to the parent and print what it answers.

It needs nothing but Python's standard library, so that it works wherever the program runs: the packages of the parent
may lie where a confined child does not see them.
"""

import json
import os
import sys
import time
from itertools import count
from pathlib import Path

MAILBOX = "KERNELTRIAL_TRY"
_POLL_S = 0.03
_STATUS = {"right": 0, "none": 2}


class NotPosted(Exception):
    """The draft could not be handed over; one line that says why."""


def post(draft: Path) -> int:
    """Print the verdict as JSON; return 0 where it is right, 1 where it is wrong, 2 where no tries are left.

    Raises
    ------
    NotPosted
        No parent is waiting for tries, or the draft cannot be read.
    """
    mailbox = os.environ.get(MAILBOX, "")
    if not mailbox:
        raise NotPosted("try: works only within a program that kerneltrial runs (proposer: command)")
    try:
        content = draft.read_bytes()
    except OSError as fault:
        raise NotPosted(f"{draft}: cannot be read ({fault.strerror})") from None
    answer = _answered(_posted(Path(mailbox), content))
    print(answer.strip(), flush=True)
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


def main(words: list[str]) -> int:
    """The shim's end: one file as argument; 3 and one line where nothing was handed over."""
    if len(words) != 1 or words[0].startswith("-"):
        print("usage: kerneltrial try FILE  (the draft, in the form of schema.json)", file=sys.stderr)
        return 0 if words in (["-h"], ["--help"]) else 2
    try:
        return post(Path(words[0]))
    except NotPosted as problem:
        print(f"kerneltrial: {problem}", file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
