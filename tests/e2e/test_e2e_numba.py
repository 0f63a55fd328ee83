"""The search over the shipped space in Python, by the real Snakemake on `cpu`, as the space's own head says it."""

import json
import re

import pytest
import yaml

pytestmark = pytest.mark.e2e

SPACE = "kernels/matmul_f32/space_numba.yaml"
CASES = """cases:
  - {name: ragged, kind: correctness, dimensions: {m: 31, n: 37, k: 29}, seed: 1}
  - {name: square, kind: performance, dimensions: {m: 64, n: 64, k: 64}, seed: 2}
"""


@pytest.fixture
def small(clone):
    """The matmul's trial with small cases."""
    clone.config(workload__calls_per_month={"square": 1000}, protocol__boundary_shapes=2, protocol__repeats=1)
    (clone.folder / "cases/matmul_f32/cases.yaml").write_text(CASES)
    return clone


def said(trial):
    """The arguments of `--config` that stand in the head of the space."""
    head = (trial.folder / SPACE).read_text()
    (words,) = re.findall(r"^#\s+snakemake --cores 1 --config (.*)$", head, re.MULTILINE)
    return [word.strip("'") for word in re.sub(r"='(.*?)'", r"=\1", words).split()]


def test_a_space_in_python_is_searched_and_its_kernels_are_judged(small):
    asked = ("--config", *said(small), "device=cpu", "iterations=2", "candidates_per_iteration=2")
    small.run(*asked)
    results, reports = small.folder / "results/matmul_numba", small.folder / "reports/matmul_numba"
    attempts = json.loads((reports / "history.json").read_bytes())["attempts"]
    assert [attempt["fate"] for attempt in attempts] == ["held"] * 4
    seeds = yaml.safe_load((small.folder / SPACE).read_text())["seeds"]
    assert [attempt["hypothesis"] for attempt in attempts[:2]] == [seed["hypothesis"] for seed in seeds]
    paths = sorted(results.glob("iterations/*/proposal.json"))
    proposals = [path.read_bytes() for path in paths]
    assert {a["candidate"]["language"] for p in proposals for a in json.loads(p)["body"]["attempts"]} == {"numba_cuda"}
    assert re.match(r"BM = \d+\nBN = \d+\n", (reports / "best.py").read_text())
    for iteration in ("1", "2"):
        again = small.kerneltrial("propose", "--iteration", iteration, "--config", f"{results}/config.json")
        assert again.returncode == 0, again.stderr
    assert [path.read_bytes() for path in paths] == proposals


def test_what_is_wrong_with_a_space_is_said_before_anything_is_locked(small):
    space = small.folder / SPACE
    right = space.read_text()
    space.write_text(right.replace("STAGES: 2, SPLIT: 1}", "STAGES: 3, SPLIT: 1}"))
    done = small.snakemake("--config", *said(small), "device=cpu")
    assert done.returncode != 0
    assert "lock stopped: " in done.stderr
    assert "space_numba.yaml: seeds, number 1:" in done.stderr
    assert "is no valid configuration" in done.stderr
    assert not (small.folder / "results/matmul_numba/lock.json").exists()
    space.write_text(right)
    assert small.snakemake("--config", *said(small), "device=cpu", "--until", "lock").returncode == 0
