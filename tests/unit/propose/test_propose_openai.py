"""The proposer `openai` against a real server on loopback: every row of DESIGN.md section 5."""

import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from scripted_server import Answer, Server, chat, closed_port, error, responses, serving

from kerneltrial.propose.openai import transport
from kerneltrial.propose.openai.asking import Asking
from kerneltrial.propose.openai.budget import Budget, Spending
from kerneltrial.propose.openai.exchange import Answered, Exchanges, Withheld
from kerneltrial.propose.openai.live import Diary, Live
from kerneltrial.propose.openai.policy import Refusal, Stop, Take, Wait, decide
from kerneltrial.propose.openai.prices import listed_prices
from kerneltrial.propose.openai.request import request_of
from kerneltrial.propose.openai.transport import key_of, poster
from kerneltrial.propose.problem import ProposerProblem
from kerneltrial.propose.prompt.prompt import Prompt
from kerneltrial.propose.proposer import Draft
from kerneltrial.propose.reply_schema import reply_schema
from kerneltrial.records.asking import Model
from kerneltrial.records.proposal import ModelUsage, Unusable
from kerneltrial.records.reason import Reason
from kerneltrial.records.terms import ModelPrices
from kerneltrial.store.canonical import canonical, digest
from kerneltrial.store.objects import Objects

KEY = "a-key-that-must-not-be-recorded"
PROMPT = Prompt("You write kernels.", "Propose one.", ("a" * 64,))
LANGUAGES = ("cuda_cpp", "numba_cuda")
PRICES = ModelPrices(
    input_usd=Decimal(2), cached_input_usd=Decimal("0.5"), cache_write_extra_usd=Decimal("0.4"), output_usd=Decimal(10),
    source="s", date="2026-12-01",
)  # fmt: skip
LAUNCH = {"entry": "f", "grid": ["n", "1", "1"], "block": ["32", "1", "1"], "args": ["x", "n"],
          "cluster": ["1", "1", "1"], "cooperative": False, "shared_bytes": "0"}  # fmt: skip
GOOD: dict[str, Any] = {
    "language": "cuda_cpp",
    "hypothesis": "Wider loads.",
    "pattern": "memory_access",
    "source": 'extern "C" __global__ void f(float* x, int n) {}\n',
    "plan": {"scratch": [], "variants": [{"when": "1", "launches": [LAUNCH]}]},
}
TEXT = json.dumps(GOOD)


@dataclass
class Desk:
    """A proposer at a desk of its own: what it journalled, how long it waited, what it stored."""

    folder: Path
    model: Model
    events: list[dict[str, Any]] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)
    prices: ModelPrices = PRICES

    def live(self) -> Live:
        def unanswered() -> dict[str, int]:
            kinds: dict[str, list[str]] = {}
            for event in self.events:
                kinds.setdefault(event["request"], []).append(event["event"])
            return {r: k.count("sent") - k.count("answered") - k.count("refused") for r, k in kinds.items()}

        return Live(
            Exchanges(self.folder / "replies"),
            Budget(self.model, self.prices),
            Diary(self.events.append, unanswered),
            lambda: poster(self.model, KEY),
            self.waited.append,
        )

    def ask(self, count: int = 1, first: int = 0, superseded: tuple[str, ...] = ()):
        asking = Asking(self.live(), Budget(self.model, self.prices), LANGUAGES, Objects(self.folder / "objects"))
        return asking.ask([PROMPT] * count, first, superseded)

    @property
    def kinds(self) -> list[str]:
        return [event["event"] for event in self.events]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    def make(server: Server | str, api: str = "responses", **changes: Any) -> Desk:
        url = server if isinstance(server, str) else server.url
        settings = {"name": "m", "base_url": url, "api": api, "effort": "", "timeout_s": 20, **changes}
        return Desk(tmp_path, Model(**settings))

    return make


