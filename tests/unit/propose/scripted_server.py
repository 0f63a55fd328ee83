"""A real HTTP server on loopback that answers as it is told: one `Answer` after another, and the last for ever."""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USAGE = {
    "input_tokens": 1000,
    "input_tokens_details": {"cached_tokens": 600, "cache_write_tokens": 100},
    "output_tokens": 500,
    "output_tokens_details": {"reasoning_tokens": 300},
    "total_tokens": 1500,
}
CHAT_USAGE = {
    "prompt_tokens": 1000,
    "prompt_tokens_details": {"cached_tokens": 600, "cache_write_tokens": 100},
    "completion_tokens": 500,
    "completion_tokens_details": {"reasoning_tokens": 300},
    "total_tokens": 1500,
}


@dataclass
class Answer:
    """`missing` bytes are promised and not sent; `drip_s` lies between bytes; `wait_s` before anything is sent."""

    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    missing: int = 0
    drip_s: float = 0.0
    wait_s: float = 0.0


def responses(text: str, usage: Any = USAGE, **changes: Any) -> Answer:
    """An answer of the Responses API whose message is `text`."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    message = {"type": "message", "id": "msg", "role": "assistant", "status": "completed", "content": content}
    whole = {"id": "resp", "object": "response", "created_at": 1, "status": "completed", "model": "m", "error": None,
             "incomplete_details": None, "output": [{"type": "reasoning", "id": "r", "summary": []}, message],
             "usage": usage}  # fmt: skip
    return Answer(json.dumps({**whole, **changes}).encode())


def chat(text: str | None, usage: Any = CHAT_USAGE, finish: str = "stop", **message: Any) -> Answer:
    """An answer of Chat Completions whose message is `text`."""
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text, **message}}
    whole = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    return Answer(json.dumps(whole).encode())


def error(status: int, code: str = "", message: str = "no", kind: str = "", **headers: str) -> Answer:
    """An error in OpenAI's form, of a type `kind`; header names with _ for -."""
    told = {"message": message, "type": kind or code or "error", "code": code or None, "param": None}
    body = json.dumps({"error": told})
    return Answer(body.encode(), status, {name.replace("_", "-"): value for name, value in headers.items()})


class Server:
    """`url` ends in /v1. `seen` holds each request: path, headers, body."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.answers = list(answers)
        self.seen: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                server.seen.append((self.path, {k.lower(): v for k, v in self.headers.items()}, json.loads(body)))
                answer = server.answers[0] if len(server.answers) == 1 else server.answers.pop(0)
                with contextlib.suppress(OSError):
                    _send(self, answer)

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/v1"


def _send(handler: BaseHTTPRequestHandler, answer: Answer) -> None:
    time.sleep(answer.wait_s)
    handler.send_response(answer.status)
    handler.send_header("content-type", "application/json")
    handler.send_header("content-length", str(len(answer.body) + answer.missing))
    for name, value in answer.headers.items():
        handler.send_header(name, value)
    handler.end_headers()
    if answer.drip_s:
        for byte in answer.body:
            handler.wfile.write(bytes([byte]))
            handler.wfile.flush()
            time.sleep(answer.drip_s)
    else:
        handler.wfile.write(answer.body)
    handler.close_connection = True


@contextlib.contextmanager
def serving(*answers: Answer) -> Iterator[Server]:
    """A server for the length of a `with`."""
    server = Server(answers)
    thread = threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.http.shutdown()
        server.http.server_close()


@contextlib.contextmanager
def endless(start: bytes, again: bytes) -> Iterator[str]:
    """The URL of a server that reads nothing, sends `start`, and then `again` for as long as anybody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                connection, _ = server.accept()
                with connection:
                    connection.sendall(start)
                    while True:
                        connection.sendall(again)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/v1"


def closed_port() -> int:
    """A port of loopback on which nobody listens."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])
