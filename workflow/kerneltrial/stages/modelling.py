"""What the propose stage hands to a language model's proposer: prompts from records, replies, journal, budget."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kerneltrial.dag.graph import again_path, fragment_path
from kerneltrial.propose.history import Iteration
from kerneltrial.propose.openai.asking import Asking, Source
from kerneltrial.propose.openai.budget import Budget
from kerneltrial.propose.openai.exchange import Exchanges
from kerneltrial.propose.openai.live import Diary, Live
from kerneltrial.propose.openai.transport import key_of, poster
from kerneltrial.propose.prompt.prompt import Known, prompt
from kerneltrial.propose.proposer import Draft
from kerneltrial.propose.replay import Replay
from kerneltrial.records.asked_again import AskedAgain
from kerneltrial.records.lock import Lock
from kerneltrial.records.proposal import ModelUsage, Unusable
from kerneltrial.records.qualification import Qualification
from kerneltrial.records.record import Digest
from kerneltrial.stages.job import Job
from kerneltrial.store import journal
from kerneltrial.store.canonical import decode

REPLIES = "replies"
_TRIES = {"sent": 1, "answered": -1, "refused": -1}  # what each event adds to the tries that got no answer


def ask_model(job: Job, lock: Lock, iterations: Sequence[Iteration]) -> tuple[list[Draft | Unusable], ModelUsage]:
    """Ask for this iteration's candidates: a server, or a recording where the lock says `replay`."""
    budget = Budget(lock.model, lock.model_prices)
    source: Source = Replay(job.source("replies").parent) if lock.proposer == "replay" else _live(job, budget)
    count = lock.candidates_per_iteration
    prompts = (prompt(known(job, lock), iterations, sample) for sample in range(1, count + 1))
    asking = Asking(source, budget, lock.languages, job.objects)
    again = asked_again(job)
    return asking.ask(prompts, again.times * count if again else 0, again.superseded if again else ())


def known(job: Job, lock: Lock) -> Known:
    """What a prompt is made from: nothing of the holdout is in it."""
    return Known(
        lock=lock,
        qualification=job.record("qualify", Qualification),
        baseline_source=_text(job.source("baseline")),
        read=job.objects.get,
        folders=(job.root,),
    )


def _text(path: Path) -> str:
    """The baseline's source; one that is given as a binary has none here."""
    return path.read_text(encoding="utf-8") if path.suffix == ".cu" else "(given as a binary: its source is not here)"


def asked_again(job: Job) -> AskedAgain | None:
    """What `kerneltrial ask-again` left for this iteration; in a replay, for that of the trial it replays."""
    path = job.root / again_path(job.trial, job.iteration)
    if job.sources["replies"]:
        path = job.source("replies").parents[1] / "again" / path.name
    return decode(AskedAgain, path.read_bytes()) if path.is_file() else None


def note_of(job: Job) -> Callable[[dict[str, Any]], None]:
    """What adds an event to the journal of this iteration's proposal, with its time."""
    fragment = _fragment(job)

    def note(event: dict[str, Any]) -> None:
        when = datetime.now(UTC).isoformat(timespec="milliseconds")
        journal.append(fragment, {"stage": "propose", "iteration": job.iteration, "at": when, **event})

    return note


def _fragment(job: Job) -> Path:
    return job.root / fragment_path(job.trial, "propose", job.iteration)


def _live(job: Job, budget: Budget) -> Live:
    model = budget.model

    def unanswered() -> Counter[Digest]:
        tries = Counter[Digest]()
        for path in sorted(_fragment(job).parent.glob("propose-*.jsonl")):
            for event in (line.event for line in journal.read(path)):
                tries[str(event.get("request"))] += _TRIES.get(str(event.get("event")), 0)
        return tries

    return Live(
        Exchanges(job.folder / REPLIES),
        budget,
        Diary(note_of(job), unanswered),
        lambda: poster(model, key_of(model)),
    )
