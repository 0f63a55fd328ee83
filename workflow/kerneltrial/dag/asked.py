"""Config files looked at before Snakemake reads or mixes them: what is wrong with one is one line and no traceback."""

import datetime
import os
import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any, NoReturn

from kerneltrial.inputs.documents import read_document
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.records.problem import Problem
from kerneltrial.store.printed import as_named, printed

NAME = "config.yaml"
_WHOLE = {"trial", "contract", "baseline", "cases", "oracle"}
_OPTION = re.compile(r"--config(=|\Z)|-C")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def at_home(root: Path, further: Sequence[str | Path], snakefile: Path) -> None:
    """End the process with one line where config.yaml lies beside the Snakefile, and the present folder is another."""
    home = snakefile.resolve().parent
    if further or (root / NAME).exists() or not (home / NAME).is_file():
        return
    told = shlex.quote(os.path.relpath(home, root))
    stop(f"there is no {NAME} here; go to the trial's folder, `cd {told}`, or add `--directory {told}`")


def look(root: Path, further: Sequence[str | Path], replacing: bool, words: Sequence[str] = ()) -> None:
    """End the process with one line where config.yaml cannot be read, or another whole config would be mixed into it.

    `further` are the files of `--configfile`, `replacing` says whether `--replace-workflow-config` is given; `words`
    are the command line's, of which Snakemake drops some.
    """
    try:
        _refuse_what_is_dropped(words)
        readable(root)
        if not replacing:
            _refuse_mixture(root, further)
    except Problem as error:
        stop(str(error))


@cache
def readable(root: Path) -> None:
    """Read config.yaml as strictly as stages do: Snakemake takes the last of two equal keys without a word.

    Raises
    ------
    InputProblem
        One line: no UTF-8, no YAML, too deep, a key twice, a word of two readings, or a day that is in no calendar.
    """
    if not (root / NAME).is_file():
        return
    from kerneltrial.inputs.yaml_text import require_one_reading

    document = _read(root, Path(NAME))
    try:
        require_one_reading((root / NAME).read_text(encoding="utf-8"))
    except InputProblem as problem:
        raise InputProblem(f"{NAME}: {problem}") from None
    for key, day in _days("", document):
        try:
            datetime.date.fromisoformat(day)
        except ValueError as fault:
            raise InputProblem(f"{NAME}: {key}: {day} is no day of the calendar ({fault})") from None


def stop(line: str) -> NoReturn:
    """End the process with a line."""
    sys.exit(f"kerneltrial: {printed(as_named(' '.join(line.split())))}")


def _refuse_what_is_dropped(words: Sequence[str]) -> None:
    """Snakemake takes the last of several `--config`, and of several values of a key, without a word on the others."""
    lists = [list(_values(words, place)) for place in range(len(words)) if _OPTION.match(words[place])]
    keys = Counter(value.partition("=")[0] for values in lists for value in values)
    if len(lists) > 1:
        together = " ".join(f"{key}=..." for key in keys)
        raise InputProblem(
            f"--config is given {len(lists)} times, and Snakemake takes the last one alone; give all values after one: "
            f"--config {together}"
        )
    for key, times in keys.items():
        if times > 1:
            raise InputProblem(f"--config gives {key} {times} values, and Snakemake takes the last one; give one")


def _values(words: Sequence[str], place: int) -> Iterator[str]:
    """The values of the option `--config` at a place: one in its own word, or those that follow up to the next."""
    option = words[place]
    own = option.removeprefix("--config=") if option.startswith("--config=") else option.removeprefix("-C")
    if option != "--config" and own:
        yield own
    else:
        yield from takewhile(lambda word: not word.startswith("-"), words[place + 1 :])


def _refuse_mixture(root: Path, further: Sequence[str | Path]) -> None:
    own = root / NAME
    for name in further:
        file = Path(name) if Path(name).is_absolute() else root / name
        if not (own.is_file() and file.is_file()) or file.samefile(own):
            continue
        document = _read(root, file)
        if isinstance(document, dict) and set(document) >= _WHOLE:
            told = file.relative_to(root) if file.is_relative_to(root) else file
            raise InputProblem(
                f"{told}: is a whole config, and Snakemake would mix its keys with those of {NAME}; add the option "
                "--replace-workflow-config, so that it takes that file's place"
            )


def _read(root: Path, file: Path) -> Any:
    """The document; its problem names the file as the person did."""
    try:
        return read_document(root / file)
    except InputProblem as problem:
        raise InputProblem(str(problem).removeprefix(f"{root}/")) from None


def _days(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """The texts that YAML takes for days, with their keys."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _days(f"{path}.{key}" if path else key, inner)
    elif isinstance(value, str) and _DAY.fullmatch(value):
        yield path, value
