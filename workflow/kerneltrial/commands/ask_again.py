"""`kerneltrial ask-again ITERATION`: have an iteration's proposals asked for anew, although replies are recorded."""

import argparse
from datetime import UTC, datetime
from pathlib import Path

from kerneltrial.commands.configuration import read_config
from kerneltrial.dag import graph, guard
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.propose.openai.budget import Budget
from kerneltrial.propose.openai.exchange import Exchanges
from kerneltrial.records.asked_again import AskedAgain
from kerneltrial.records.lock import Lock
from kerneltrial.records.reason import Reason
from kerneltrial.stages.modelling import REPLIES
from kerneltrial.store import envelopes, journal
from kerneltrial.store.canonical import canonical, decode
from kerneltrial.store.files import write_atomic
from kerneltrial.store.signed import is_sealed

ASKED = ("openai", "command")


def run(given: argparse.Namespace, root: Path) -> int:
    """Journal it and mark the iteration; the next run of the workflow asks, and pays."""
    config, root = read_config(given, root)
    trial, iteration = config.trial, given.iteration
    if config.proposer not in ASKED:
        raise InputProblem(f"ask-again: proposer {config.proposer} asks nobody; it is for {' and '.join(ASKED)}")
    if iteration not in graph.iterations_present(trial, root):
        raise InputProblem(f"ask-again: {graph.results(trial)} has no iteration {iteration}; run the workflow first")
    folder = root / graph.results(trial)
    if is_sealed(folder):
        raise InputProblem(f"ask-again: {graph.results(trial)} is sealed; `kerneltrial lock --new` starts a new trial")
    _require_budget(root, trial)
    if not guard.only_run(folder):
        raise InputProblem(f"{graph.results(trial)}: another run is at work here; wait for it to end")
    again = _again(root, trial, iteration)
    event = {"stage": "propose", "iteration": iteration, "event": "asked_again", "times": again.times}
    when = datetime.now(UTC).isoformat(timespec="milliseconds")
    journal.append(root / graph.fragment_path(trial, "propose", iteration), {**event, "at": when})
    write_atomic(root / graph.again_path(trial, iteration), canonical(again))
    print(f"iteration {iteration} will be asked for anew (sample {again.times + 1}), and so will those after it")
    print("next: snakemake, as before; it pays for the new answers")
    return 0


def _require_budget(root: Path, trial: str) -> None:
    """Raise InputProblem where no answer could be paid for: candidates would be lost, and none come in their place."""
    path = graph.record_path(trial, "lock")
    lock = envelopes.body(Lock, (root / path).read_bytes(), path)
    if lock.proposer != "openai":
        return
    model, replies = lock.model, Exchanges(root / graph.results(trial) / REPLIES)
    used = Budget(model, lock.model_prices).used(replies.all())
    spent = used.calls >= model.budget_calls or used.tokens >= model.budget_tokens or used.usd >= model.budget_usd
    proposals = (graph.record_path(trial, "propose", number) for number in graph.iterations_present(trial, root))
    if spent or any(_ended(root / proposal) for proposal in proposals):
        so_far = f"{used.calls} calls, {used.tokens} tokens, {used.usd:.2f} USD"
        raise InputProblem(
            f"ask-again: the model's budget is spent ({so_far}), so that nothing would come in the place of what is "
            "there; a new trial (`kerneltrial lock --new`) may have a larger one"
        )


def _ended(path: Path) -> bool:
    """Whether a proposal says that the budget is spent."""
    envelope = envelopes.read(path)
    attempts = envelope.body["attempts"] if envelope is not None else ()
    return any(attempt.get("reason") == Reason.BUDGET_SPENT.value for attempt in attempts)


def _again(root: Path, trial: str, iteration: int) -> AskedAgain:
    """One time more than before, with the requests that this supersedes: of this iteration and those after it."""
    marks = {
        path.stem: decode(AskedAgain, path.read_bytes()) for path in (root / graph.results(trial)).glob("again/*.json")
    }
    before = marks.get(f"{iteration:04d}", AskedAgain(iteration=iteration, times=1))
    counted = {name for mark in marks.values() for name in mark.superseded}
    current = [
        name
        for number in graph.iterations_present(trial, root)
        if number >= iteration
        for name in _requests(root / graph.record_path(trial, "propose", number))
        if name not in counted
    ]
    times = before.times + 1 if f"{iteration:04d}" in marks else 1
    return AskedAgain(iteration=iteration, times=times, superseded=(*before.superseded, *current))


def _requests(path: Path) -> tuple[str, ...]:
    envelope = envelopes.read(path)
    return tuple(envelope.body["usage"]["requests"]) if envelope is not None else ()
