import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "golden"))


def _key(folder, name):
    import subprocess

    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)], check=True)
    return folder / name


class People:
    """A reviewer, the team, a stranger; and the file of keys that the reader brings."""

    def __init__(self, folder):
        self.folder = folder
        self.reviewer, self.team, self.stranger = (_key(folder, name) for name in ("reviewer", "team", "stranger"))

    def keys(self, *lines):
        """An allowed_signers file; each line is (name, options, key)."""
        path = self.folder / "keys"
        text = [f"{name} {options} {Path(f'{key}.pub').read_text().strip()}" for name, options, key in lines]
        path.write_text("\n".join(text) + "\n")
        return path

    @property
    def usual(self):
        return self.keys(
            ("rita@example.org", 'namespaces="kerneltrial-receipt"', self.reviewer),
            ("team@example.org", 'namespaces="kerneltrial-seal,kerneltrial-lock"', self.team),
        )


@pytest.fixture(scope="session")
def people(tmp_path_factory):
    return People(tmp_path_factory.mktemp("keys"))
