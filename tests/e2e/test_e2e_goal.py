"""`stop: beats_compiler` from the lock to the report, on a pretended card, asked of a scripted model."""

import contextlib
import html
import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "propose"))

from counting_card import CARD
from scripted_server import serving
from test_e2e_proposers import KEY, LOOP, STRAIGHT, ask, bodies, play, reply, text

from kerneltrial.build.preloading import preload as compilers
from kerneltrial.dag import environment
from kerneltrial.devices import opening
from kerneltrial.devices.cuda.torch_baselines import NAMES
from kerneltrial.devices.cuda.torch_child import TorchFailed, TorchTimed
from kerneltrial.sandbox.nursery import Nursery
from kerneltrial.stages import compilers as compiled
from kerneltrial.stages import early, lock

pytestmark = pytest.mark.e2e


class PretendedTorch:
    """torch.compile's kernel, which is right and takes `us`; eager torch is not there."""

    us = 1.13

    def __init__(self, contract):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def measured(self, cases):
        outputs = {
            name: tuple({"out": (np.float32(1.5) * one["x"] + one["y"]).tobytes()} for one in sets)
            for name, _, sets in cases
        }
        timed = TorchTimed(version="pretended", latency_us=dict.fromkeys(outputs, self.us), outputs=outputs)
        return {**dict.fromkeys(NAMES, TorchFailed(why="pretended")), "torch_compile": timed}


@pytest.fixture(scope="module", autouse=True)
def a_card_that_is_pretended():
    names = (*compilers({"cuda_cpp"}), "kerneltrial.devices.serving:prepare_cpu", "counting_card:install")
    with Nursery(names) as nursery, pytest.MonkeyPatch.context() as patch:
        patch.setattr(early, "nursery", lambda job: contextlib.nullcontext(nursery))
        for module in (lock, opening, environment.opening):
            patch.setattr(module, "detect", lambda *_: CARD)
        patch.setattr(compiled, "Torch", PretendedTorch)
        patch.setenv("OPENAI_API_KEY", KEY)
        patch.setenv("NO_PROXY", "127.0.0.1")
        yield


AGENT = """
import json, subprocess
done = subprocess.run(["kerneltrial", "try", "draft.json"], capture_output=True, text=True)
draft = json.load(open("draft.json"))
draft["hypothesis"] = done.stdout
json.dump(draft, open("proposal.json", "w"))
"""


def test_a_program_on_a_card_is_told_what_its_draft_takes_and_the_stage_measures_nothing_anew(tmp_path, make_trial):
    trial = make_trial(tmp_path / "home")
    folder = trial.folder / "agent"
    folder.mkdir()
    (folder / "agent.py").write_text(AGENT)
    (folder / "draft.json").write_text(text(STRAIGHT, "better", "ceil_div(n, 128)"))
    trial.config(device="cuda", proposer="command", program="agent", workload__calls_per_month={"large": 10**15})
    trial.config(command={"words": ["python3", "agent.py"], "wall_s": 300}, protocol__boundary_shapes=0)
    play(trial, {"lock", "terms", "qualify", "prize", "propose"}, iterations=1)
    before = trial.measurements()
    play(trial, {"build", "validate", "time"}, iterations=1)
    (timing,) = bodies(trial, "timing")[0]["candidates"]
    tried, proposed = bodies(trial, "proposal")[0]["attempts"]
    told = json.loads(proposed["origin"]["hypothesis"])
    (case,) = timing["cases"]
    assert tried["outcome"] == {"verdict": "right", "ratio": pytest.approx(timing["geometric_mean"])}
    assert told["cases"] == {
        "large": {
            "ratio": pytest.approx(case["speedup"]["middle"]),
            "us": case["warm_us"],
            "baseline_us": case["baseline_warm_us"],
        }
    }
    assert told["entries"][0]["registers"] > 0
    assert before == trial.measurements()


