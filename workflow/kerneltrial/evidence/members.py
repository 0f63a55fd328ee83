"""Which files belong to the evidence of a trial, by their path in the bundle."""

from collections.abc import Iterable
from importlib import resources
from pathlib import Path

from kerneltrial.evidence.problem import EvidenceProblem
from kerneltrial.store.signed import Signed

SUMS, SUMS_SIGNATURE = "SHA256SUMS", "SHA256SUMS.sig"
_LEFT_OUT = frozenset({"private", "logs", "aside"})  # secret until the seal, of no weight, no longer current


def evidence(root: Path, trial: str, sources: Iterable[str]) -> dict[str, Path]:
    """Everything but SHA256SUMS and its signature; `sources` are the trial's locked files, relative to `root`."""
    found: dict[str, Path] = {}
    for folder in (f"results/{trial}", f"reports/{trial}"):
        for path in sorted((root / folder).rglob("*")):
            inside = path.relative_to(root / folder)
            if path.is_symlink():
                raise EvidenceProblem(f"{path}: is a link; evidence holds plain files only: put the file in its place")
            if path.is_file() and inside.parts[0] not in _LEFT_OUT and not path.name.startswith("."):
                found[path.relative_to(root).as_posix()] = path
    signed = Signed(Path("results") / trial)
    for path in (signed.sums, signed.sums_signature):
        found.pop(path.as_posix(), None)
    found |= {path: root / path for path in sources}
    return {**found, **instructions()}


def instructions() -> dict[str, Path]:
    """What tells a stranger how to check a bundle."""
    folder = Path(str(resources.files("kerneltrial.evidence").joinpath("templates")))
    return {name: folder / name for name in ("VERIFY.md", "verify.sh")}


def present(folder: Path) -> dict[str, Path]:
    """Every file under an unpacked bundle but SHA256SUMS and its signature."""
    found = {p.relative_to(folder).as_posix(): p for p in sorted(folder.rglob("*")) if p.is_symlink() or not p.is_dir()}
    for name in (SUMS, SUMS_SIGNATURE):
        found.pop(name, None)
    return found