@pytest.mark.parametrize("api", ["responses", "chat"])
def test_a_good_reply_becomes_a_draft_and_its_usage_is_counted(desk, api):
    with serving(responses(TEXT) if api == "responses" else chat(TEXT)) as server:
        one = desk(server, api, effort="low")
        drafts, usage = one.ask()
    (draft,) = drafts
    assert isinstance(draft, Draft)
    assert (draft.language, draft.source.decode(), draft.origin.pattern) == (
        "cuda_cpp",
        GOOD["source"],
        "memory_access",
    )
    assert (draft.origin.hypothesis, draft.origin.parents) == ("Wider loads.", PROMPT.parents)
    assert canonical(draft.plan) == canonical(GOOD["plan"])
    assert (usage.input_tokens, usage.cached_tokens, usage.cache_write_tokens) == (1000, 600, 100)
    assert (usage.output_tokens, usage.reasoning_tokens) == (500, 300)
    path, headers, body = server.seen[0]
    assert path == {"responses": "/v1/responses", "chat": "/v1/chat/completions"}[api]
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["idempotency-key"] == usage.requests[0]
    formed = body["text"]["format"] if api == "responses" else body["response_format"]["json_schema"]
    assert (formed["strict"], formed["schema"]) == (True, reply_schema(LANGUAGES))
    assert body.get("reasoning", body.get("reasoning_effort")) in ({"effort": "low"}, "low")
    assert one.kinds == ["sent", "answered"]


def test_requests_and_replies_are_objects_and_no_key_or_header_is_in_any_file(desk, tmp_path):
    answer = responses(TEXT)
    answer.body = answer.body.replace(b'"m"', f'"{KEY}"'.encode())  # a server that repeats what it was sent
    with serving(answer) as server:
        _, usage = desk(server).ask()
    objects = Objects(tmp_path / "objects")
    request = request_of(desk(server).model, PROMPT, reply_schema(LANGUAGES), 0)
    assert usage.requests == (request.digest,)
    assert objects.get(usage.requests[0]) == canonical(request)
    assert json.loads(objects.get(usage.replies[0]))["usage"]["output_tokens"] == 500
    for path in tmp_path.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            for word in (KEY.encode(), b"Bearer", b"uthorization", str(tmp_path).encode(), b"127.0.0.1"):
                assert word not in data, (path, word)


def test_the_digest_covers_api_body_and_sample_and_nothing_of_the_run(desk):
    schema = reply_schema(LANGUAGES)
    model = Model(name="m", base_url="http://one/v1")
    first = request_of(model, PROMPT, schema, 0)
    other = {"base_url": "http://two/v1", "key_variable": "OTHER", "budget_calls": 3, "timeout_s": 5}
    elsewhere = msgspec.structs.replace(model, **other)
    assert request_of(elsewhere, PROMPT, schema, 0) == first
    others = [
        request_of(model, PROMPT, schema, 1),
        request_of(msgspec.structs.replace(model, api="responses"), PROMPT, schema, 0),
        request_of(msgspec.structs.replace(model, name="n"), PROMPT, schema, 0),
        request_of(model, Prompt("x", PROMPT.feedback, ()), schema, 0),
    ]
    assert len({first.digest, *(other.digest for other in others)}) == 5
    assert first.digest == digest(canonical({"api": "chat", "body": first.body, "sample": 0}))
    assert b"." not in canonical({"numbers": [v for v in first.body.values() if isinstance(v, float)]})


def test_what_was_answered_is_never_paid_for_again(desk):
    with serving(responses(TEXT)) as server:
        one = desk(server)
        assert one.ask() == one.ask()
        assert len(server.seen) == 1
        one.ask(first=1)
        assert len(server.seen) == 2


FENCED = f"Here it is:\n```json\n{TEXT}\n```\nGood luck."


@pytest.mark.parametrize("api", ["responses", "chat"])
@pytest.mark.parametrize(
    "text",
    [FENCED, f"<think>{{no}}</think>{TEXT}", f"Sure. {TEXT} Done.", TEXT.replace('["n", "1", "1"]', '["n", 1, 1]')],
)
def test_json_within_other_text_is_found(desk, api, text):
    with serving(responses(text) if api == "responses" else chat(text)) as server:
        drafts, _ = desk(server, api).ask()
    assert isinstance(drafts[0], Draft)


def without(name: str) -> str:
    return json.dumps({key: value for key, value in GOOD.items() if key != name})


