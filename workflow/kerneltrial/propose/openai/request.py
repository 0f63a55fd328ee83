"""What is sent: the body of one request, in the form of the Responses API or of Chat Completions."""

import re
from typing import Any

from kerneltrial.propose.openai.exchange import Api, Request
from kerneltrial.propose.prompt.prompt import Prompt
from kerneltrial.propose.reply_schema import NAME
from kerneltrial.records.asking import Model
from kerneltrial.store.canonical import canonical, digest

OVERHEAD_TOKENS = 256  # what a server's own template puts around messages


# Cache breakpoints are known to these and refused by earlier ones.
_CACHING = re.compile(r"gpt-(?:5\.(?:[6-9]|\d\d)|[6-9]|1\d)(?![0-9])")
_BREAKPOINT = {"prompt_cache_breakpoint": {"mode": "explicit"}}
_ONLY_THERE = {"prompt_cache_options": {"mode": "explicit"}}


def api_of(model: Model) -> Api:
    """The API that is spoken; `auto` is Responses for OpenAI and Chat Completions elsewhere."""
    if model.api == "responses" or (model.api == "auto" and not model.base_url):
        return "responses"
    return "chat"


def marks_cache(model: Model) -> bool:
    """Whether the end of the static part is marked as what is to be cached.

    Since gpt-5.6 OpenAI caches up to the end of the newest message, and charges for it, unless a request says
    otherwise; the feedback stands there, which is never the same again, so that nothing would be found in the cache.
    """
    return model.api == "auto" and not model.base_url and _CACHING.match(model.name) is not None


def request_of(model: Model, prompt: Prompt, schema: dict[str, Any], sample: int) -> Request:
    """Return the request for one proposal. The static part comes first, so that servers can cache it."""
    api = api_of(model)
    body = _responses(model, prompt, schema) if api == "responses" else _chat(model, prompt, schema)
    return Request(api=api, body=body, sample=sample)


def most_input_tokens(request: Request) -> int:
    """A bound on the input tokens of a request: a token stands for one byte at least."""
    return len(canonical(request.body)) + OVERHEAD_TOKENS


def _responses(model: Model, prompt: Prompt, schema: dict[str, Any]) -> dict[str, Any]:
    effort = {"reasoning": {"effort": model.effort}} if model.effort else {}
    feedback: list[dict[str, Any]] = [{"role": "user", "content": prompt.feedback}]
    told: dict[str, Any] = {"instructions": prompt.instructions, "input": feedback}
    if marks_cache(model):  # only a message's part can be marked
        static = {"type": "input_text", "text": prompt.instructions, **_BREAKPOINT}
        same = digest(prompt.instructions.encode())[:32]  # requests of one key go where their prefix is cached
        told = {
            "input": [{"role": "developer", "content": [static]}, *feedback],
            "prompt_cache_key": same,
            **_ONLY_THERE,
        }
    return {
        "model": model.name,
        **told,
        "text": {"format": {"type": "json_schema", "name": NAME, "strict": True, "schema": schema}},
        "max_output_tokens": model.max_output_tokens,
        "store": False,
        **effort,
    }


def _chat(model: Model, prompt: Prompt, schema: dict[str, Any]) -> dict[str, Any]:
    """Compatible servers know `max_tokens`; OpenAI's own wants its newer name."""
    limit = "max_tokens" if model.base_url else "max_completion_tokens"
    effort = {"reasoning_effort": model.effort} if model.effort else {}
    return {
        "model": model.name,
        "messages": [
            {"role": "system", "content": prompt.instructions},
            {"role": "user", "content": prompt.feedback},
        ],
        **_form(model, schema),
        limit: model.max_output_tokens,
        **effort,
    }


def _form(model: Model, schema: dict[str, Any]) -> dict[str, Any]:
    """What is asked of the reply's form; the prompt describes it to servers that take no schema."""
    if model.api == "chat_text":
        return {}
    if model.api == "chat_json":
        return {"response_format": {"type": "json_object"}}
    return {"response_format": {"type": "json_schema", "json_schema": {"name": NAME, "strict": True, "schema": schema}}}
