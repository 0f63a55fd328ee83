"""Where signatures, receipt and seal of a trial lie: `signed/` in its results folder."""

from dataclasses import dataclass
from pathlib import Path

from kerneltrial.store.canonical import digest


@dataclass(frozen=True)
class Signed:
    """Paths of what is signed and of the signatures; `results` is the trial's results folder."""

    results: Path

    @property
    def folder(self) -> Path:
        return self.results / "signed"

    @property
    def page(self) -> Path:
        """What the reviewer reads and signs."""
        return self.folder / "lock-page.txt"

    @property
    def lock_signature(self) -> Path:
        """The team's own, over the page."""
        return self.folder / "lock-page.txt.lock.sig"

    @property
    def receipt_signature(self) -> Path:
        """The reviewer's, over the page."""
        return self.folder / "lock-page.txt.receipt.sig"

    @property
    def receipt(self) -> Path:
        return self.folder / "receipt.json"

    @property
    def seal(self) -> Path:
        return self.folder / "seal.json"

    @property
    def sums(self) -> Path:
        """The digests of all files of the evidence; what the seal's signature is over."""
        return self.folder / "SHA256SUMS"

    @property
    def sums_signature(self) -> Path:
        return self.folder / "SHA256SUMS.sig"

    def receipt_digest(self) -> str:
        """The digest of the receipt, empty where there is none."""
        return digest(self.receipt.read_bytes()) if self.receipt.is_file() else ""


def is_sealed(results: Path) -> bool:
    """Whether the trial is over: nothing in its folder may change any more."""
    return Signed(results).seal.is_file()
