"""What is sent is what OpenAI's SDK would send: the SDK itself, asked the same, is the witness."""

import openai
import pytest
from scripted_server import Answer, chat, responses, serving

from kerneltrial.propose.openai.request import request_of
from kerneltrial.propose.openai.transport import Lost, poster
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


def test_a_redirect_is_followed_with_the_key_on_the_same_server_alone():
    """A server that moved within itself is found; the key goes to no other one."""
    with serving(responses("{}")) as other, serving(Answer(b"", 307, {"location": "/v2/responses"})) as server:
        server.answers.append(responses("{}"))
        model = Model(name="m", base_url=server.url, api="responses")
        request = request_of(model, Prompt("a", "b", ()), {}, 1)
        assert poster(model, KEY)(request).status == 200
        assert [path for path, _, _ in server.seen] == ["/v1/responses", "/v2/responses"]
        server.answers[:] = [Answer(b"", 307, {"location": f"{other.url}/responses"})]
        poster(model, KEY)(request)
        assert "authorization" not in other.seen[0][1]


def test_a_server_without_end_of_redirects_is_lost():
    with serving(Answer(b"", 307, {"location": "/v1/responses"})) as server:
        model = Model(name="m", base_url=server.url, api="responses", timeout_s=10)
        with pytest.raises(Lost, match="TooManyRedirects"):
            poster(model, KEY)(request_of(model, Prompt("a", "b", ()), {}, 1))


NO_HOSTS = [f"http://{'a' * 64}.com/", "http://..../", "http://[::1", "http://1.2.3.4:99999/", "http://\u00ad/"]


@pytest.mark.parametrize("location", NO_HOSTS)
def test_a_redirect_to_what_is_no_host_is_a_lost_reply(location):
    with serving(Answer(b"", 307, {"location": location})) as server:
        model = Model(name="m", base_url=server.url, api="responses", timeout_s=10)
        with pytest.raises(Lost):
            poster(model, KEY)(request_of(model, Prompt("a", "b", ()), {}, 1))


@pytest.mark.parametrize("url", ["http://[::1", "http://1.2.3.4:99999/v1", "http://xn--/v1", f"http://{'a' * 64}/v1"])
def test_an_address_that_is_none_is_one_line(url):
    model = Model(name="m", base_url=url, api="responses", timeout_s=10)
    with pytest.raises((ProposerProblem, Lost)):
        poster(model, KEY)(request_of(model, Prompt("a", "b", ()), {}, 1))
