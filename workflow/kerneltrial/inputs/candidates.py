"""A folder of candidates as the proposer `files` takes it: `NAME.cu` or `NAME.py`, each with `NAME.plan.yaml`."""

from pathlib import Path

from kerneltrial.inputs.plans import plan_path
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.records.candidate import Language

LANGUAGES: dict[str, Language] = {".cu": "cuda_cpp", ".py": "numba_cuda"}


def kernels(folder: Path) -> tuple[Path, ...]:
    """Return the kernels that lie in `folder` itself, in order of name; raises `OSError` where it cannot be listed."""
    return tuple(sorted(path for path in folder.iterdir() if path.suffix in LANGUAGES and path.is_file()))


def check_candidates(name: str, root: Path) -> None:
    """Raise `InputProblem` where the folder `name` under `root` holds no kernel, or a kernel's plan is missing.

    What a plan says is not looked at: a candidate whose plan is wrong is a finding of the trial.
    """
    try:
        found = kernels(root / name)
    except OSError as fault:
        raise InputProblem(f"candidates: {name} cannot be listed ({fault.strerror})") from None
    if not found:
        raise InputProblem(f"candidates: {name} holds no NAME.cu or NAME.py; put one there, with its NAME.plan.yaml")
    for kernel in found:
        if not plan_path(kernel).is_file():
            raise InputProblem(
                f"candidates: {name}/{kernel.name} has no {plan_path(kernel).name} beside it, which says how it is "
                "launched; write it, or take the kernel away"
            )
