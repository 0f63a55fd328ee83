"""The prompts that a model would get after each of the fixture trials, and after the first iteration of one."""

from trial_pieces import Trial
from trial_stories import STORIES

from kerneltrial.propose.history import Iteration
from kerneltrial.propose.prompt.prompt import Known, Prompt, prompt
from kerneltrial.store.canonical import digest

LOGS = b'candidate.cu(41): error: identifier "__pipeline_memcpy_asink" is undefined\n\n1 error detected\n'


def known(trial: Trial, **changes: object) -> Known:
    """What is known of a fixture trial; a log that the story did not write is one of a compiler's."""

    def read(name: str) -> bytes:
        return trial.sources.get(name, LOGS)

    values = {
        "lock": trial.lock,
        "qualification": trial.qualification,
        "baseline_source": 'extern "C" __global__ void matmul(const float* A) {}\n',
        "read": read,
        "environment": {},
    }
    return Known(**{**values, **changes})  # type: ignore[arg-type]


def iterations(trial: Trial) -> list[Iteration]:
    """The records of the trial that a proposer may see."""
    return [
        Iteration(proposal=i.proposal, build=i.build, validation=i.validation, timing=i.timing)
        for i in trial.iterations
    ]


def prompts() -> dict[str, Prompt]:
    """All golden prompts by name."""
    trials = {name: tell() for name, tell in STORIES.items()}
    made = {name: prompt(known(trial), iterations(trial)) for name, trial in trials.items()}
    go = trials["go"]
    return {
        **made,
        "first": prompt(known(go), []),
        "repair": prompt(known(go), iterations(go)[:1]),
        "second_answer": prompt(known(go), iterations(go)[:2], sample=2),
    }


def digest_of(made: Prompt) -> str:
    return digest(made.whole.encode())
