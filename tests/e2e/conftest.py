"""A tiny trial on `cpu` with candidates of every fate, run by the real Snakemake with the real NVRTC."""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

CLONE = Path(__file__).resolve().parents[2]
PACKAGE = CLONE / "workflow"
ITERATIONS = 3

GOOD = """extern "C" __global__ void scale_add(const float* x, const float* y, float* out, int n, float alpha) {{
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    out[i] = fmaf(alpha, x[i], y[i]);
}}
// variant {number}
"""
CANDIDATES = {
    "a_broken": 'extern "C" __global__ void scale_add(const float* x) { this is not C++; }\n',
    "b_wrong": GOOD.replace("fmaf(alpha, x[i], y[i])", "alpha * x[i]").format(number=0),
    "c_wide": GOOD.format(number=1),
    "d_same": GOOD.format(number=1),
    "e_more": GOOD.format(number=2),
    "f_hangs": GOOD.replace("i += gridDim.x * blockDim.x", "i += 0").format(number=0),
    "g_last": GOOD.format(number=3),
}
PLAN = {"variants": [{"launches": [{"entry": "scale_add", "grid": ["4", "1", "1"], "block": ["128", "1", "1"],
                                    "args": ["x", "y", "out", "n", "alpha"]}]}]}  # fmt: skip


@dataclass
class Trial:
    """A folder with a trial, and how to run it."""

    folder: Path
    package: Path = PACKAGE

    @property
    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("KERNELTRIAL", "SNAKEMAKE"))}
        return {**kept, "PYTHONPATH": str(self.package), "XDG_CACHE_HOME": str(self.folder / ".cache")}

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "snakemake", "--cores", "2", *arguments]

    def snakemake(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments), cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=300
        )

    def run(self, *arguments: str) -> Counter[str]:
        """Run to the end; the number of jobs by rule."""
        done = self.snakemake(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return jobs(done)

    def kerneltrial(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "kerneltrial", *arguments],
            cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=300,
        )  # fmt: skip

    @property
    def results(self) -> Path:
        return self.folder / "results" / "tiny"

    def records(self) -> dict[str, bytes]:
        """Bytes of all records by path."""
        paths = [*self.results.glob("*.json"), *self.results.glob("iterations/*/*.json")]
        return {str(p.relative_to(self.folder)): p.read_bytes() for p in paths if p.name != "config.json"}

    def measurements(self) -> dict[str, tuple[int, bytes]]:
        """Inode and bytes of all stored measurements: a measurement that is made again is a new file."""
        paths = self.results.glob("measurements/*.json")
        return {p.name: (p.stat().st_ino, p.read_bytes()) for p in paths}

    def config(self, **changes: object) -> None:
        """Change keys of config.yaml; a dotted key goes by `section__key`."""
        path = self.folder / "config.yaml"
        document = yaml.safe_load(path.read_text())
        for key, value in changes.items():
            *sections, last = key.split("__")
            target = document
            for section in sections:
                target = target[section]
            target[last] = value
        path.write_text(yaml.safe_dump(document, sort_keys=False))

    def copy(self, folder: Path) -> "Trial":
        shutil.copytree(self.folder, folder, symlinks=True)
        return Trial(folder, self.package)


def jobs(done: subprocess.CompletedProcess[str]) -> Counter[str]:
    """Jobs that Snakemake started, by rule."""
    return Counter(re.findall(r"^(?:local)?rule (\w+):", done.stdout + done.stderr, re.MULTILINE))


def make(folder: Path, package: Path = PACKAGE) -> Trial:
    """A fresh tiny trial made by `kerneltrial init`, with candidates of every fate."""
    trial = Trial(folder, package)
    folder.mkdir()
    made = trial.kerneltrial("init", "trial")
    assert made.returncode == 0, made.stderr
    trial.folder = folder / "trial"
    candidates = trial.folder / "kernels/scale_add/candidates"
    shutil.rmtree(candidates)
    candidates.mkdir()
    for name, source in CANDIDATES.items():
        (candidates / f"{name}.cu").write_text(source)
        (candidates / f"{name}.plan.yaml").write_text(yaml.safe_dump(PLAN))
    trial.config(trial="tiny", device="cpu", proposer="files", candidates_per_iteration=1, iterations=ITERATIONS)
    (trial.folder / "cases/scale_add/cases.yaml").write_text(
        "cases:\n"
        "  - {name: ragged, kind: correctness, dimensions: {n: 103}, seed: 1}\n"
        "  - {name: large, kind: performance, dimensions: {n: 2048}, seed: 2}\n"
    )
    trial.config(protocol__boundary_shapes=3, protocol__budget_instructions=20_000_000)  # what hangs is told at once
    return trial


