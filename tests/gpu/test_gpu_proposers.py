"""A program that tries its drafts on a card: the same measurement serves the try and the stage `time`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from kerneltrial.dag import graph
from kerneltrial.inputs.config import read
from kerneltrial.stages.running import run_stage

pytestmark = pytest.mark.gpu
SOURCE = """extern "C" __global__ void scale_add(const float* x, const float* y, float* out, int n, float alpha) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fmaf(alpha, x[i], y[i]);
}
"""
LAUNCH = {"entry": "scale_add", "grid": ["ceil_div(n, 128)", "1", "1"], "block": ["128", "1", "1"],
          "args": ["x", "y", "out", "n", "alpha"]}  # fmt: skip
DRAFT = {
    "language": "cuda_cpp",
    "hypothesis": "smaller blocks",
    "pattern": "hardware",
    "source": SOURCE,
    "plan": {"variants": [{"launches": [LAUNCH]}]},
}


def test_a_try_is_timed_and_its_seconds_are_the_cards(card, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "kerneltrial", "init", "trial"], cwd=tmp_path, check=True)
    folder = tmp_path / "trial"
    config = yaml.safe_load((folder / "config.yaml").read_text())
    agent = folder / "agent"
    agent.mkdir()
    (agent / "draft.json").write_text(json.dumps(DRAFT))
    words = ["sh", "-c", "kerneltrial try draft.json && cp draft.json proposal.json"]
    config |= {"device": "cuda", "proposer": "command", "program": "agent", "command": {"words": words}}
    config["workload"]["calls_per_month"] = {"large": 10**15}  # else no kernel could pay back, and none is asked for
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    trial = read(folder / "config.yaml", {"iterations": 1})
    for stage in ("lock", "terms", "qualify", "prize", "propose", "build", "validate", "time"):
        run_stage(trial, stage, 1 if graph.STAGES[stage].loop else 0, "0" * 64, folder)
    iteration = folder / "results/scale_add/iterations/0001"
    attempts = json.loads((iteration / "proposal.json").read_bytes())["body"]["attempts"]
    assert [attempt["state"] for attempt in attempts] == ["tried", "proposed"], attempts
    tried, _ = attempts
    (timing,) = json.loads((iteration / "timing.json").read_bytes())["body"]["candidates"]
    assert tried["outcome"] == {"verdict": "right", "ratio": pytest.approx(timing["geometric_mean"])}
    (usage,) = folder.glob("results/scale_add/usage/propose-0001/*.json")
    assert float(json.loads(usage.read_bytes())["value"]["device_s"]) > 0