def with_choice(answer: Answer, **changes: Any) -> Answer:
    """An answer of Chat Completions whose choice holds more."""
    document = json.loads(answer.body)
    document["choices"][0] |= changes
    return Answer(json.dumps(document).encode())


UNUSABLE: dict[str, tuple[str, Answer, str]] = {
    "malformed": ("responses", responses('{"language": "cuda_cpp", '), "no JSON object was found"),
    "prose": ("chat", chat("I would rather not say."), "begins with 'I would rather not say.'"),
    "a list": ("chat", chat("[1, 2]"), "no JSON object"),
    "a field missing": ("responses", responses(without("plan")), "the key 'plan' is missing"),
    "a field more": ("responses", responses(json.dumps({**GOOD, "x": 1})), "unknown key 'x'; allowed: language"),
    "another type": ("chat", chat(json.dumps({**GOOD, "source": 5})), "source: 5 is not allowed; allowed: text"),
    "another word": ("chat", chat(json.dumps({**GOOD, "pattern": "luck"})), "allowed: one of algebra, fusion"),
    "another language": ("chat", chat(json.dumps({**GOOD, "language": "ptx"})), "allowed: one of cuda_cpp, numba_cuda"),
    "no source": ("chat", chat(json.dumps({**GOOD, "source": " \n"})), "source is empty"),
    "no launch": ("chat", chat(json.dumps({**GOOD, "plan": {"variants": []}})), "plan.variants: [] is not allowed"),
    "half a character": ("chat", chat(TEXT.replace("Wider", "\\ud800")), "no JSON object"),
    "deep": ("chat", chat("[" * 100_000), "no JSON object"),
    "refusal": (
        "responses",
        responses("", output=[{"type": "message", "content": [{"type": "refusal", "refusal": "I must not."}]}]),
        "the model refused: I must not.",
    ),
    "refusal in chat": ("chat", chat(None, refusal="I must not."), "the model refused: I must not."),
    "content filter": (
        "responses",
        responses(TEXT, status="incomplete", incomplete_details={"reason": "content_filter"}),
        "content filter",
    ),
    "content filter in chat": ("chat", chat(TEXT, finish="content_filter"), "content filter"),
    "truncated": (
        "responses",
        responses(TEXT[:50], status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
        "cut off at the limit of output tokens",
    ),
    "truncated in chat": ("chat", chat(TEXT[:50], finish="length"), "cut off at the limit of output tokens"),
    "empty": ("responses", responses("", output=[]), "the reply is empty"),
    "empty in chat": ("chat", chat(""), "the reply is empty"),
    "failed": (
        "responses",
        responses("", output=[], status="failed", error={"code": "bio_policy", "message": "oh"}),
        "failed on it: oh",
    ),
    "failed half-way": ("chat", with_choice(chat("{"), error={"code": 502, "message": "gone"}), "failed on it: gone"),
    "only thoughts": ("chat", chat(None, reasoning_content="Hm."), "the reply is empty: all of it was reasoning"),
    "no choices": ("chat", Answer(b'{"choices": [], "usage": null}'), "the reply is empty"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_an_unusable_reply_uses_the_attempt_is_charged_and_fed_back(desk, name):
    api, answer, says = UNUSABLE[name]
    with serving(answer) as server:
        one = desk(server, api)
        drafts, usage = one.ask()
    (draft,) = drafts
    assert isinstance(draft, Unusable)
    assert draft.reason is Reason.UNUSABLE_REPLY
    assert says in draft.detail
    assert len(server.seen) == 1
    assert usage.output_tokens >= 500


@pytest.mark.parametrize("code", ["content_filter", "invalid_prompt", "content_policy_violation"])
def test_a_filter_before_the_model_uses_the_attempt_and_charges_nothing(desk, code):
    with serving(error(400, code, "your prompt was flagged")) as server:
        drafts, usage = desk(server).ask()
    assert "content filter before the model saw it: your prompt was flagged" in drafts[0].detail
    assert (usage.input_tokens, usage.output_tokens, len(server.seen)) == (0, 0, 1)


def test_without_usage_the_worst_case_is_charged(desk):
    with serving(responses(TEXT, usage=None)) as server:
        one = desk(server, max_output_tokens=1234)
        _, usage = one.ask()
        sent = json.dumps(server.seen[0][2])
    assert usage.output_tokens == 1234
    assert len(sent) * 0.9 < usage.input_tokens


ODD_USAGE = {
    "no number": float("nan"),
    "infinite": float("inf"),
    "negative": -5,
    "half a token": 0.5,
    "true": True,
    "a text": "7",
    "beyond all": 10**40,
}


@pytest.mark.parametrize("api", ["responses", "chat"])
@pytest.mark.parametrize("name", ODD_USAGE)
def test_a_usage_that_can_be_none_is_charged_at_its_worst_and_the_answer_is_used(desk, api, name):
    """Servers in Python write NaN, which is no JSON; the answer was paid for and is not asked for again."""
    usage = {"input_tokens": 10, "prompt_tokens": 10, "output_tokens": ODD_USAGE[name], "total_tokens": -1}
    usage["completion_tokens"] = usage["output_tokens"]
    with serving(responses(TEXT, usage=usage) if api == "responses" else chat(TEXT, usage=usage)) as server:
        one = desk(server, api, max_output_tokens=1234)
        drafts, counted = one.ask()
        again, _ = one.ask()
    assert isinstance(drafts[0], Draft)
    assert (counted.output_tokens, again, len(server.seen)) == (1234, drafts, 1)


def test_details_that_are_no_part_of_the_whole_charge_no_less(desk):
    details = {"cached_tokens": 10**9, "cache_write_tokens": -4}
    usage = {"input_tokens": 1000, "input_tokens_details": details, "output_tokens": 500,
             "output_tokens_details": {"reasoning_tokens": 10**9}}  # fmt: skip
    with serving(responses(TEXT, usage=usage)) as server:
        _, counted = desk(server).ask()
    assert (counted.input_tokens, counted.cached_tokens, counted.cache_write_tokens) == (1000, 1000, 0)
    assert (counted.output_tokens, counted.reasoning_tokens) == (500, 500)


def test_an_answer_that_is_no_utf8_is_an_attempt(desk):
    broken = Answer(responses(TEXT).body.replace(b"Wider", b"Wid\xff\xc3r"))
    with serving(broken) as server:
        drafts, _ = desk(server).ask()
    assert drafts[0].origin.hypothesis == "Wid\ufffd\ufffdr loads."


def test_the_journal_says_which_model_answered(desk):
    with serving(responses(TEXT, model="another-model-2026"), responses(TEXT, model={"a": KEY})) as server:
        one = desk(server)
        one.ask(count=2)
    assert [event["model"] for event in one.events if event["event"] == "answered"] == [
        "another-model-2026",
        "{'a': '[secret]'}",
    ]


def test_equal_answers_under_one_id_are_two_that_were_paid_for(desk):
    with serving(responses(TEXT, id="resp_1")) as server:
        drafts, usage = desk(server).ask(count=2)
    assert drafts[0] == drafts[1]
    assert (len(server.seen), usage.output_tokens, len(set(usage.requests))) == (2, 1000, 2)


def test_reasoning_that_only_the_total_counts_is_charged(desk):
    usage = {"prompt_tokens": 14, "completion_tokens": 6, "total_tokens": 1486,
             "completion_tokens_details": {"reasoning_tokens": 1466}}  # fmt: skip
    with serving(chat(TEXT, usage=usage)) as server:
        _, counted = desk(server, "chat").ask()
    assert (counted.input_tokens, counted.output_tokens, counted.reasoning_tokens) == (14, 1472, 1466)


@pytest.mark.parametrize("details", [{}, {"prompt_tokens_details": None, "completion_tokens_details": None}])
def test_a_server_that_tells_no_details_of_its_usage_is_taken_at_its_word(desk, details):
    with serving(chat(TEXT, usage={"prompt_tokens": 14, "completion_tokens": 6, **details})) as server:
        drafts, counted = desk(server, "chat").ask()
    assert isinstance(drafts[0], Draft)
    assert (counted.input_tokens, counted.cached_tokens, counted.output_tokens) == (14, 0, 6)


def test_a_message_in_parts_is_read_without_its_thoughts(desk):
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "{"}]}, {"type": "text", "text": TEXT}]
    answer = with_choice(chat(""), message={"role": "assistant", "content": parts})
    with serving(answer) as server:
        drafts, _ = desk(server, "chat").ask()
    assert isinstance(drafts[0], Draft)


