"""How a proposer is asked: a language model with its budget, or an external program. Locked with the trial."""

from decimal import Decimal
from typing import Annotated, Literal

from msgspec import Meta

from kerneltrial.records.record import LARGEST, Positive, Record, within

Effort = Literal["", "none", "minimal", "low", "medium", "high", "xhigh", "max"]


class Model(Record):
    """A language model behind OpenAI's API or a compatible server.

    `base_url` is empty for OpenAI. `api` `auto` is the Responses API there and Chat Completions elsewhere; `chat_json`
    and `chat_text` are Chat Completions of a server that knows no schemas: any JSON object is asked for, or any text.
    The key stands in the environment variable that `key_variable` names, and nowhere else. `timeout_s` bounds a whole
    answer.
    Budgets bound the whole trial: answers asked for, input and output tokens together, US dollars.
    """

    name: Annotated[str, Meta(min_length=1, max_length=200)] = "gpt-6.1-terra"
    base_url: Annotated[str, Meta(max_length=500)] = ""
    api: Literal["auto", "responses", "chat", "chat_json", "chat_text"] = "auto"
    key_variable: Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}(?!\n)$")] = "OPENAI_API_KEY"
    effort: Effort = "medium"
    max_output_tokens: Annotated[int, Meta(ge=256, le=1_000_000)] = 32_000
    timeout_s: Annotated[int, Meta(ge=1, le=3600)] = 900
    budget_calls: Positive = 100
    budget_tokens: Positive = 5_000_000
    budget_usd: Decimal = Decimal(20)

    def __post_init__(self) -> None:
        within("budget_usd", self.budget_usd, "0", "1000000")


class Command(Record):
    """An external program that proposes: its words, and the bounds of one run of it.

    `tries` is how many drafts it may have judged in one run; each is an attempt.
    """

    words: Annotated[tuple[str, ...], Meta(max_length=64)] = ()
    wall_s: Annotated[int, Meta(ge=1, le=86_400)] = 900
    cpu_s: Annotated[int, Meta(ge=1, le=86_400)] = 900
    memory_bytes: Annotated[int, Meta(ge=2**26, le=LARGEST)] = 4 * 2**30
    processes: Annotated[int, Meta(ge=2, le=4096)] = 64
    tries: Annotated[int, Meta(ge=0, le=100)] = 10
