"""What is sent is what OpenAI's SDK would send: the SDK itself, asked the same, is the witness."""

import gzip
import sys
import tracemalloc
import zlib
from datetime import UTC, datetime

import openai
import pytest
from scripted_server import Answer, chat, endless, responses, serving

from kerneltrial.propose.openai.policy import Stop, decide, refusal_of
from kerneltrial.propose.openai.request import request_of
from kerneltrial.propose.openai.transport import MAXIMUM_BYTES, Lost, key_of, poster
from kerneltrial.propose.problem import ProposerProblem
from kerneltrial.propose.prompt.prompt import Prompt
from kerneltrial.propose.reply_schema import reply_schema
from kerneltrial.records.asking import Model

KEY = "a-key-of-some-length"
TELLING = ("authorization", "content-type", "accept", "idempotency-key", "openai-organization", "openai-project")


@pytest.fixture(autouse=True)
def _account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")


@pytest.mark.parametrize("api", ["responses", "chat"])
def test_path_body_and_headers_are_those_of_the_sdk(api):
    with serving(responses("{}") if api == "responses" else chat("{}")) as server:
        model = Model(name="m", base_url=server.url, api=api, effort="low")
        schema = reply_schema(("cuda_cpp",))
        request = request_of(model, Prompt("You write kernels: 5 µs, √2.", "Propose\n\tone.", ()), schema, 1)
        poster(model, KEY)(request)
        client = openai.OpenAI(api_key=KEY, base_url=server.url, max_retries=0)
        of_sdk = client.responses if api == "responses" else client.chat.completions
        of_sdk.with_raw_response.create(**request.body, extra_headers={"Idempotency-Key": request.digest})
    (path, headers, body), (path_of_sdk, headers_of_sdk, body_of_sdk) = server.seen
    assert (path, body) == (path_of_sdk, body_of_sdk)
    assert [headers.get(name) for name in TELLING] == [headers_of_sdk.get(name) for name in TELLING]
    assert headers["openai-project"] == "proj-1"


def test_the_request_with_a_cache_breakpoint_is_one_that_the_sdk_knows():
    with serving(responses("{}")) as server:
        request = request_of(Model(), Prompt("You write kernels.", "Propose one.", ()), reply_schema(("cuda_cpp",)), 1)
        poster(Model(base_url=server.url, api="responses"), KEY)(request)
        client = openai.OpenAI(api_key=KEY, base_url=server.url, max_retries=0)
        client.responses.with_raw_response.create(**request.body)
    (_, _, body), (_, _, body_of_sdk) = server.seen
    assert "prompt_cache_options" in body
    assert body == body_of_sdk


def test_without_an_account_no_header_names_one(monkeypatch):
    monkeypatch.delenv("OPENAI_ORG_ID")
    monkeypatch.setenv("OPENAI_PROJECT_ID", " ")
    with serving(responses("{}")) as server:
        model = Model(name="m", base_url=server.url, api="responses")
        poster(model, KEY)(request_of(model, Prompt("a", "b", ()), {}, 1))
    assert not {"openai-organization", "openai-project"} & set(server.seen[0][1])


def asked(model: Model, key: str = KEY):
    return poster(model, key)(request_of(model, Prompt("a", "b", ()), {}, 1))


def test_a_redirect_within_a_server_is_followed_and_nothing_goes_to_another():
    """A server that moved within itself is found; neither key nor prompt goes to one that the config does not name."""
    with serving(responses("{}")) as other, serving(Answer(b"", 307, {"location": "/v2/responses"})) as server:
        server.answers.append(responses("{}"))
        model = Model(name="m", base_url=server.url, api="responses")
        assert asked(model).status == 200
        assert [path for path, _, _ in server.seen] == ["/v1/responses", "/v2/responses"]
        assert server.seen[0][1]["authorization"] == server.seen[1][1]["authorization"] == f"Bearer {KEY}"
        server.answers[:] = [Answer(b"moved", 307, {"location": f"{other.url}/responses"})]
        answer = asked(model)
        assert not other.seen
    assert (answer.status, answer.headers["elsewhere"]) == (307, "127.0.0.1")
    told = decide(refusal_of(answer.status, answer.headers, answer.body), 1, datetime.now(UTC), model)
    assert isinstance(told, Stop)
    assert "307: it redirects to 127.0.0.1" in told.line
    assert "set model.base_url" in told.line


