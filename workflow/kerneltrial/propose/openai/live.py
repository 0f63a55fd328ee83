"""Answers from a server: what was answered before is found again, what was not is asked within the budget.

A request is journalled before it is sent, and its reply is stored before anything else is done with it.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from kerneltrial.propose.openai.budget import Budget
from kerneltrial.propose.openai.exchange import Answered, Exchange, Exchanges, Request, Withheld
from kerneltrial.propose.openai.policy import Refusal, Stop, Take, Wait, decide, failed_within, refusal_of
from kerneltrial.propose.openai.reply import is_reply, model_in
from kerneltrial.propose.openai.transport import Answer, Lost, Post
from kerneltrial.propose.problem import ProposerProblem
from kerneltrial.propose.prompt.scrub import scrub
from kerneltrial.records.record import Digest


@dataclass(frozen=True)
class Diary:
    """The journal as this module needs it: `note` an event, and count the trial's tries without answer, by request."""

    note: Callable[[dict[str, Any]], None]
    unanswered: Callable[[], Mapping[Digest, int]]


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
            lost, given_up = self._unanswered(request)
            refused = self.budget.refusal(used, request, lost + given_up)
            if refused:
                return self.exchanges.keep(Exchange(request=request, outcome=Withheld(detail=refused)))
            post = self._post
            tried += 1
            answer = self._try(post, request, tried)
            if isinstance(answer, Answer):
                outcome = Answered(status=answer.status, body=answer.body, lost=lost, cut=answer.cut)
                kept = self.exchanges.keep(Exchange(request=request, outcome=outcome))
                # Only now: one that was killed before has an answer that counts as lost, and one after has the answer.
                self.diary.note({"request": request.digest, "try": tried, "event": "answered", **_of(answer)})
                return kept
            self._after(answer, tried)

    def _unanswered(self, request: Request) -> tuple[int, int]:
        """Tries without an answer: of this request, and of others that were not asked again (`ask-again`, a kill).

        Those of requests that were answered in the end are counted with the answer.
        """
        counts = self.diary.unanswered()
        own = counts.get(request.digest, 0)
        others = (n for name, n in counts.items() if name != request.digest and self.exchanges.find(name) is None)
        return own, sum(others)

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
            return answer
        refusal = refusal_of(failed or answer.status, answer.headers, scrub(answer.body[:20_000]))
        if answer.status == 200 and not failed:  # whoever it was may have charged for it
            self.diary.note({**event, "event": "lost", "message": "it is no reply of the API"})
            raise ProposerProblem(
                f"{self.budget.model.base_url or 'OpenAI'}: answers with what is no reply of the API "
                f"({refusal.message[:80]!r}); correct model.base_url, which often ends in /v1"
            )
        if isinstance(decide(refusal, tried, datetime.now(UTC), self.budget.model), Take):
            return answer
        self.diary.note({**event, "event": "refused", "status": answer.status, "code": refusal.code})
        return refusal

    def _after(self, refusal: Refusal, tried: int) -> None:
        """Wait, or stop with a line for a person."""
        taken = decide(refusal, tried, datetime.now(UTC), self.budget.model)
        if isinstance(taken, Stop):
            raise ProposerProblem(taken.line)
        if isinstance(taken, Wait):
            self.sleep(taken.seconds)


def _of(answer: Answer) -> dict[str, Any]:
    """What is journalled of an answer: a server may have taken another model than it was asked for."""
    return {"status": answer.status, "model": scrub(model_in(answer.body))[:100]}
