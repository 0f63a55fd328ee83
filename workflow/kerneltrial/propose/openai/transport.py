"""One try of one request over the network. Bounded in seconds and bytes, whatever the server does.

It is what OpenAI's SDK would send, by the client that the SDK is built on; why without the SDK itself:
workflow/adr/0042-openai-without-its-sdk.md; where key and prompt may go:
workflow/adr/0058-where-key-and-prompt-may-go.md.
"""

import contextlib
import os
import queue
import re
import ssl
import threading
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kerneltrial.inputs.addresses import is_loopback
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
_OPENAI_KEY: Final = "OPENAI_API_KEY"
_WORD = re.compile("[!-~]*")  # what a header may hold of a key: no space, no line break, ASCII alone
_HOPS = 5  # redirects within one server
_PACKED = ("gzip", "x-gzip", "deflate")


class Lost(Exception):
    """No whole answer came; it may have been charged all the same."""


@dataclass(frozen=True)
class Answer:
    """Status, the headers that matter (lower-case names), and the body; `cut` where it was longer than is taken.

    Among the headers is `elsewhere`: the other host that a redirect, which is not followed, leads to.
    """

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
        OpenAI is asked and the variable is not set; what it holds can be no key; or OpenAI's own variable would be sent
        in clear to another host.
    """
    held = os.environ if environment is None else environment
    variable, url = model.key_variable, model.base_url
    key = _word(held, variable)
    if not key and not url:
        raise ProposerProblem(
            f"proposer openai: the environment variable {variable} is not set; export it, or set "
            "model.base_url to a server of your own, or take `proposer: search`, which needs no key"
        )
    if key and variable == _OPENAI_KEY and url.startswith("http://") and not is_loopback(url):
        raise ProposerProblem(
            f"proposer openai: the key in {variable} would go in clear to {url}; take https:// or a tunnel to "
            "127.0.0.1, or unset it for this run where that server needs none (a key of its own: model.key_variable)"
        )
    return key or "none"


def _word(environment: Mapping[str, str], variable: str) -> str:
    """What a variable holds, for a header; the line on what no header takes does not repeat it."""
    value = environment.get(variable, "").strip()
    if not _WORD.fullmatch(value):
        raise ProposerProblem(
            f"proposer openai: what the environment variable {variable} holds cannot be sent: there is a space, a line "
            "break or a character beyond ASCII in it; set it anew"
        )
    return value


def poster(model: Model, key: str) -> Post:
    """Return what sends a request once; it raises `Lost` where no whole answer comes within `model.timeout_s`."""
    seconds = float(model.timeout_s)
    client = _client(model.base_url or OPENAI, _headers(key, os.environ), seconds)

    def post(request: Request) -> Answer:
        return _within(seconds, lambda: _once(client, request, key))

    return post


def _client(url: str, headers: Mapping[str, str], seconds: float) -> "httpx2.Client":
    """A client that follows no redirect by itself; the environment's proxies are for other machines alone."""
    try:
        import httpx2
    except ImportError:
        raise ProposerProblem(f"proposer openai: {install('openai')}") from None
    try:
        host = httpx2.URL(url).host
    except (httpx2.InvalidURL, ValueError) as fault:
        raise ProposerProblem(f"proposer openai: model.base_url: {url} is no address ({fault}); correct it") from None
    mounts = {f"all://{host}": None} if is_loopback(url) else None
    try:
        return httpx2.Client(base_url=url, headers=headers, timeout=seconds, mounts=mounts)
    except (httpx2.InvalidURL, ValueError, ImportError):  # the fault's words may hold the proxy's password
        raise ProposerProblem(
            "proposer openai: the proxy in HTTP_PROXY, HTTPS_PROXY or ALL_PROXY cannot be used: it is no address, or "
            "not of http:// or https:// (socks5:// needs `pip install socksio`); correct it or unset it"
        ) from None
    except OSError as fault:
        raise ProposerProblem(
            f"proposer openai: the certificates in SSL_CERT_FILE or SSL_CERT_DIR cannot be read ({fault.strerror})"
        ) from None


def _headers(key: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Whose call it is: the key, and organisation and project by the variables that OpenAI's SDK knows.

    Compression is not asked for: an answer is short, and what is packed can be a thousand times as long unpacked.
    """
    named = {header: _word(environment, variable) for header, variable in _ACCOUNT.items()}
    held = {header: value for header, value in named.items() if value}
    fixed = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "kerneltrial"}
    return {"Authorization": f"Bearer {key}", **fixed, **held}


def _once(client: "httpx2.Client", request: Request, key: str) -> Answer:
    import httpx2

    headers = {"Idempotency-Key": request.digest}
    try:
        asked = client.build_request("POST", _PATHS[request.api], json=request.body, headers=headers)
        for _ in range(1 + _HOPS):
            with contextlib.closing(client.send(asked, stream=True)) as response:
                further = response.next_request
                if further is None or not _one_server(asked.url, further.url):
                    data, cut = _read(response)
                    elsewhere = "" if further is None else further.url.host
                    return _answer(response, data, cut, key, elsewhere)
                asked = further
    except (httpx2.HTTPError, httpx2.InvalidURL, ssl.SSLError, zlib.error, ValueError) as fault:
        # a ValueError is what a redirect to a host that cannot be (an empty label, one of 64 letters) leads to
        raise Lost(f"{type(fault).__name__}: {_without(key, str(fault))}") from None
    raise Lost(f"more than {_HOPS} redirects")


def _one_server(asked: "httpx2.URL", further: "httpx2.URL") -> bool:
    """Whether a redirect stays: the prompt is the team's own, and goes to nobody whom the config does not name."""
    same = (asked.scheme, asked.host, asked.port) == (further.scheme, further.host, further.port)
    safer = (asked.scheme, further.scheme) == ("http", "https") and asked.port is None and further.port is None
    return same or (safer and asked.host == further.host)


def _answer(response: "httpx2.Response", data: bytes, cut: bool, key: str, elsewhere: str) -> Answer:
    """A server that repeats the key does not get it into any record."""
    text = _without(key, data[:MAXIMUM_BYTES].decode(errors="replace"))
    headers = {"retry-after": _retry_after(response.headers), "elsewhere": elsewhere}
    return Answer(response.status_code, text, headers, cut)


def _without(key: str, text: str) -> str:
    """A text without the key, as it is and as JSON may have it."""
    for form in {key, key.replace("/", "\\/")} if len(key) >= 8 else ():
        text = text.replace(form, SECRET)
    return text


def _retry_after(headers: Mapping[str, str]) -> str:
    """Seconds, or a date; some servers of this API (Azure's) also tell milliseconds, which goes first as in the SDK."""
    milliseconds = headers.get("retry-after-ms", "").strip()
    if milliseconds.replace(".", "", 1).isdecimal():
        return str(float(milliseconds) / 1000)
    return headers.get("retry-after", "")


def _read(response: "httpx2.Response") -> tuple[bytes, bool]:
    """The body, and whether it was longer than is taken. What comes packed unasked is unpacked to that length alone."""
    unpack = zlib.decompressobj(wbits=47) if response.headers.get("content-encoding", "").lower() in _PACKED else None
    data = bytearray()
    for part in response.iter_raw():
        data += part if unpack is None else unpack.decompress(part, MAXIMUM_BYTES + 1 - len(data))
        if len(data) > MAXIMUM_BYTES:
            return bytes(data), True
    if unpack is not None and not unpack.eof:
        raise zlib.error("the packed answer has no end")
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
