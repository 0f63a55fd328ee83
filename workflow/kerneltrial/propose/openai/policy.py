"""What is done about an answer that is no answer: wait and try again, or stop with a line for a person. Pure."""

import email.utils
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from kerneltrial.records.asking import Model

TRIES = 4
WAITS_S = (1.0, 2.0, 4.0)  # before the second, third and fourth try, where no answer came
BUSY_WAITS_S = (4.0, 16.0, 45.0)  # where a server had no time: together more than the minute that its limits count by
LONGEST_WAIT_S = 60.0
# By type or code: OpenAI's type is insufficient_quota, whatever the code says of which limit it was.
_QUOTA = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
_NO_MONEY = re.compile(r"credit_balance|credits_exhausted|spend_limit_exceeded|usage_limit_exceeded|current_quota")
# What says that this prompt is not answered, whoever asks.
_REFUSED = re.compile(r"content_filter|content_policy|invalid_prompt|\w_policy(?:_violation)?$")
_AGAIN = frozenset({408, 409, 425, 429})
_FAULTS = {"rate_limit_exceeded": 429, "server_error": 500}
_REMEDIES = {
    "response_format|json_schema|structured output": "it takes no schema: set model.api to chat_json or chat_text",
    "prompt_cache": "set model.api to responses, which does not say what is to be cached",
    "reasoning|effort|thinking": 'set model.effort to what this model knows, or to ""',
    "context|max_(?:output_|completion_)?tokens": "lower model.max_output_tokens, or take a model with more room",
}


@dataclass(frozen=True)
class Refusal:
    """A status other than 200, or 0 where no answer came at all; `message` is the server's or the network's own."""

    status: int
    message: str
    code: str = ""
    retry_after: str = ""
    kind: str = ""


@dataclass(frozen=True)
class Wait:
    """Try again after so many seconds."""

    seconds: float


@dataclass(frozen=True)
class Stop:
    """Stop; the line says what is wrong and what to do."""

    line: str


@dataclass(frozen=True)
class Take:
    """It is an answer after all: the attempt is used."""


def refusal_of(status: int, headers: Mapping[str, str], body: str) -> Refusal:
    """Read code and message out of an error's body, in OpenAI's form or whatever else came."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    inner = document.get("error", document) if isinstance(document, dict) else {}
    inner = inner if isinstance(inner, dict) else {"message": inner}
    kind = str(inner.get("type") or "")[:100]
    code = str(inner.get("code") or kind)[:100]
    elsewhere = headers.get("elsewhere", "")
    message = f"it redirects to {elsewhere}" if elsewhere else " ".join(str(inner.get("message") or body).split())[:200]
    return Refusal(status, message, code, headers.get("retry-after", ""), kind)


def failed_within(body: str) -> int:
    """The status that an answer of 200 means whose generation failed, as the server says in it; 0 where it did not.

    The Responses API says `failed` and a code; gateways write an upstream's status into `error.code`.
    """
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return 0
    inner = document.get("error") if isinstance(document, dict) else None
    if not inner or document.get("choices"):
        return 0
    code = str(inner.get("code") or "") if isinstance(inner, dict) else ""
    if re.fullmatch("[45][0-9][0-9]", code):
        return int(code)
    if code in _FAULTS:
        return _FAULTS[code]
    return 400 if _REFUSED.search(code) else 500


def decide(refusal: Refusal, tried: int, now: datetime, model: Model) -> Wait | Stop | Take:
    """Return what to do after `tried` tries, the last of which ended in `refusal`."""
    status, where = refusal.status, model.base_url or "OpenAI"
    said = f"{status}: {refusal.message}" if status else refusal.message
    again = "run the same command again: what was answered before is not paid twice"
    if _REFUSED.search(refusal.code) or "content_filter" in refusal.message:
        return Take()
    if status == 402 or {refusal.code, refusal.kind} & _QUOTA or _NO_MONEY.search(refusal.code):
        return Stop(f"{where}: the quota is spent ({said}); add credit or raise the limit, then {again}")
    if status in (401, 403):
        return Stop(f"{where}: refuses the key in {model.key_variable} ({said}); set a valid one, then {again}")
    if status == 404:
        return Stop(f"{where}: knows no model {model.name!r} or not this API ({said}); correct model.name or model.api")
    if 300 <= status < 400:
        return Stop(f"{where}: is not where the model answers ({said}); set model.base_url to where it does")
    if status and status not in _AGAIN and status < 500:
        return Stop(f"{where}: refuses the request ({said}); {_remedy(refusal.message)}")
    wait = _wait(refusal, tried, now)
    if wait > LONGEST_WAIT_S:
        return Stop(f"{where}: asks to wait {wait:.0f} s ({said}); wait, then {again}")
    if tried >= TRIES:
        return Stop(f"{where}: no answer in {tried} tries ({said}); check the server and the network, then {again}")
    return Wait(wait)


def _remedy(message: str) -> str:
    """Which key a request that was refused hangs on, as far as the server's words tell."""
    for words, remedy in _REMEDIES.items():
        if re.search(words, message, re.IGNORECASE):
            return remedy
    return "correct the keys under `model` in the config"


def _wait(refusal: Refusal, tried: int, now: datetime) -> float:
    """Seconds to wait; what the server asks for goes before our own."""
    own = (BUSY_WAITS_S if refusal.status else WAITS_S)[min(tried, TRIES - 1) - 1]
    text = refusal.retry_after.strip()
    if not text:
        return own
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = (email.utils.parsedate_to_datetime(text) - now).total_seconds()
        except (TypeError, ValueError):
            return own
    return max(0.0, seconds) if seconds == seconds else own
