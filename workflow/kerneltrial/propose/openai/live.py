"""Answers from a server: what was answered before is found again, what was not is asked within the budget.

A request is journalled before it is sent, and its reply is stored before anything else is done with it.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from kerneltrial.propose.openai.budget import Budget
from kerneltrial.propose.openai.exchange import Answered, Exchange, Exchanges, Request, Withheld
from kerneltrial.propose.openai.policy import Refusal, Stop, Take, Wait, decide, failed_within, refusal_of
from kerneltrial.propose.openai.reply import is_reply
from kerneltrial.propose.openai.transport import Answer, Lost, Post
from kerneltrial.propose.problem import ProposerProblem
from kerneltrial.propose.prompt.scrub import scrub
from kerneltrial.records.record import Digest


@dataclass(frozen=True)
class Diary:
    """The journal as this module needs it: `note` an event, and count the tries of a request that got no answer."""

    note: Callable[[dict[str, Any]], None]
    unanswered: Callable[[Digest], int]


@dataclass(frozen=True)
class Live:
    """Asks a server. `connect` gives what sends, and is called only where something has to be sent."""

    exchanges: Exchanges
    budget: Budget
    diary: Diary
    connect: Callable[[], Post]
    sleep: Callable[[float], None] = time.sleep

    @cached_property
    def _post(self) -> Post:
        """One connection for all answers: to make one takes a tenth of a second."""
        return self.connect()

    def answer(self, request: Request) -> Exchange:
        """Return the exchange of a request; everything that is recorded counts against the budget.

        Raises
        ------
        ProposerProblem
            No key, or the server does not answer as a model would: one line says what to do.
        """
        found = self.exchanges.find(request.digest)
        if found is not None:
            return found
        used = self.budget.used(self.exchanges.all())
        tried = 0
        while True:
            lost = self.diary.unanswered(request.digest)
            refused = self.budget.refusal(used, request, lost)
            if refused:
                return self.exchanges.keep(Exchange(request=request, outcome=Withheld(detail=refused)))
            post = self._post
            tried += 1
            answer = self._try(post, request, tried)
            if isinstance(answer, Answer):
                outcome = Answered(status=answer.status, body=answer.body, lost=lost, cut=answer.cut)
                return self.exchanges.keep(Exchange(request=request, outcome=outcome))
            self._after(answer, tried)

    def _try(self, post: Post, request: Request, tried: int) -> Answer | Refusal:
        event = {"request": request.digest, "try": tried}
        self.diary.note({**event, "event": "sent"})
        try:
            answer = post(request)
        except Lost as fault:
            message = scrub(str(fault))[:200]
            self.diary.note({**event, "event": "lost", "message": message})
            return Refusal(0, message)
        failed = failed_within(answer.body) if answer.status == 200 and not answer.cut else 0
        if answer.status == 200 and not failed and (answer.cut or is_reply(answer.body)):
            self.diary.note({**event, "event": "answered", "status": answer.status})
            return answer
        refusal = refusal_of(failed or answer.status, answer.headers, scrub(answer.body[:20_000]))
        self.diary.note({**event, "event": "refused", "status": answer.status, "code": refusal.code})
        if answer.status == 200 and not failed:
            raise ProposerProblem(
                f"{self.budget.model.base_url or 'OpenAI'}: answers with what is no reply of the API "
                f"({refusal.message[:80]!r}); correct model.base_url, which often ends in /v1"
            )
        taken = decide(refusal, tried, datetime.now(UTC), self.budget.model)
        return answer if isinstance(taken, Take) else refusal

    def _after(self, refusal: Refusal, tried: int) -> None:
        """Wait, or stop with a line for a person."""
        taken = decide(refusal, tried, datetime.now(UTC), self.budget.model)
        if isinstance(taken, Stop):
            raise ProposerProblem(taken.line)
        if isinstance(taken, Wait):
            self.sleep(taken.seconds)