SPACE = {
    "source": "space.cu",
    "parameters": {"BLOCK": [32, 64, 128], "KIND": [0, 1, 2]},
    "plan": {
        "variants": [
            {
                "launches": [
                    {
                        "entry": "scale_add",
                        "grid": ["ceil_div(n, {BLOCK})", "1", "1"],
                        "block": ["{BLOCK}", "1", "1"],
                        "args": ["x", "y", "out", "n", "alpha"],
                    }
                ]
            }
        ]
    },
}
TEMPLATE = LOOP.replace("fmaf(alpha, x[i], y[i])", "KIND == 1 ? alpha * x[i] : fmaf(alpha, x[i], y[i])")


def test_a_search_on_a_card_proposes_nothing_that_does_not_compile_and_nothing_twice(tmp_path, make_trial):
    trial = make_trial(tmp_path / "home")
    folder = trial.folder / "kernels/scale_add"
    (folder / "space.yaml").write_text(json.dumps(SPACE))
    (folder / "space.cu").write_text(f"#if KIND == 2\n#error none of this kind\n#endif\n{TEMPLATE}")
    trial.config(device="cuda", proposer="search", space="kernels/scale_add/space.yaml", candidates_per_iteration=4)
    trial.config(workload__calls_per_month={"large": 10**15}, protocol__boundary_shapes=0, protocol__repeats=1)
    play(trial, {"lock", "terms", "qualify", "prize", "propose", "build", "validate", "time"}, iterations=3)
    attempts = [attempt for proposal in bodies(trial, "proposal") for attempt in proposal["attempts"]]
    found = [tuple(a["origin"]["parameters"].values()) for a in attempts if a["state"] == "proposed"]
    assert sorted(found) == [(block, kind) for block in SPACE["parameters"]["BLOCK"] for kind in (0, 1)]
    assert attempts[-1]["reason"] == "space_exhausted"
    assert attempts[-1]["detail"] == "all 9 configurations of space.yaml were tried, or do not compile (3 of them)"
    fates = {v["candidate"]: v["state"] for verdict in bodies(trial, "validation") for v in verdict["candidates"]}
    wrong = [
        fates[a["candidate"]["id"]] for a in attempts if a["state"] == "proposed" and a["origin"]["parameters"]["KIND"]
    ]
    assert wrong == ["invalid"] * 3


def test_nothing_more_is_asked_for_once_the_best_beats_the_compiler(tmp_path, make_trial):
    trial = make_trial(tmp_path / "home")
    with serving(reply(LOOP, "good"), reply(STRAIGHT, "better", "ceil_div(n, 128)"), reply(LOOP, "no more")) as server:
        ask(trial, server)
        with (trial.folder / "kernels/scale_add/contract.yaml").open("a") as contract:
            contract.write("torch: alpha * x + y\n")
        trial.config(device="cuda", stop="beats_compiler", iterations=4, workload__calls_per_month={"large": 10**15})
        play(trial, iterations=4)
    assert len(server.seen) == 2  # the loop is as fast as the compiler's kernel, the one without is 8 % faster
    asked = server.seen[0][2]["instructions"]
    assert "- torch.compile pretended: large 1.13 µs" in asked
    attempts = [attempt for proposal in bodies(trial, "proposal") for attempt in proposal["attempts"]]
    assert [a.get("reason") or a["state"] for a in attempts] == ["proposed", "proposed", *["goal_reached"] * 2]
    assert attempts[2]["detail"].startswith("the best is 1.08")
    reports = trial.folder / "reports/tiny"
    summary = json.loads((reports / "summary.json").read_bytes())
    assert summary["stop"]["reason"] == "beats_compiler"
    assert (reports / "best.cu").read_text() == STRAIGHT
    assert summary["stop"]["meaning"] in html.unescape((reports / "report.html").read_text())
    done = trial.kerneltrial("compare", "tiny", "tiny")
    assert done.returncode == 0, done.stderr
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("stopped by"))
    assert line.split()[-2:] == ["beats_compiler", "beats_compiler"]