@pytest.mark.parametrize(("api", "form"), [("chat_json", {"type": "json_object"}), ("chat_text", None)])
def test_a_server_without_schemas_is_asked_for_an_object_or_for_text(desk, api, form):
    with serving(chat(FENCED)) as server:
        drafts, _ = desk(server, api).ask()
    path, _, body = server.seen[0]
    assert isinstance(drafts[0], Draft)
    assert (path, body.get("response_format")) == ("/v1/chat/completions", form)


MARKED = ["gpt-6.1-terra", "gpt-5.6", "gpt-5.10-mini", "gpt-6", "gpt-10.2"]
NOT_MARKED = ["gpt-5-mini", "gpt-5.5", "gpt-5", "gpt-4.1", "gpt-4o", "gpt-35-turbo", "o3", "ft:gpt-4o:me", "gpt-50"]


@pytest.mark.parametrize("name", [*MARKED, *NOT_MARKED])
def test_openai_is_told_where_the_part_ends_that_stays_the_same(name):
    """Else its models since gpt-5.6 cache up to the end of the feedback, at a price, and never find it again."""
    body = request_of(Model(name=name), PROMPT, {}, 0).body
    if name in NOT_MARKED:
        assert body["instructions"] == PROMPT.instructions
        assert "prompt_cache" not in json.dumps(body)
        return
    static, feedback = body["input"]
    (part,) = static["content"]
    assert (static["role"], part["text"]) == ("developer", PROMPT.instructions)
    assert (part["prompt_cache_breakpoint"], body["prompt_cache_options"]) == ({"mode": "explicit"},) * 2
    assert feedback == {"role": "user", "content": PROMPT.feedback}
    assert "instructions" not in body
    later = request_of(Model(name=name), Prompt(PROMPT.instructions, "What was learnt.", ()), {}, 7).body
    elsewhere = request_of(Model(name=name), Prompt("Another contract.", PROMPT.feedback, ()), {}, 0).body
    assert body["prompt_cache_key"] == later["prompt_cache_key"] != elsewhere["prompt_cache_key"]


