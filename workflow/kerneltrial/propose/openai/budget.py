"""The budget in calls, tokens and dollars, held against a request's worst case before it is sent."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, localcontext

from kerneltrial.propose.openai.exchange import Answered, Exchange, Request
from kerneltrial.propose.openai.reply import Tokens, read_reply
from kerneltrial.propose.openai.request import most_input_tokens
from kerneltrial.records.asking import Model
from kerneltrial.records.terms import ModelPrices, NoModelPrices

_PER_MILLION = Decimal("1E-6")


@dataclass(frozen=True)
class Spending:
    """What was used: answers asked for, tokens in and out, dollars."""

    calls: int = 0
    tokens: int = 0
    usd: Decimal = Decimal(0)

    def plus(self, other: "Spending") -> "Spending":
        return Spending(self.calls + other.calls, self.tokens + other.tokens, self.usd + other.usd)


@dataclass(frozen=True)
class Budget:
    """A model's bounds and the prices that its dollars are reckoned in."""

    model: Model
    prices: ModelPrices | NoModelPrices

    def worst(self, request: Request) -> Spending:
        """The most that one try of a request can use: nothing cached, all input written to the cache, all output."""
        most = most_input_tokens(request)
        tokens = Tokens(input=most, cache_write=most, output=self.model.max_output_tokens)
        return Spending(1, tokens.input + tokens.output, charge(tokens, self.prices))

    def used(self, exchanges: Iterable[Exchange]) -> Spending:
        """What exchanges used; tries that were lost before an answer came count at their worst."""
        total = Spending()
        for exchange in exchanges:
            if not isinstance(exchange.outcome, Answered):
                continue
            tokens = read_reply(exchange).tokens
            total = total.plus(Spending(1, tokens.input + tokens.output, charge(tokens, self.prices)))
            for _ in range(exchange.outcome.lost):
                total = total.plus(self.worst(exchange.request))
        return total

    def refusal(self, used: Spending, request: Request, lost: int) -> str:
        """Why the request may not be sent (`lost` tries of it got no answer), or an empty text."""
        model, worst = self.model, self.worst(request)
        sure = used
        for _ in range(lost):
            sure = sure.plus(worst)
        if sure.calls + worst.calls > model.budget_calls:
            return f"{sure.calls} of {model.budget_calls} calls were made"
        if sure.tokens + worst.tokens > model.budget_tokens:
            more = f"the next call may use {worst.tokens} more"
            return f"{sure.tokens} of {model.budget_tokens} tokens were used, and {more}"
        if sure.usd + worst.usd > model.budget_usd:
            more = f"the next call may cost {worst.usd:.6f} more"
            return f"{sure.usd:.6f} of {model.budget_usd} USD were used, and {more}"
        return ""


def charge(tokens: Tokens, prices: ModelPrices | NoModelPrices) -> Decimal:
    """US dollars for an answer, exactly; nothing where there is no price (a model of one's own)."""
    if isinstance(prices, NoModelPrices):
        return Decimal(0)
    with localcontext() as context:
        context.prec = 60
        fresh = (tokens.input - tokens.cached) * prices.input_usd + tokens.cached * prices.cached_input_usd
        written = tokens.cache_write * prices.cache_write_extra_usd
        return (fresh + written + tokens.output * prices.output_usd) * _PER_MILLION
