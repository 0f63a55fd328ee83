"""Which files belong to the evidence of a trial, by their path in the bundle."""

from collections.abc import Iterable
from importlib import resources
from pathlib import Path

from kerneltrial.evidence.problem import EvidenceProblem
from kerneltrial.store.signed import Signed

SUMS, SUMS_SIGNATURE = "SHA256SUMS", "SHA256SUMS.sig"
# Secret until the seal, of no weight, no longer current, and machine code, which nobody should run who did not make it.
_LEFT_OUT = frozenset({"private", "logs", "aside", "cache"})
_LOADER = "_loader"  # the end of the name of a folder that `export loader` writes beside a report


def evidence(root: Path, trial: str, sources: Iterable[str]) -> dict[str, Path]:
    """Everything but SHA256SUMS and its signature; `sources` are the trial's locked files, relative to `root`."""
    found: dict[str, Path] = {}
    for folder in (f"results/{trial}", f"reports/{trial}"):
        for path in sorted((root / folder).rglob("*")):
            inside = path.relative_to(root / folder)
            if path.is_symlink():
                raise EvidenceProblem(f"{path}: is a link; evidence holds plain files only: put the file in its place")
            if path.is_file() and _belongs(folder, inside) and not path.name.startswith("."):
                found[path.relative_to(root).as_posix()] = path
    signed = Signed(Path("results") / trial)
    for path in (signed.sums, signed.sums_signature, *(signed.folder / name for name in instructions())):
        found.pop(path.as_posix(), None)
    found |= {path: root / path for path in sources}
    kept = {name: root / signed.folder / name for name in instructions()}
    return {**found, **instructions(), **{name: path for name, path in kept.items() if path.is_file()}}


def _belongs(folder: str, inside: Path) -> bool:
    if folder.startswith("reports/"):
        return len(inside.parts) == 1 or not is_exported(inside)
    return inside.parts[0] not in _LEFT_OUT


def is_exported(inside: Path) -> bool:
    """Whether a path in the folder of reports is that of a loader, which follows from the evidence."""
    return inside.parts != () and inside.parts[0].endswith(_LOADER)


def foreign(files: Iterable[str], trial: str) -> list[str]:
    """Paths of a bundle that no bundle holds, whatever its SHA256SUMS names."""
    return [path for path in files for folder in _LEFT_OUT if path.startswith(f"results/{trial}/{folder}/")]


def instructions() -> dict[str, Path]:
    """What tells a stranger how to check a bundle, as this kerneltrial has it.

    The seal keeps its own beside the signatures: a later kerneltrial may have other ones, and SHA256SUMS names those.
    """
    folder = Path(str(resources.files("kerneltrial.evidence").joinpath("templates")))
    return {name: folder / name for name in ("VERIFY.md", "verify.sh")}


def present(folder: Path) -> dict[str, Path]:
    """Every file under an unpacked bundle but SHA256SUMS and its signature."""
    found = {p.relative_to(folder).as_posix(): p for p in sorted(folder.rglob("*")) if p.is_symlink() or not p.is_dir()}
    for name in (SUMS, SUMS_SIGNATURE):
        found.pop(name, None)
    return found