@pytest.mark.parametrize("changes", [{"base_url": "http://localhost/v1", "api": "responses"}, {"api": "responses"}])
def test_no_other_server_and_none_who_asks_for_less_is_told_of_caches(changes):
    assert "prompt_cache" not in json.dumps(request_of(Model(**changes), PROMPT, {}, 0).body)


def test_a_very_long_reply_is_cut_and_uses_the_attempt(desk, monkeypatch):
    monkeypatch.setattr(transport, "MAXIMUM_BYTES", 50_000)
    with serving(responses(TEXT + " " * 200_000)) as server:
        drafts, usage = desk(server, max_output_tokens=777).ask()
    assert "longer than 50000 bytes" in drafts[0].detail
    assert usage.output_tokens == 777


STOPS = {
    "401": (error(401, "invalid_api_key", f"Incorrect key {KEY}"), ["refuses the key in OPENAI_API_KEY", "401"]),
    "403": (error(403, "unsupported_country"), ["403"]),
    "404": (error(404, "model_not_found", "The model `m` does not exist"), ["knows no model 'm'", "does not exist"]),
    "quota": (error(429, "insufficient_quota", "You exceeded it"), ["the quota is spent", "add credit"]),
    "a limit of money": (
        error(429, "project_spend_limit_exceeded", "You exceeded it", kind="insufficient_quota"),
        ["the quota is spent", "raise the limit"],
    ),
    "credit by its code": (error(429, "credit_balance_exhausted", "no"), ["the quota is spent"]),
    "payment": (error(402, "", "Insufficient Balance"), ["the quota is spent"]),
    "400": (error(400, "invalid_value", "no such key"), ["refuses the request", "no such key", "keys under `model`"]),
    "effort": (error(400, "", "'m' does not support thinking"), ["thinking", "set model.effort"]),
    "no schema": (
        error(400, "", "This response_format type is unavailable now"),
        ["response_format", "set model.api to chat_json or chat_text"],
    ),
    "no cache": (error(400, "", "prompt_cache_breakpoint is not supported on this model"), ["model.api to responses"]),
    "no room": (error(400, "", "This model's maximum context length is 8192"), ["lower model.max_output_tokens"]),
    "an hour": (error(429, "rate_limit_exceeded", "slow", retry_after="3600"), ["asks to wait 3600 s"]),
    "a web page": (Answer(b"<html>Welcome</html>"), ["no reply of the API", "/v1"]),
    "a web page that is missing": (Answer(b"<html>Gone</html>", 404), ["404", "model.api"]),
}