def test_a_server_without_end_of_redirects_is_lost():
    with serving(Answer(b"", 307, {"location": "/v1/responses"})) as server:
        with pytest.raises(Lost, match="more than 5 redirects"):
            asked(Model(name="m", base_url=server.url, api="responses", timeout_s=10))
        assert len(server.seen) == 6


NO_HOSTS = [f"http://{'a' * 64}.com/", "http://..../", "http://[::1", "http://1.2.3.4:99999/", "http://\u00ad/", ""]


@pytest.mark.parametrize("location", NO_HOSTS)
def test_a_redirect_to_what_is_no_host_ends_in_good_order(location):
    with serving(Answer(b"", 307, {"location": location})) as server:
        model = Model(name="m", base_url=server.url, api="responses", timeout_s=10)
        try:
            answer = asked(model)
        except Lost:
            return
    assert isinstance(decide(refusal_of(answer.status, answer.headers, answer.body), 1, datetime.now(UTC), model), Stop)


CUT = [
    (gzip.compress(b" " * 60_000_000, 9), "gzip"),
    (zlib.compress(b" " * 60_000_000, 9), "deflate"),
]


@pytest.mark.parametrize(("packed", "encoding"), CUT)
def test_a_small_answer_that_unpacks_to_a_huge_one_is_cut(packed, encoding):
    with serving(Answer(packed, 200, {"content-encoding": encoding})) as server:
        tracemalloc.start()
        answer = asked(Model(name="m", base_url=server.url, api="responses"))
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert (answer.cut, len(answer.body)) == (True, MAXIMUM_BYTES)
    assert most < 6 * MAXIMUM_BYTES  # bytes, the growing array, the text
    assert server.seen[0][1]["accept-encoding"] == "identity"


def test_an_answer_that_comes_packed_unasked_is_read():
    body = responses("{}").body
    with serving(Answer(gzip.compress(body), 200, {"content-encoding": "gzip"})) as server:
        model = Model(name="m", base_url=server.url, api="responses")
        assert asked(model).body == body.decode()
        server.answers[:] = [Answer(gzip.compress(body)[:-9], 200, {"content-encoding": "gzip"})]
        with pytest.raises(Lost, match="no end"):
            asked(model)
        server.answers[:] = [Answer(body, 200, {"content-encoding": "gzip"})]
        with pytest.raises(Lost, match="incorrect header"):
            asked(model)


