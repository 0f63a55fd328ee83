"""The README's worked example, by the README's own command in a copy of the clone."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e

CLONE = Path(__file__).resolve().parents[2]
COMMAND = "snakemake --cores 1 --configfile config_softmax.yaml --replace-workflow-config"


def test_the_softmax_of_the_readme(tmp_path):
    assert COMMAND in (CLONE / "README.md").read_text()
    for name in ("Snakefile", "config.yaml", "config_softmax.yaml"):
        shutil.copy(CLONE / name, tmp_path / name)
    for name in ("workflow", "kernels", "cases", "profiles"):
        shutil.copytree(CLONE / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    words = [sys.executable, "-m", *COMMAND.split(), "--config", "device=cpu"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    states = []
    for path in sorted(tmp_path.glob("results/softmax_f32/iterations/*/holdout.json")):
        states += [entry.get("verdict") for entry in json.loads(path.read_bytes())["body"]["candidates"]]
    assert states == ["held", "held"]
    page = (tmp_path / "reports/softmax_f32/report.html").read_text()
    assert "INCONCLUSIVE" in page