def ssh_key(folder: Path, name: str) -> Path:
    """A fresh key; the public half lies beside it."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)], check=True)
    return folder / name


def signer_line(name: str, namespaces: str, key: Path) -> str:
    """A line of an allowed_signers file."""
    kind, text, *_ = Path(f"{key}.pub").read_text().split()
    return f'{name} namespaces="{namespaces}" {kind} {text}\n'


@pytest.fixture(scope="session")
def make_trial() -> Callable[[Path], Trial]:
    """`make`, for modules that want a trial of their own."""
    return make


@pytest.fixture
def clone(tmp_path: Path) -> Trial:
    """What a clone needs for the default trial, in a folder of its own, to be changed."""
    for name in ("kernels/matmul_f32", "cases/matmul_f32", "profiles", "workflow/rules"):
        shutil.copytree(CLONE / name, tmp_path / name)
    for name in ("Snakefile", "config.yaml"):
        shutil.copy(CLONE / name, tmp_path)
    return Trial(tmp_path)


@pytest.fixture(scope="session")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with keys of a reviewer, the team and a stranger, and `signers`, the reader's own file of keys."""
    folder = tmp_path_factory.mktemp("people")
    reviewer, team, _ = (ssh_key(folder, name) for name in ("reviewer", "team", "stranger"))
    of_team = signer_line("team@example.org", "kerneltrial-seal,kerneltrial-lock", team)
    (folder / "signers").write_text(signer_line("rita@example.org", "kerneltrial-receipt", reviewer) + of_team)
    return folder


def with_receipt(trial: Trial, people: Path) -> None:
    """Lock, hand the page to the reviewer, take the receipt in: what a team does before the first proposal."""
    (trial.folder / "keys").mkdir()
    reviewers = signer_line("rita@example.org", "kerneltrial-receipt", people / "reviewer")
    (trial.folder / "keys/reviewers").write_text(reviewers)
    trial.config(reviewers="keys/reviewers")
    locked = trial.kerneltrial("lock", "--sign", str(people / "team"))
    assert locked.returncode == 0, locked.stderr
    page = people / "lock-page.txt"
    shutil.copyfile(trial.results / "signed/lock-page.txt", page)
    signing = ["ssh-keygen", "-q", "-Y", "sign", "-n", "kerneltrial-receipt", "-f", str(people / "reviewer"), str(page)]
    (people / "lock-page.txt.sig").unlink(missing_ok=True)
    subprocess.run(signing, check=True, capture_output=True)
    received = trial.kerneltrial("receipt", str(people / "lock-page.txt.sig"))
    assert received.returncode == 0, received.stderr


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, people: Path) -> Trial:
    """A trial with a receipt that ran to its end; never changed, only copied."""
    trial = make(tmp_path_factory.mktemp("finished") / "home")
    with_receipt(trial, people)
    ran = trial.run()
    assert ran["propose"] == ITERATIONS
    return trial


@pytest.fixture(scope="session")
def sealed(finished: Trial, people: Path, tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """A copy of it, sealed and bundled as `bundle.tar`; never changed, only copied."""
    trial = finished.copy(tmp_path_factory.mktemp("sealed") / "trial")
    for command in (("seal", "--sign", str(people / "team")), ("bundle", "--out", "bundle.tar")):
        done = trial.kerneltrial(*command)
        assert done.returncode == 0, done.stderr
    return trial


@pytest.fixture
def trial(finished: Trial, tmp_path: Path) -> Trial:
    """A copy of the finished trial, to be changed."""
    return finished.copy(tmp_path / "trial")


@pytest.fixture
def fresh(tmp_path: Path) -> Trial:
    """A tiny trial that has not run yet."""
    return make(tmp_path / "fresh")
