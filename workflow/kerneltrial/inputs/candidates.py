"""A folder of candidates as the proposer `files` takes it: `NAME.cu` or `NAME.py`, each with `NAME.plan.yaml`.

And the languages of what is proposed, held against those that the config admits.
"""

from collections.abc import Sequence
from pathlib import Path

from kerneltrial.inputs.documents import read_document
from kerneltrial.inputs.plans import plan_path
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.records.candidate import Language

LANGUAGES: dict[str, Language] = {".cu": "cuda_cpp", ".py": "numba_cuda"}


def kernels(folder: Path) -> tuple[Path, ...]:
    """Return the kernels that lie in `folder` itself, in order of name; raises `OSError` where it cannot be listed."""
    return tuple(sorted(path for path in folder.iterdir() if path.suffix in LANGUAGES and path.is_file()))


def check_candidates(name: str, root: Path, languages: Sequence[str]) -> None:
    """Raise `InputProblem` where the folder `name` under `root` holds no kernel, or one without plan or admission.

    What a plan says is not looked at: a candidate whose plan is wrong is a finding of the trial.
    """
    try:
        found = kernels(root / name)
    except OSError as fault:
        raise InputProblem(f"candidates: {name} cannot be listed ({fault.strerror})") from None
    if not found:
        raise InputProblem(f"candidates: {name} holds no NAME.cu or NAME.py; put one there, with its NAME.plan.yaml")
    for kernel in found:
        _admit(f"candidates: {name}/{kernel.name}", LANGUAGES[kernel.suffix], languages)
        if not plan_path(kernel).is_file():
            raise InputProblem(
                f"candidates: {name}/{kernel.name} has no {plan_path(kernel).name} beside it, which says how it is "
                "launched; write it, or take the kernel away"
            )


def check_space_language(name: str, root: Path, languages: Sequence[str]) -> None:
    """Raise `InputProblem` where the space `name` under `root` is written in a language that is not admitted."""
    document = read_document(root / name)
    language = document.get("language", "cuda_cpp") if isinstance(document, dict) else "cuda_cpp"
    _admit(f"space: {name}", str(language), languages)


def _admit(what: str, language: str, languages: Sequence[str]) -> None:
    if language not in languages:
        wanted = ", ".join([*languages, language])
        raise InputProblem(f"{what} is {language}, which the config does not admit; set languages: [{wanted}]")