@pytest.mark.parametrize("name", STOPS)
def test_what_a_person_must_settle_stops_at_once_with_one_line(desk, name, tmp_path):
    answer, words = STOPS[name]
    with serving(answer) as server, pytest.raises(ProposerProblem) as caught:
        desk(server).ask()
    line = str(caught.value)
    assert all(word in line for word in words), line
    assert "\n" not in line
    assert KEY not in line
    assert len(server.seen) == 1
    assert not list(tmp_path.glob("replies/*.json"))


FAILED = responses("", output=[], usage=None, status="failed", error={"code": "server_error", "message": "oh"})
BUSY = responses("", output=[], usage=None, status="failed", error={"code": "rate_limit_exceeded", "message": "oh"})
AGAIN = {
    "429": (error(429, "rate_limit_exceeded"), [4.0, 16.0]),
    "429 of a rise": (error(429, "slow_down", kind="rate_limit_error"), [4.0, 16.0]),
    "429 with milliseconds": (error(429, "rate_limit_exceeded", retry_after_ms="1500", retry_after="9"), [1.5, 1.5]),
    "a generation that failed": (FAILED, [4.0, 16.0]),
    "a generation that was too much": (BUSY, [4.0, 16.0]),
    "200 with an upstream's 502": (Answer(b'{"error": {"code": 502, "message": "down"}}'), [4.0, 16.0]),
    "200 with a plain error": (Answer(b'{"error": "loading model"}'), [4.0, 16.0]),
    "429 with Retry-After": (error(429, "rate_limit_exceeded", retry_after="7"), [7.0, 7.0]),
    "500": (error(500), [4.0, 16.0]),
    "503 with Retry-After": (error(503, retry_after="0.5"), [0.5, 0.5]),
    "503 with a page": (Answer(b"<html>down</html>", 503), [4.0, 16.0]),
    "cut in mid-body": (Answer(responses(TEXT).body[:100], missing=500), [1.0, 2.0]),
}


@pytest.mark.parametrize("name", AGAIN)
def test_what_may_pass_is_tried_again(desk, name):
    answer, waits = AGAIN[name]
    with serving(answer, answer, responses(TEXT)) as server:
        one = desk(server)
        drafts, _ = one.ask()
    assert isinstance(drafts[0], Draft)
    assert (one.waited, len(server.seen)) == (waits, 3)
    lost = next(iter(Exchanges(one.folder / "replies").all())).outcome.lost
    assert lost == (2 if name == "cut in mid-body" else 0)
    assert one.kinds.count("sent") == 3


def test_four_tries_and_no_more(desk):
    with serving(error(500, message="oh dear")) as server:
        one = desk(server)
        with pytest.raises(ProposerProblem, match=r"no answer in 4 tries \(500: oh dear\)"):
            one.ask()
    assert (len(server.seen), one.waited) == (4, [4.0, 16.0, 45.0])


@pytest.mark.parametrize("slow", [Answer(responses(TEXT).body, wait_s=3), Answer(responses(TEXT).body, drip_s=0.05)])
def test_a_server_that_keeps_one_waiting_is_given_up(desk, slow):
    with serving(slow, responses(TEXT)) as server:
        one = desk(server, timeout_s=1)
        drafts, _ = one.ask()
    assert isinstance(drafts[0], Draft)
    assert one.kinds == ["sent", "lost", "sent", "answered"]