ENDLESS = {
    "chunks": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + b"10000\r\n" + b" " * 65536 + b"\r\n",
    "no length": b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n",
    "headers": b"HTTP/1.1 200 OK\r\n",
    "continue": b"",
}
AGAIN = {
    "chunks": b"10000\r\n" + b" " * 65536 + b"\r\n",
    "no length": b" " * 65536,
    "headers": b"x-more: " + b"a" * 4096 + b"\r\n",
    "continue": b"HTTP/1.1 100 Continue\r\n\r\n" * 100,
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_an_answer_without_an_end_is_cut_or_given_up(kind):
    with endless(ENDLESS[kind], AGAIN[kind]) as url:
        model = Model(name="m", base_url=url, api="responses", timeout_s=2 if kind == "continue" else 300)
        if kind in ("headers", "continue"):
            with pytest.raises(Lost):
                asked(model)
        else:
            answer = asked(model)
            assert (answer.cut, len(answer.body)) == (True, MAXIMUM_BYTES)


@pytest.mark.parametrize("wrong", ["a key", "line\nbreak", "gsk_key\u00e9", "raw\udcff", "del\x7f"])
def test_what_can_be_no_key_is_one_line_that_does_not_repeat_it(wrong, monkeypatch):
    """The client's own fault would quote the whole header, which goes to the journal."""
    with pytest.raises(ProposerProblem, match="OPENAI_API_KEY holds cannot be sent") as caught:
        key_of(Model(), {"OPENAI_API_KEY": wrong})
    assert wrong not in str(caught.value)
    monkeypatch.setenv("OPENAI_ORG_ID", wrong)
    with pytest.raises(ProposerProblem, match="OPENAI_ORG_ID holds cannot be sent"):
        poster(Model(), KEY)


IN_CLEAR = ["http://gpu-box:8000/v1", "http://10.0.0.7/v1", "http://localhost.example.com/v1", "http://[fe80::1]/v1"]
NOT_IN_CLEAR = ["https://gpu-box/v1", "http://localhost:8000/v1", "http://127.0.0.1/v1", "http://[::1]:8000/v1", ""]


def test_the_key_for_openai_goes_to_no_other_machine_in_clear():
    held = {"OPENAI_API_KEY": KEY, "BOX_KEY": KEY}
    for url in IN_CLEAR:
        with pytest.raises(ProposerProblem, match="in clear") as caught:
            key_of(Model(base_url=url), held)
        assert KEY not in str(caught.value)
        assert key_of(Model(base_url=url), {}) == "none"
        assert key_of(Model(base_url=url, key_variable="BOX_KEY"), held) == KEY  # meant for that server
    assert [key_of(Model(base_url=url), held) for url in NOT_IN_CLEAR] == [KEY] * len(NOT_IN_CLEAR)


PROXIES = ["http://me:s3cretpassword@[::1", "socks5://me:s3cretpassword@127.0.0.1:9", "http://me:s3cretp/assword@h:9"]


@pytest.mark.parametrize("proxy", [*PROXIES, "ftp://me:s3cretpassword@127.0.0.1:9"])
def test_a_proxy_that_cannot_be_used_is_one_line_without_its_password(proxy, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    monkeypatch.setitem(sys.modules, "socksio", None)
    with pytest.raises(ProposerProblem, match="the proxy in HTTP_PROXY") as caught:
        poster(Model(), KEY)
    assert "s3cret" not in str(caught.value)
    assert "assword" not in str(caught.value)


def test_a_server_on_this_machine_is_asked_past_the_proxy(monkeypatch):
    monkeypatch.delenv("NO_PROXY")
    with serving(Answer(b"", 502)) as proxy, serving(responses("{}")) as server:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("ALL_PROXY", proxy.url)
        assert asked(Model(name="m", base_url=server.url, api="responses")).status == 200
        assert not proxy.seen


def test_certificates_that_are_absent_are_one_line(monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/ca.pem")
    with pytest.raises(ProposerProblem, match="SSL_CERT_FILE or SSL_CERT_DIR cannot be read"):
        poster(Model(), KEY)


def test_a_key_that_the_server_repeats_as_json_may_have_it_is_not_taken_over():
    key = "a-key/with+a/slash="
    with serving(Answer(b'{"output": [], "said": "a-key\\/with+a\\/slash= a-key/with+a/slash="}')) as server:
        assert "slash" not in asked(Model(name="m", base_url=server.url, api="responses"), key).body


@pytest.mark.parametrize("url", ["http://[::1", "http://1.2.3.4:99999/v1", "http://xn--/v1", f"http://{'a' * 64}/v1"])
def test_an_address_that_is_none_is_one_line(url):
    model = Model(name="m", base_url=url, api="responses", timeout_s=10)
    with pytest.raises((ProposerProblem, Lost)):
        poster(model, KEY)(request_of(model, Prompt("a", "b", ()), {}, 1))
