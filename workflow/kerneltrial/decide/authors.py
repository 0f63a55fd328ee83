"""Whether a name is the proposer's own: of a proposer, of the model that was asked, or of whoever makes that model."""

import re
import unicodedata
from typing import Final

from kerneltrial.records.lock import Lock

_PROPOSERS: Final = frozenset({"search", "files", "openai", "replay", "command"})
_ASKS_A_MODEL: Final = frozenset({"openai", "replay"})
_MAKERS: Final = (  # words for one family of models: what people call the model, and who makes it
    frozenset({"openai", "chatgpt", "gpt", "codex"}),
    frozenset({"anthropic", "claude"}),
    frozenset({"google", "deepmind", "gemini", "gemma"}),
    frozenset({"meta", "llama", "codellama"}),
    frozenset({"mistral", "mistralai", "mixtral", "codestral", "devstral"}),
    frozenset({"alibaba", "qwen", "tongyi"}),
    frozenset({"deepseek"}),
    frozenset({"xai", "grok"}),
    frozenset({"microsoft", "phi", "copilot"}),
    frozenset({"moonshot", "moonshotai", "kimi"}),
    frozenset({"zhipu", "zai", "glm"}),
)
_WITHIN: Final = 6  # a word so long is found within others too (OpenAIs, Open-AI); a shorter one must stand alone


def by_proposer(author: str, lock: Lock) -> str:
    """Say whose name the author's is, or nothing where it is none of the proposer's.

    Case, accents of width, punctuation and the digits of a version make no difference: `Open AI`, `OPENAI.` and
    `gpt-6` are all the maker's of a `gpt` model. A person is told apart by a name of their own.
    """
    words = _words(author)
    joined = "".join(words)
    if joined in _PROPOSERS or joined in {f"the{name}" for name in _PROPOSERS}:
        return "it is the name of a proposer"
    if lock.proposer not in _ASKS_A_MODEL:
        return ""
    model = "".join(_words(lock.model.name.rpartition("/")[2]))
    if model and model in joined:
        return f"it is the name of the model, {lock.model.name}"
    plain = {word.rstrip("0123456789") for word in words}
    for word in sorted(_words_of_model(lock)):
        if word in plain or (len(word) >= _WITHIN and word in joined):
            return f"it names the model or its maker: {word}"
    return ""


def _words_of_model(lock: Lock) -> frozenset[str]:
    """Family and maker of the model; OpenAI's own words too where its server is asked."""
    before, _, name = lock.model.name.rpartition("/")
    own = {word.rstrip("0123456789") for word in (*_words(before), *_words(name)[:1])} - {""}
    if not lock.model.base_url:
        own.add("openai")
    return frozenset(own).union(*(maker for maker in _MAKERS if maker & own))


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", text).casefold())