def test_a_refused_connection_is_named_with_what_to_do(desk):
    one = desk(f"http://127.0.0.1:{closed_port()}/v1")
    with pytest.raises(ProposerProblem, match=r"no answer in 4 tries .*check the server and the network"):
        one.ask()
    assert one.kinds == ["sent", "lost"] * 4


def test_no_key_is_one_line_and_a_server_of_ones_own_needs_none():
    with pytest.raises(ProposerProblem, match="MY_KEY is not set"):
        key_of(Model(key_variable="MY_KEY"), {})
    assert key_of(Model(key_variable="MY_KEY"), {"MY_KEY": " k\n"}) == "k"
    assert key_of(Model(base_url="http://localhost/v1"), {}) == "none"


BUDGETS = {
    "calls": ({"budget_calls": 2}, 2, "2 of 2 calls"),
    "tokens": ({"budget_tokens": 14_000, "max_output_tokens": 10_000}, 2, "3000 of 14000 tokens"),
    "usd": ({"budget_usd": Decimal("0.115"), "max_output_tokens": 10_000}, 2, "0.012280 of 0.115 USD"),
}


@pytest.mark.parametrize("name", BUDGETS)
def test_the_budget_ends_the_proposing_in_good_order(desk, name):
    changes, calls, says = BUDGETS[name]
    with serving(responses(TEXT)) as server:
        one = desk(server, **changes)
        drafts, usage = one.ask(count=5)
        again = one.ask(count=5)
    assert [type(draft) for draft in drafts] == [Draft] * calls + [Unusable]
    assert drafts[-1].reason is Reason.BUDGET_SPENT
    assert says in drafts[-1].detail
    assert len(server.seen) == len(usage.requests) == calls
    assert again == (drafts, usage)


def test_a_try_that_was_lost_counts_at_its_worst(desk):
    with serving(Answer(b"{", missing=10)) as server:
        one = desk(server, budget_usd=Decimal("0.25"), max_output_tokens=10_000)
        drafts, usage = one.ask()
    assert drafts[0].reason is Reason.BUDGET_SPENT
    assert (len(server.seen), usage.requests) == (2, ())
    assert isinstance(next(iter(Exchanges(one.folder / "replies").all())).outcome, Withheld)


class Killed(BaseException):
    """What ends a process at once, for a test."""


@pytest.mark.parametrize("moment", ["sent", "before it is kept", "answered"])
def test_a_kill_while_an_answer_is_paid_for_is_counted_and_pays_no_answer_twice(desk, moment, monkeypatch):
    """What was not stored counts at its worst when the same is asked again; what was stored is found."""

    def note(event):
        if event["event"] == "answered":
            raise Killed
        one.events.append(event)
        if event["event"] == moment:
            raise Killed

    with serving(responses(TEXT)) as server:
        one = desk(server, max_output_tokens=10_000)
        with monkeypatch.context() as patch:
            live = one.live()
            if moment == "before it is kept":
                patch.setattr(Exchanges, "keep", lambda self, exchange: (_ for _ in ()).throw(Killed))
            else:
                live = replace(live, diary=Diary(note, live.diary.unanswered))
            with pytest.raises(Killed):
                live.answer(request_of(one.model, PROMPT, reply_schema(LANGUAGES), 0))
        sent = len(server.seen)
        one.ask()
        assert len(server.seen) == sent + (moment != "answered")
    live = one.live()
    (kept,) = live.exchanges.all()
    assert kept.outcome.lost == (moment != "answered")
    used = live.budget.used(live.exchanges.all())
    worst = live.budget.worst(kept.request)
    assert used.tokens == 1500 + (worst.tokens if moment != "answered" else 0)


def test_tries_of_a_question_that_was_given_up_count_too(desk):
    """After a kill, `ask-again` asks anew: what was lost before may have been charged all the same."""
    with serving(responses(TEXT)) as server:
        one = desk(server, budget_calls=2)
        one.events.append({"request": "f" * 64, "event": "sent", "try": 1})
        drafts, _ = one.ask()
        assert isinstance(drafts[0], Draft)
        drafts, _ = one.ask(first=1)
        assert drafts[0].reason is Reason.BUDGET_SPENT
    assert len(server.seen) == 1


