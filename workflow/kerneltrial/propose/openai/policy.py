"""What is done about an answer that is no answer: wait and try again, or stop with a line for a person. Pure."""

import email.utils
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from kerneltrial.records.asking import Model

TRIES = 4
WAITS_S = (1.0, 2.0, 4.0)  # before the second, third and fourth try
LONGEST_WAIT_S = 60.0
_QUOTA = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "credits_exhausted"})
_AGAIN = frozenset({408, 409, 425, 429})


@dataclass(frozen=True)
class Refusal:
    """A status other than 200, or 0 where no answer came at all; `message` is the server's or the network's own."""

    status: int
    message: str
    code: str = ""
    retry_after: str = ""


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
    code = str(inner.get("code") or inner.get("type") or "")[:100]
    message = " ".join(str(inner.get("message") or body).split())[:200]
    return Refusal(status, message, code, headers.get("retry-after", ""))


def decide(refusal: Refusal, tried: int, now: datetime, model: Model) -> Wait | Stop | Take:
    """Return what to do after `tried` tries, the last of which ended in `refusal`."""
    status, where = refusal.status, model.base_url or "OpenAI"
    said = f"{status}: {refusal.message}" if status else refusal.message
    again = "run the same command again: what was answered before is not paid twice"
    if "content_filter" in refusal.code or "content_filter" in refusal.message:
        return Take()
    if refusal.code in _QUOTA:
        return Stop(f"{where}: the quota is spent ({said}); add credit, then {again}")
    if status in (401, 403):
        return Stop(f"{where}: refuses the key in {model.key_variable} ({said}); set a valid one, then {again}")
    if status == 404:
        return Stop(f"{where}: knows no model {model.name!r} or not this API ({said}); correct model.name or model.api")
    if status and status not in _AGAIN and status < 500:
        return Stop(f"{where}: refuses the request ({said}); correct the keys under `model` in the config")
    wait = _wait(refusal.retry_after, tried, now)
    if wait > LONGEST_WAIT_S:
        return Stop(f"{where}: asks to wait {wait:.0f} s ({said}); wait, then {again}")
    if tried >= TRIES:
        return Stop(f"{where}: no answer in {tried} tries ({said}); check the server and the network, then {again}")
    return Wait(wait)


def _wait(retry_after: str, tried: int, now: datetime) -> float:
    """Seconds to wait; what the server asks for goes before our own."""
    own = WAITS_S[min(tried, len(WAITS_S)) - 1]
    text = retry_after.strip()
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
