"""What is sent: the body of one request, in the form of the Responses API or of Chat Completions."""

from typing import Any

from kerneltrial.propose.openai.exchange import Api, Request
from kerneltrial.propose.prompt.prompt import Prompt
from kerneltrial.propose.reply_schema import NAME
from kerneltrial.records.asking import Model
from kerneltrial.store.canonical import canonical

OVERHEAD_TOKENS = 256  # what a server's own template puts around messages


def api_of(model: Model) -> Api:
    """The API that is spoken; `auto` is Responses for OpenAI and Chat Completions elsewhere."""
    if model.api != "auto":
        return model.api
    return "chat" if model.base_url else "responses"


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
    return {
        "model": model.name,
        "instructions": prompt.instructions,
        "input": [{"role": "user", "content": prompt.feedback}],
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
        "response_format": {"type": "json_schema", "json_schema": {"name": NAME, "strict": True, "schema": schema}},
        limit: model.max_output_tokens,
        **effort,
    }
