"""The folder of an exported kernel: its files, and the digests that hold them together."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from kerneltrial.commands import loader_runtime
from kerneltrial.commands.loader_text import Part, package_text, plans_text
from kerneltrial.commands.torch_text import tensors_text, torch_package_text
from kerneltrial.records.contract import Contract
from kerneltrial.store.canonical import digest

SUMS = "SHA256SUMS"
Kernels = tuple[Sequence[Part], Mapping[str, bytes]]  # winner and baseline, and their binaries by the file's name
# The driver's errors have no common type; other projects' linters need not agree.
_BLIND = "except Exception as fault:  # "


def write_package(folder: Path, form: Literal["loader", "torch"], about: tuple[Contract, str], kernels: Kernels) -> str:
    """Fill an empty folder; return the SHA-256 of its SHA256SUMS, which names every other file.

    `about`: the contract, and a sentence on where the winner comes from.
    """
    contract, story = about
    parts, binaries = kernels
    for name, content in binaries.items():
        (folder / name).write_bytes(content)
    (folder / "plans.py").write_text(plans_text(contract, parts))
    runtime = Path(loader_runtime.__file__).read_text().replace(_BLIND, f"{_BLIND.rstrip(' #')}  # noqa: BLE001, ")
    (folder / "runtime.py").write_text(runtime)
    if form == "torch":
        (folder / "tensors.py").write_text(tensors_text())
    text = torch_package_text if form == "torch" else package_text
    (folder / "__init__.py").write_text(text(contract, story, digests(folder)))
    sums = "".join(f"{sha256}  {name}\n" for name, sha256 in digests(folder).items())
    (folder / SUMS).write_text(sums)
    return digest(sums.encode())


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file of a folder, by name."""
    return {path.name: digest(path.read_bytes()) for path in sorted(folder.iterdir()) if path.is_file()}
