"""The page's own words, by language: English stands in the templates, others in `catalogue/LANGUAGE.yaml`."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, TypeVar

from kerneltrial.records.presentation import Language
from kerneltrial.report.words import visible

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


def marked_up(language: Language) -> "Callable[..., Markup]":
    """The same for templates: the text is markup, values are escaped and show what they hide."""
    from markupsafe import Markup

    def say(text: str, **values: object) -> Markup:
        shown = {name: visible(str(value)) for name, value in values.items()}
        return _filled(Markup(catalogue(language).get(text, text)), shown)

    return say
