"""Ask for the candidates of one iteration, one answer each, and add up what they used."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kerneltrial.propose.openai.budget import Budget
from kerneltrial.propose.openai.exchange import Answered, Exchange, Exchanges, Request, Withheld
from kerneltrial.propose.openai.reply import draft_in, read_reply
from kerneltrial.propose.openai.request import request_of
from kerneltrial.propose.prompt.prompt import Prompt
from kerneltrial.propose.proposer import Draft
from kerneltrial.propose.reply_schema import reply_schema
from kerneltrial.records.proposal import ModelUsage, Unusable
from kerneltrial.records.reason import Reason
from kerneltrial.records.record import Digest
from kerneltrial.store.canonical import canonical
from kerneltrial.store.objects import Objects


class Source(Protocol):
    """Where answers come from: a server, or a recording."""

    @property
    def exchanges(self) -> Exchanges: ...

    def answer(self, request: Request) -> Exchange:
        """Return the exchange of a request."""


@dataclass(frozen=True)
class Asking:
    """How a trial asks: whom, within what, for which languages. Requests and replies become objects."""

    source: Source
    budget: Budget
    languages: tuple[str, ...]
    objects: Objects

    def ask(
        self, prompts: Iterable[Prompt], first_sample: int, superseded: Sequence[Digest] = ()
    ) -> tuple[list[Draft | Unusable], ModelUsage]:
        """Return a draft for each prompt and the usage; fewer, the last BUDGET_SPENT, where the budget ends it.

        `superseded` are requests whose answers were paid for and are no longer in force: the usage holds them too.
        """
        schema = reply_schema(self.languages)
        drafts: list[Draft | Unusable] = []
        exchanges: list[Exchange] = []
        for number, prompt in enumerate(prompts):
            request = request_of(self.budget.model, prompt, schema, first_sample + number)
            exchange = self.source.answer(request)
            if isinstance(exchange.outcome, Withheld):
                drafts.append(Unusable(reason=Reason.BUDGET_SPENT, detail=exchange.outcome.detail))
                break
            exchanges.append(exchange)
            drafts.append(draft_in(read_reply(exchange), self.languages, prompt.parents))
        before = (self.source.exchanges.find(name) for name in superseded)
        return drafts, self._usage([*exchanges, *(exchange for exchange in before if exchange is not None)])

    def _usage(self, exchanges: Sequence[Exchange]) -> ModelUsage:
        tokens = [read_reply(exchange).tokens for exchange in exchanges]
        return ModelUsage(
            requests=tuple(self.objects.put(canonical(exchange.request)) for exchange in exchanges),
            replies=tuple(self.objects.put(_body(exchange)) for exchange in exchanges),
            input_tokens=sum(t.input for t in tokens),
            cached_tokens=sum(t.cached for t in tokens),
            output_tokens=sum(t.output for t in tokens),
            reasoning_tokens=sum(t.reasoning for t in tokens),
            cache_write_tokens=sum(t.cache_write for t in tokens),
        )


def _body(exchange: Exchange) -> bytes:
    return exchange.outcome.body.encode() if isinstance(exchange.outcome, Answered) else b""
