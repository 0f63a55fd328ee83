"""The `kerneltrial` command: parse arguments, run one stage or command, turn problems into one line.

Exit status: 0 done (a bad candidate is a value, so a stage that judged one is done too), 2 usage, 3 a broken pipeline;
1 where `verify` or `rerun` found something wrong, 4 where `verify` could look at bytes alone; 130 after Ctrl-C.
"""

import argparse
import contextlib
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from kerneltrial.commands import arguments, attended
from kerneltrial.records.problem import Problem
from kerneltrial.store.files import refused
from kerneltrial.store.printed import as_named, printed


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    _show_every_letter()
    words = sys.argv[1:] if argv is None else argv
    parser = arguments.parser(words[0] if words else "")
    unknown = arguments.unknown_command(words)
    if unknown:
        parser.error(unknown)
    given = parser.parse_args(words)
    try:
        status = arguments.dispatch(given, Path.cwd())
        _log(given, "done")
        _say_what_was_printed()
        return status
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # whoever read our output, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Problem as problem:
        return _stopped(given, problem)
    except OSError as fault:
        outside = refused(fault)
        if outside is None:
            raise
        return _stopped(given, outside)


def _show_every_letter() -> None:
    """Have a letter that the terminal's encoding lacks, as in the name of a folder, shown by its number."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def _stopped(given: argparse.Namespace, problem: Problem) -> int:
    line = printed(as_named(" ".join(str(problem).split())))
    _log(given, line)
    print(f"kerneltrial: {line}", file=sys.stderr)
    return 3


def _say_what_was_printed() -> None:
    """One line on what an oracle printed in a command that keeps no log, such as doctor."""
    heard = sys.modules.get("kerneltrial.inputs.heard")  # no oracle ran where it is absent
    if heard is not None:
        text, size, lines = heard.HEARD.taken()
        if size:
            first = printed(text.decode(errors="replace").split("\n")[0])[:200]
            print(f"kerneltrial: {heard.amount(size, lines)}; the first: {first!r}", file=sys.stderr)


def _log(given: argparse.Namespace, line: str) -> None:
    """Leave how it ended in the rule's log, which Snakemake points at."""
    if getattr(given, "log", None):
        with contextlib.suppress(OSError):  # the disk may be what is full
            given.log.parent.mkdir(parents=True, exist_ok=True)
            given.log.write_text(line + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--stem"]:
        from kerneltrial.commands import stem

        stem.serve(sys.argv[2:])  # returns in the process of a stage
    attended.leave(attended.run(main))
