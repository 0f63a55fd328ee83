"""From a server's raw answer to a draft and to what is charged. The answer is untrusted: nothing of it raises."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from kerneltrial.propose.openai.exchange import Answered, Exchange
from kerneltrial.propose.openai.request import most_input_tokens
from kerneltrial.propose.proposer import Draft
from kerneltrial.propose.reply_schema import draft_of
from kerneltrial.records.proposal import Unusable
from kerneltrial.records.reason import Reason
from kerneltrial.records.record import Digest

_FENCE = re.compile(r"```[A-Za-z0-9_-]*[ \t]*\r?\n(.*?)```", re.DOTALL)
_LARGEST = 2**53


@dataclass(frozen=True)
class Tokens:
    """What one answer used; cached and written tokens are part of `input`, reasoning of `output`."""

    input: int = 0
    cached: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0


@dataclass(frozen=True)
class Reply:
    """The text that the model wrote, or, where `problem` is not empty, why there is none that can be used."""

    text: str
    problem: str
    tokens: Tokens


def read_reply(exchange: Exchange) -> Reply:
    """Return what an answer holds. Where the server tells no usage, the worst case is charged."""
    answered = exchange.outcome
    if not isinstance(answered, Answered):
        return Reply("", "nothing was asked", Tokens())
    request = exchange.request
    worst = Tokens(input=most_input_tokens(request), output=_asked_output(request.body))
    if answered.cut:
        return Reply("", f"the answer is longer than {len(answered.body)} bytes", worst)
    if answered.status != 200:
        return Reply("", _filtered(answered.body), Tokens())
    document = _object(_envelope(answered.body))
    tokens = _tokens(_object(document.get("usage"))) or worst
    text, problem = _responses(document) if request.api == "responses" else _chat(document)
    return Reply(text, problem, tokens)


def draft_in(reply: Reply, languages: Sequence[str], parents: Sequence[Digest] = ()) -> Draft | Unusable:
    """Return the draft that a reply holds, or `Unusable` (UNUSABLE_REPLY) with the problem to feed back."""
    problem = reply.problem
    if not problem:
        for text in _candidates(reply.text):
            document = _json(text)
            if isinstance(document, dict):
                return draft_of(document, languages, parents)
        start = " ".join(reply.text.split())[:120]
        problem = f"no JSON object was found in the reply, which begins with {start!r}"
    return Unusable(reason=Reason.UNUSABLE_REPLY, detail=problem)


def is_reply(body: str) -> bool:
    """Whether a body could be an answer of either API at all; else something other than a model has answered."""
    document = _envelope(body)
    return isinstance(document, dict) and ("output" in document or "choices" in document or "error" in document)


def model_in(body: str) -> str:
    """The model that an answer says it comes from; empty where it does not say."""
    return str(_object(_envelope(body)).get("model") or "")


def _candidates(text: str) -> list[str]:
    """Texts in which the object may stand: the whole, what follows a model's thoughts, fenced blocks, braces."""
    _, thought, after = text.rpartition("</think>")
    text = after if thought else text
    inside = text[text.find("{") : text.rfind("}") + 1]
    return [text.strip(), *(block.strip() for block in _FENCE.findall(text)), inside]


def _json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return None


def _envelope(body: str) -> Any:
    """What a server answered. Python's servers write NaN, which is no JSON: that figure is not told then."""
    found = _json(body)
    if found is None:
        try:
            found = json.loads(body, parse_constant=lambda _: None)
            json.dumps(found, ensure_ascii=False).encode()  # half a character, which no record can hold
        except (ValueError, RecursionError):
            return None
    return found


def _responses(document: dict[str, Any]) -> tuple[str, str]:
    items = [_object(item) for item in _list(document.get("output"))]
    parts = [_object(part) for item in items if item.get("type") == "message" for part in _list(item.get("content"))]
    refusal = next((str(part.get("refusal")) for part in parts if part.get("type") == "refusal"), "")
    text = "".join(str(part.get("text")) for part in parts if part.get("type") == "output_text")
    why = str(_object(document.get("incomplete_details")).get("reason") or "")
    if refusal:
        return "", f"the model refused: {refusal[:300]}"
    if document.get("status") == "incomplete" or why:
        return "", _incomplete(why)
    if document.get("status") == "failed" or document.get("error"):
        return "", f"the server failed on it: {str(_object(document.get('error')).get('message'))[:300]}"
    return text, "" if text.strip() else "the reply is empty"


def _chat(document: dict[str, Any]) -> tuple[str, str]:
    choice = _object(next(iter(_list(document.get("choices"))), None))
    message = _object(choice.get("message"))
    if message.get("refusal"):
        return "", f"the model refused: {str(message['refusal'])[:300]}"
    if choice.get("finish_reason") in ("length", "content_filter"):
        return "", _incomplete(str(choice["finish_reason"]))
    failed = _object(choice.get("error") or document.get("error"))
    if failed:
        return "", f"the server failed on it: {str(failed.get('message'))[:300]}"
    text = _text_of(message.get("content"))
    if text.strip():
        return text, ""
    thought = any(message.get(name) for name in ("reasoning_content", "reasoning"))
    return "", "the reply is empty: all of it was reasoning" if thought else "the reply is empty"


def _text_of(content: Any) -> str:
    """A message's text; some servers give it in parts, thoughts among them."""
    if isinstance(content, str):
        return content
    parts = (_object(part) for part in _list(content))
    return "".join(str(part.get("text")) for part in parts if part.get("type") in ("text", "output_text"))


def _filtered(body: str) -> str:
    said = str(_object(_object(_json(body)).get("error")).get("message") or "")
    return f"refused by the server's content filter before the model saw it: {' '.join(said.split())[:300]}"


def _incomplete(why: str) -> str:
    if why == "content_filter":
        return "stopped by the server's content filter"
    return "the reply was cut off at the limit of output tokens; write less, or think less"


def _tokens(usage: dict[str, Any]) -> Tokens | None:
    """What the server says that it charges, in either API's words; None where it does not say."""
    read = _count(usage.get("input_tokens", usage.get("prompt_tokens")))
    written = _count(usage.get("output_tokens", usage.get("completion_tokens")))
    if read is None or written is None:
        return None
    # Some servers (xAI's, Gemini's) count reasoning in the total alone.
    written = max(written, (_count(usage.get("total_tokens")) or 0) - read)
    inner = _object(usage.get("input_tokens_details", usage.get("prompt_tokens_details")))
    outer = _object(usage.get("output_tokens_details", usage.get("completion_tokens_details")))
    cached = min(_count(inner.get("cached_tokens")) or 0, read)
    return Tokens(
        input=read,
        cached=cached,
        cache_write=min(_count(inner.get("cache_write_tokens")) or 0, read - cached),
        output=written,
        reasoning=min(_count(outer.get("reasoning_tokens")) or 0, written),
    )


def _asked_output(body: dict[str, Any]) -> int:
    limits = (body.get(name) for name in ("max_output_tokens", "max_completion_tokens", "max_tokens"))
    return next((limit for limit in limits if isinstance(limit, int)), 0)


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST else None


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
