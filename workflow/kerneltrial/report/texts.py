"""The page's own words, by language: English stands in the templates, others in `catalogue/LANGUAGE.yaml`.

Sentences that the decision's rules write into records are translated by form: `catalogue/LANGUAGE_records.yaml`.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, TypeVar

from kerneltrial.records.presentation import Language
from kerneltrial.report.words import sentence, visible

if TYPE_CHECKING:
    from markupsafe import Markup

Say = Callable[..., str]
T = TypeVar("T", bound=str)


@lru_cache(maxsize=4)
def catalogue(language: Language) -> dict[str, str]:
    """Texts by their English; empty for English itself."""
    if language == "en":
        return {}
    import yaml

    path = resources.files("kerneltrial.report").joinpath("catalogue", f"{language}.yaml")
    found: dict[str, str] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def _filled(text: T, values: Mapping[str, object]) -> T:
    """A text without values is no pattern: its per cent signs are its own."""
    return text % values if values else text  # type: ignore[return-value]


def plain(language: Language) -> Say:
    """A function that gives a text in this language, its `%(name)s` filled in; what is not there stays English."""

    def say(text: str, **values: object) -> str:
        return _filled(catalogue(language).get(text, text), values)

    return say


@lru_cache(maxsize=4)
def _forms(language: Language) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Forms of records' sentences, those with the fewest places to fill first, with their translations."""
    if language == "en":
        return ()
    import yaml

    path = resources.files("kerneltrial.report").joinpath("catalogue", f"{language}_records.yaml")
    found: dict[str, str] = yaml.safe_load(path.read_text(encoding="utf-8"))
    ordered = sorted(found.items(), key=lambda pair: pair[0].count("{"))
    return tuple((re.compile(_form(text), re.DOTALL), translated) for text, translated in ordered)


def _form(text: str) -> str:
    parts = re.split(r"(\{[a-z]\}|\(s\))", text)
    return "".join(
        "s?" if part == "(s)" else f"(?P<{part[1]}>.+?)" if re.fullmatch(r"\{[a-z]\}", part) else re.escape(part)
        for part in parts
    )


def recorded(language: Language) -> Callable[[str], str]:
    """A function that gives what a rule recorded in this language; what has no known form stays as it was recorded."""

    def told(text: str) -> str:
        for form, translated in _forms(language):
            match = form.fullmatch(text)
            if match is not None:
                return translated.format(**match.groupdict())
        first, separated, rest = text.partition("; ")
        return f"{told(first)}; {told(rest)}" if separated and language != "en" else text

    return told


def sentence_in(language: Language) -> Callable[[str], str]:
    """A function that gives a rule's words as a whole sentence; names in a translation stay as they are."""
    told = recorded(language)

    def whole(text: str) -> str:
        found = told(text)
        return sentence(text) if found == text else found if found.endswith(".") else f"{found}."

    return whole


def marked_up(language: Language) -> "Callable[..., Markup]":
    """The same for templates: the text is markup, values are escaped and show what they hide."""
    from markupsafe import Markup

    def say(text: str, **values: object) -> Markup:
        shown = {name: visible(str(value)) for name, value in values.items()}
        return _filled(Markup(catalogue(language).get(text, text)), shown)

    return say
