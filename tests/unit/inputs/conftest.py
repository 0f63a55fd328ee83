"""Files of a small trial that tests change, one thing at a time."""

import shutil
from pathlib import Path

import pytest
import yaml

CLONE = Path(__file__).resolve().parents[3]


class TrialFolder:
    """A copy of the shipped matmul trial."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("kernels/matmul_f32", "cases/matmul_f32"):
            shutil.copytree(CLONE / name, folder / name)
        shutil.copy(CLONE / "config.yaml", folder)
        self.config = yaml.safe_load((folder / "config.yaml").read_text())

    def path(self, name: str) -> Path:
        return self.folder / name

    def edit(self, name: str, **changes: object) -> None:
        """Change keys of a YAML file; `a__b` is key b of key a."""
        document = yaml.safe_load(self.path(name).read_text())
        for key, value in changes.items():
            *sections, last = key.split("__")
            target = document
            for section in sections:
                target = target[int(section) if section.isdigit() else section]
            target[int(last) if last.isdigit() else last] = value
        self.path(name).write_text(yaml.safe_dump(document, sort_keys=False))


@pytest.fixture
def trial(tmp_path: Path) -> TrialFolder:
    return TrialFolder(tmp_path)
