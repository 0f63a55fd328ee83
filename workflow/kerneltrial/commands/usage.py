"""What is said of a command line that is wrong: one line, which names the help of the command that was meant."""

import argparse
import re
from collections.abc import Sequence
from typing import Any, NoReturn

_OPTION = re.compile(r"--?[A-Za-z]")


class Parser(argparse.ArgumentParser):
    """A parser whose problems are one line and exit status 2, each said by the command whose words they are."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self._flags: list[str] = []
        self._hidden: list[str] = []  # options that the workflow's rules give, and people do not
        self._words: Sequence[str] = ()
        super().__init__(*arguments, **named)

    def add_argument(self, *flags: Any, **named: Any) -> argparse.Action:
        """As argparse's; the flags are kept, to find the near one to a wrong one."""
        (self._hidden if named.get("help") == argparse.SUPPRESS else self._flags).extend(
            flag for flag in flags if flag.startswith("-")
        )
        return super().add_argument(*flags, **named)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse's, but a command's own parser keeps no word for the parser of all commands to complain of."""
        self._words = list(args or ())
        given, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(f"{rest[0]!r} is a word too many")
        return given, rest

    def error(self, message: str) -> NoReturn:
        """End the process with a line; an option that there is not goes first, as other complaints follow from it."""
        wrong = next((word for word in self._options() if not self._knows(word)), None)
        told = message if wrong is None else _unknown(wrong, self._flags)
        told = " ".join(told.split())
        self.exit(2, f"{self.prog}: {told}{'' if told.endswith('?') else ';'} `{self.prog} --help` says more\n")

    def _options(self) -> list[str]:
        words = self._words[: self._words.index("--")] if "--" in self._words else self._words
        return [word for word in words if _OPTION.match(word)]

    def _knows(self, word: str) -> bool:
        name = word.partition("=")[0]
        # argparse takes a beginning for the whole
        return any(flag.startswith(name) for flag in (*self._flags, *self._hidden))


class Version(argparse.Action):
    """Print which version is installed, and end the process."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        """As argparse asks."""
        import importlib.metadata  # only where it is asked for

        try:
            print(f"kerneltrial {importlib.metadata.version('kerneltrial')}")
        except importlib.metadata.PackageNotFoundError:
            print("kerneltrial, run from its sources and not installed")
        parser.exit()


def _unknown(word: str, flags: Sequence[str]) -> str:
    import difflib  # only where a word is wrong

    name = word.partition("=")[0]
    near = difflib.get_close_matches(name, [flag for flag in flags if flag.startswith("--")], n=1)
    return f"there is no option {name}" + (f"; did you mean {near[0]}?" if near else "")