def test_what_is_no_reply_of_the_api_counts_as_it_may_have_been_paid_for(desk):
    with serving(Answer(b"data: {}\n\n")) as server:
        one = desk(server, budget_calls=2)
        for _ in range(2):
            with pytest.raises(ProposerProblem, match="no reply of the API"):
                one.ask()
        drafts, _ = one.ask()
    assert (drafts[0].reason, len(server.seen), one.kinds) == (Reason.BUDGET_SPENT, 2, ["sent", "lost"] * 2)


def test_answers_that_are_no_longer_in_force_are_still_counted(desk):
    with serving(responses(TEXT)) as server:
        one = desk(server, budget_calls=2)
        _, first = one.ask()
        drafts, usage = one.ask(first=1, superseded=first.requests)
        assert (len(drafts), usage.requests[1:], usage.input_tokens) == (1, first.requests, 2000)
        drafts, _ = one.ask(first=2)
    assert drafts[0].reason is Reason.BUDGET_SPENT
    assert len(server.seen) == 2


def test_dollars_are_reckoned_with_cached_and_written_tokens(desk):
    with serving(responses(TEXT)) as server:
        one = desk(server)
        one.ask()
    used = one.live().budget.used(one.live().exchanges.all())
    assert used == Spending(
        1, 1500, Decimal("0.000001") * (400 * 2 + 600 * Decimal("0.5") + 100 * Decimal("0.4") + 5000)
    )


def test_a_stored_reply_that_was_changed_is_refused(desk):
    with serving(responses(TEXT)) as server:
        one = desk(server)
        one.ask()
        (path,) = one.folder.glob("replies/*.json")
        path.chmod(0o644)
        path.write_bytes(path.read_bytes().replace(b"Propose one", b"Propose two"))
        with pytest.raises(Exception, match="the reply to another request"):
            one.ask()
    assert len(server.seen) == 1


NOW = datetime(2026, 12, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("refusal", "tried", "taken"),
    [
        (Refusal(0, "refused"), 1, Wait(1.0)),
        (Refusal(0, "refused"), 3, Wait(4.0)),
        (Refusal(429, "", "", "Tue, 01 Dec 2026 12:00:30 GMT"), 1, Wait(30.0)),
        (Refusal(429, "", "", "Tue, 01 Dec 2026 11:00:00 GMT"), 1, Wait(0.0)),
        (Refusal(429, "", "", "soon"), 2, Wait(16.0)),
        (Refusal(429, "", "", "nan"), 1, Wait(4.0)),
        (Refusal(429, "", "", "60"), 1, Wait(60.0)),
        (Refusal(408, ""), 1, Wait(4.0)),
        (Refusal(400, "blocked by content_filter"), 1, Take()),
        (Refusal(400, "Invalid prompt: flagged", "invalid_prompt"), 1, Take()),
        (Refusal(400, "flagged", "misalignment_policy_violation"), 1, Take()),
    ],
)
def test_the_policy_row_by_row(refusal, tried, taken):
    assert decide(refusal, tried, NOW, Model()) == taken


def test_the_policy_stops_beyond_a_minute():
    assert isinstance(decide(Refusal(503, "", "", "61"), 1, NOW, Model()), Stop)


def test_prices_come_with_source_and_date():
    found = listed_prices("gpt-6.1-terra", "2026-12-01")
    assert found.source.startswith("genai-prices ")
    assert (found.date, found.input_usd > found.cached_input_usd > 0) == ("2026-12-01", True)
    assert found.output_usd > found.input_usd
    with pytest.raises(ProposerProblem, match="knows no model 'of-my-own'"):
        listed_prices("of-my-own", "2026-12-01")


def test_an_answer_is_kept_before_it_is_read(desk):
    with serving(responses("nonsense")) as server:
        one = desk(server)
        one.ask()
    (exchange,) = Exchanges(one.folder / "replies").all()
    assert isinstance(exchange.outcome, Answered)
    assert "nonsense" in exchange.outcome.body
    assert isinstance(one.ask()[1], ModelUsage)
