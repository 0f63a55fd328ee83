"""One try of one request over the network. Bounded in seconds and bytes, whatever the server does.

It is what OpenAI's SDK would send, by the client that the SDK is built on; why without the SDK itself:
workflow/adr/0042-openai-without-its-sdk.md.
"""

import os
import queue
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kerneltrial.inputs.installing import install
from kerneltrial.propose.openai.exchange import Api, Request
from kerneltrial.propose.problem import ProposerProblem
from kerneltrial.propose.prompt.scrub import SECRET
from kerneltrial.records.asking import Model

if TYPE_CHECKING:
    import httpx2

MAXIMUM_BYTES = 16_000_000
OPENAI = "https://api.openai.com/v1"
_PATHS: Final[Mapping[Api, str]] = {"responses": "/responses", "chat": "/chat/completions"}
_ACCOUNT: Final = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}


class Lost(Exception):
    """No whole answer came; it may have been charged all the same."""


@dataclass(frozen=True)
class Answer:
    """Status, the headers that matter (lower-case names), and the body; `cut` where it was longer than is taken."""

    status: int
    body: str
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False


Post = Callable[[Request], Answer]


def key_of(model: Model, environment: Mapping[str, str] | None = None) -> str:
    """The key, from the environment only. A server of one's own may need none.

    Raises
    ------
    ProposerProblem
        OpenAI is asked and the variable is not set.
    """
    held = os.environ if environment is None else environment
    key = held.get(model.key_variable, "").strip()
    if not key and not model.base_url:
        raise ProposerProblem(
            f"proposer openai: the environment variable {model.key_variable} is not set; export it, or set "
            "model.base_url to a server of your own, or take `proposer: search`, which needs no key"
        )
    return key or "none"


def poster(model: Model, key: str) -> Post:
    """Return what sends a request once; it raises `Lost` where no whole answer comes within `model.timeout_s`."""
    try:
        import httpx2
    except ImportError:
        raise ProposerProblem(f"proposer openai: {install('openai')}") from None
    seconds = float(model.timeout_s)
    url = model.base_url or OPENAI
    try:
        client = httpx2.Client(base_url=url, headers=_headers(key, os.environ), timeout=seconds, follow_redirects=True)
    except (httpx2.InvalidURL, ValueError) as fault:
        raise ProposerProblem(f"proposer openai: model.base_url: {url} is no address ({fault}); correct it") from None

    def post(request: Request) -> Answer:
        return _within(seconds, lambda: _once(client, request, key))

    return post


def _headers(key: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Whose call it is: the key, and organisation and project by the variables that OpenAI's SDK knows."""
    named = {header: environment.get(variable, "").strip() for header, variable in _ACCOUNT.items()}
    held = {header: value for header, value in named.items() if value}
    return {"Authorization": f"Bearer {key}", "Accept": "application/json", "User-Agent": "kerneltrial", **held}


def _once(client: "httpx2.Client", request: Request, key: str) -> Answer:
    import httpx2

    headers = {"Idempotency-Key": request.digest}
    try:
        with client.stream("POST", _PATHS[request.api], json=request.body, headers=headers) as response:
            data, cut = _read(response)
            return _answer(response.status_code, response.headers, data, cut, key)
    except (httpx2.HTTPError, httpx2.InvalidURL, ssl.SSLError, ValueError) as fault:
        # a ValueError is what a redirect to a host that cannot be (an empty label, one of 64 letters) leads to
        raise Lost(f"{type(fault).__name__}: {fault}") from None


def _answer(status: int, headers: Mapping[str, str], data: bytes, cut: bool, key: str) -> Answer:
    """A server that repeats the key does not get it into any record."""
    text = data[:MAXIMUM_BYTES].decode(errors="replace")
    text = text.replace(key, SECRET) if len(key) >= 8 else text
    return Answer(status, text, {"retry-after": _retry_after(headers)}, cut)


def _retry_after(headers: Mapping[str, str]) -> str:
    """Seconds, or a date; some servers of this API (Azure's) also tell milliseconds, which goes first as in the SDK."""
    milliseconds = headers.get("retry-after-ms", "").strip()
    if milliseconds.replace(".", "", 1).isdecimal():
        return str(float(milliseconds) / 1000)
    return headers.get("retry-after", "")


def _read(response: "httpx2.Response") -> tuple[bytes, bool]:
    data = bytearray()
    for part in response.iter_bytes():
        data += part
        if len(data) > MAXIMUM_BYTES:
            return bytes(data), True
    return bytes(data), False


def _within(seconds: float, work: Callable[[], Answer]) -> Answer:
    """Do `work` in a thread that is left behind when its time is up: a server that drips keeps every socket timeout
    from firing.
    """
    box: queue.Queue[Answer | BaseException] = queue.Queue(1)

    def run() -> None:
        try:
            box.put(work())
        except BaseException as fault:
            box.put(fault)

    threading.Thread(target=run, daemon=True).start()
    try:
        found = box.get(timeout=seconds)
    except queue.Empty:
        raise Lost(f"no whole answer within {seconds:g} s") from None
    if isinstance(found, BaseException):
        raise found
    return found
