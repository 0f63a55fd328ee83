"""A trial of seven iterations that a scripted model drives, on `cpu`: stages in this process, NVRTC for real."""

import contextlib
import json
import shutil
import socket
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "propose"))

from scripted_server import error, responses, serving

from kerneltrial.build.preloading import preload as compilers
from kerneltrial.dag import graph
from kerneltrial.devices.preloading import preload as devices
from kerneltrial.inputs.config import read
from kerneltrial.propose.problem import ProposerProblem
from kerneltrial.sandbox.nursery import Nursery
from kerneltrial.stages import early
from kerneltrial.stages.running import run_stage
from kerneltrial.store.canonical import canonical, digest

pytestmark = pytest.mark.e2e

KEY = "sk-test-0123456789-never-recorded"
LOOP = """extern "C" __global__ void scale_add(const float* x, const float* y, float* out, int n, float alpha) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    out[i] = fmaf(alpha, x[i], y[i]);
}
"""
STRAIGHT = LOOP.replace("for (int i = ", "int i = ").replace("; i < n; i += gridDim.x * blockDim.x)", ";\n  if (i < n)")
WRONG = LOOP.replace("fmaf(alpha, x[i], y[i])", "alpha * x[i]")
CHEAT = "__device__ float kept[4096];\n" + LOOP.replace("out[i] = fmaf", "kept[i & 4095] = x[i], out[i] = fmaf")
BROKEN = 'extern "C" __global__ void scale_add(const float* x) { this is not C++; }\n'


def text(source, hypothesis, grid="4"):
    launch = {"entry": "scale_add", "grid": [grid, "1", "1"], "block": ["128", "1", "1"],
              "args": ["x", "y", "out", "n", "alpha"], "cluster": ["1", "1", "1"], "cooperative": False,
              "shared_bytes": "0"}  # fmt: skip
    plan = {"scratch": [], "variants": [{"when": "1", "launches": [launch]}]}
    whole = {"language": "cuda_cpp", "hypothesis": hypothesis, "pattern": "hardware", "source": source, "plan": plan}
    return json.dumps(whole)


def reply(source, hypothesis, grid="4"):
    return responses(text(source, hypothesis, grid))


SCRIPT = [
    reply(BROKEN, "does not compile"),
    reply(WRONG, "wrong results"),
    error(429, "rate_limit_exceeded", retry_after="0"),
    reply(CHEAT, "a cheat: remembers in a writable global"),
    reply(LOOP, "good"),
    responses("no JSON at all"),
    reply(STRAIGHT, "better: no loop", "ceil_div(n, 128)"),
    reply(LOOP, "the same again"),
]
FATES = ["not_built", "invalid", "invalid", "held", "unusable", "held", "duplicate"]


def play(trial, stages=None, iterations=7):
    config = read(trial.folder / "config.yaml", {"iterations": iterations})
    for stage, iteration in graph.jobs(iterations):
        if stages is None or stage in stages:
            run_stage(config, stage, iteration, "0" * 64, trial.folder)


def bodies(trial, record):
    paths = sorted((trial.folder / "results").glob(f"*/iterations/*/{record}.json"))
    return [json.loads(path.read_bytes())["body"] for path in paths]


@pytest.fixture(scope="module", autouse=True)
def one_nursery():
    """All stages share a clean process: its start is most of what a stage of this tiny trial costs."""
    with (
        Nursery((*compilers({"cuda_cpp", "numba_cuda"}), *devices("cpu"))) as nursery,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(early, "nursery", lambda job: contextlib.nullcontext(nursery))
        yield


@pytest.fixture(scope="module")
def driven(tmp_path_factory, make_trial):
    """The trial after seven iterations, and the server that it asked."""
    trial = make_trial(tmp_path_factory.mktemp("proposers") / "home")
    with pytest.MonkeyPatch.context() as patch, serving(*SCRIPT) as server:
        patch.setenv("OPENAI_API_KEY", KEY)
        patch.setenv("NO_PROXY", "127.0.0.1")
        ask(trial, server)
        play(trial)
        yield trial, server


def ask(trial, server):
    price = {"kind": "tokens", "input_usd": 2, "cached_input_usd": "0.5", "output_usd": 10, "source": "own",
             "date": "2026-12-01", "cache_write_extra_usd": "0.4"}  # fmt: skip
    trial.config(proposer="openai", iterations=7, model={"name": "m", "base_url": server.url, "api": "responses"})
    trial.config(prices__model=price, protocol__boundary_shapes=0, protocol__repeats=1)


def test_the_trial_ends_with_the_right_best_and_the_right_costs(driven):
    trial, server = driven
    history = json.loads((trial.folder / "reports/tiny/history.json").read_bytes())
    assert [attempt["fate"] for attempt in history["attempts"]] == FATES
    assert (trial.folder / "reports/tiny/best.cu").read_text() == STRAIGHT
    assert len(server.seen) == 8
    cost = bodies(trial, "cost")[-1]["spent"]
    assert (cost["input_tokens"], cost["output_tokens"]) == (7 * 1000, 7 * 500)
    assert cost["model_usd"] == "0.04298"  # 7 x (400 x 2 + 600 x 0.5 + 100 x 0.4 + 500 x 10) / 1e6
    lock = json.loads((trial.results / "lock.json").read_bytes())["body"]
    assert lock["model"]["base_url"] == server.url
    assert (lock["model_prices"]["output_usd"], lock["model"]["budget_usd"]) == ("10", "20")


def test_each_answer_was_asked_for_with_what_was_learnt_before(driven):
    _, server = driven
    feedback = [body["input"][0]["content"] for _, _, body in server.seen]
    assert "# Iteration 1\n" in feedback[0]
    assert "does_not_compile" in feedback[1]
    assert "candidate.cu(1): error" in feedback[1]
    assert feedback[2] == feedback[3]  # tried again
    assert "elements are wrong" in feedback[2]
    assert "expected" in feedback[2]
    assert "Repair attempt" in feedback[2]
    assert "forbidden_instruction" in feedback[4]
    assert "no JSON object was found" in feedback[6]
    assert LOOP.rstrip() in feedback[6]


def test_no_key_no_header_and_no_path_of_the_host_is_in_any_record(driven):
    trial, server = driven
    words = [KEY, "Bearer", "uthorization", str(trial.folder), sys.prefix]
    for path in [*trial.results.rglob("*"), *(trial.folder / "reports").rglob("*")]:
        if path.is_file():
            data = path.read_bytes()
            assert not [word for word in words if word.encode() in data], path
    for _, _, body in server.seen:
        text = json.dumps(body)
        assert not [word for word in [*words, "holdout", "salt"] if word in text]


def test_the_evidence_verifies_and_a_swapped_reply_is_named(driven, tmp_path):
    trial = driven[0].copy(tmp_path / "copy")
    done = trial.kerneltrial("verify")
    assert done.returncode == 0, done.stdout
    path = trial.results / "iterations/0004/proposal.json"
    record = json.loads(path.read_bytes())
    other = json.loads((trial.results / "iterations/0006/proposal.json").read_bytes())["body"]["usage"]
    (name,) = record["body"]["usage"]["replies"]
    stored = trial.results / "objects/sha256" / name[:2] / name[2:]
    kept_body = stored.read_bytes()
    stored.unlink()
    record["body"]["usage"]["replies"] = other["replies"]
    del record["sha256"]
    path.write_bytes(canonical({**record, "sha256": digest(canonical(record))}))
    told = trial.kerneltrial("verify").stdout
    assert "iterations/0004/proposal.json: a candidate does not follow from the reply that it names" in told
    record["body"]["usage"]["replies"] = [name]
    kept = trial.results / f"replies/{record['body']['usage']['requests'][0]}.json"
    kept.chmod(0o644)
    kept.write_bytes(kept.read_bytes().replace(b"good", b"bad"))
    path.write_bytes(canonical({**record, "sha256": digest(canonical(record))}))
    assert f"iterations/0004/proposal.json: object {name} is missing" in trial.kerneltrial("verify").stdout
    stored.write_bytes(kept_body)
    assert f"{kept.name} is not the reply that it names" in trial.kerneltrial("verify").stdout


def test_a_rerun_pays_nothing_and_ask_again_is_journalled_and_pays(driven, tmp_path, monkeypatch):
    server = driven[1]
    trial = driven[0].copy(tmp_path / "copy")
    before = dict(enumerate(bodies(trial, "proposal")))
    for path in trial.results.glob("iterations/*/proposal.json"):
        path.unlink()
    asked = len(server.seen)
    for stage, iteration in [("propose", i) for i in range(1, 8)]:
        run_stage(read(trial.folder / "config.yaml", {}), stage, iteration, "0" * 64, trial.folder)
    assert dict(enumerate(bodies(trial, "proposal"))) == before
    assert len(server.seen) == asked
    done = trial.kerneltrial("ask-again", "4")
    assert done.returncode == 0, done.stderr
    journal = (trial.results / "journal/propose-0004.jsonl").read_text()
    assert '"event":"asked_again"' in journal
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    run_stage(read(trial.folder / "config.yaml", {}), "propose", 4, "0" * 64, trial.folder)
    assert len(server.seen) == asked + 1
    paid = bodies(trial, "proposal")[3]
    superseded = [name for proposal in list(before.values())[3:] for name in proposal["usage"]["requests"]]
    assert paid["usage"]["requests"][1:] == superseded
    assert paid["usage"]["input_tokens"] == 5 * 1000  # four answers are no longer in force, and were paid for
    (trial.folder / "results/tiny").rename(trial.folder / "recorded")
    shutil.copytree(
        trial.folder / "recorded", trial.results, ignore=shutil.ignore_patterns("replies", "again", "ledger")
    )
    trial.config(proposer="replay", replies="recorded/replies")
    config = read(trial.folder / "config.yaml", {})
    for stage, iteration in (("lock", 0), ("propose", 4)):
        (trial.results / "journal" / "lock.jsonl").unlink(missing_ok=True)
        run_stage(config, stage, iteration, "0" * 64, trial.folder)
    assert bodies(trial, "proposal")[3] == paid  # the recorded trial's second sample, not its first


def test_replay_gives_byte_equal_proposals_without_a_network(driven, tmp_path, monkeypatch):
    recorded = driven[0]
    trial = recorded.copy(tmp_path / "copy")
    (trial.folder / "results").rename(trial.folder / "recorded")
    trial.config(proposer="replay", replies="recorded/tiny/replies")

    def refuse(*_):
        raise AssertionError("replay reached for the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    play(trial, {"lock", "terms", "qualify", "prize", "propose", "build", "validate", "time"}, 4)
    run_stage(read(trial.folder / "config.yaml", {}), "propose", 5, "0" * 64, trial.folder)
    assert [canonical(body) for body in bodies(trial, "proposal")] == [
        canonical(body) for body in bodies(recorded, "proposal")[:5]
    ]
    path = next((trial.folder / "kernels/scale_add").glob("contract.yaml"))
    path.write_text(path.read_text().replace("element by element", "elements one by one"))
    (trial.folder / "results").rename(trial.folder / "first")
    with pytest.raises(ProposerProblem) as caught:
        play(trial, {"lock", "terms", "qualify", "prize", "propose"}, 1)
    line = str(caught.value)
    assert "no reply is recorded for request" in line
    assert "differs first in body.instructions at character" in line
    assert "elements one" in line


def test_two_trials_are_compared(driven, tmp_path):
    trial = driven[0].copy(tmp_path / "copy")
    other = trial.copy(tmp_path / "other")
    (other.results).rename(trial.folder / "results/second")
    done = trial.kerneltrial("compare", "tiny", "second")
    assert done.returncode == 0, done.stderr
    lines = {line.split("  ")[0]: line for line in done.stdout.splitlines()}
    assert lines["lock and terms"].split()[-2:] == ["the", "same"]
    assert lines["attempts"].split()[-2:] == ["7", "7"]
    assert "7,000 / 3,500" in lines["tokens in/out"]
    assert trial.kerneltrial("compare", "tiny", "third").returncode == 3


PYTHON = """from numba import cuda

def scale_add(x, y, out, n, alpha):
    i = cuda.grid(1)
    if i < n:
        out[i] = alpha * x[i] + y[i]
"""


def test_a_model_may_write_python_where_the_config_admits_it(tmp_path, make_trial, monkeypatch):
    trial = make_trial(tmp_path / "home")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    answer = json.loads(text(PYTHON, "in Python", "ceil_div(n, 128)")) | {"language": "numba_cuda"}
    with serving(responses(json.dumps(answer))) as server:
        ask(trial, server)
        trial.config(languages=["numba_cuda"], candidates_per_iteration=1)
        play(trial, {"lock", "terms", "qualify", "prize", "propose", "build", "validate"}, 1)
    (sent,) = [body for _, _, body in server.seen]
    assert sent["text"]["format"]["schema"]["properties"]["language"]["enum"] == ["numba_cuda"]
    assert "from numba import cuda" in sent["instructions"]
    (built,) = bodies(trial, "build")[0]["candidates"]
    assert built["abi"] == "numba_array"
    (judged,) = bodies(trial, "validation")[0]["candidates"]
    assert judged["state"] == "valid"


HUNGRY = {"input_tokens": 100_000, "output_tokens": 1_000}  # more than the worst case: the server says what it charges
BUDGETS = {"budget_calls": 3, "budget_tokens": 300_000, "budget_usd": "0.62"}
SAID = {
    "budget_calls": "3 of 3 calls were made",
    "budget_tokens": "303000 of 300000 tokens were used, and the next call may use ",
    "budget_usd": "0.630000 of 0.62 USD were used, and the next call may cost ",
}


@pytest.mark.parametrize("name", BUDGETS)
def test_a_budget_that_runs_out_within_an_iteration_ends_the_proposing_and_the_trial_goes_on(
    tmp_path, make_trial, monkeypatch, name
):
    trial = make_trial(tmp_path / "home")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    sources = [LOOP, STRAIGHT, LOOP + "// again\n"]
    script = [responses(text(source, "good", "ceil_div(n, 128)"), usage=HUNGRY) for source in sources]
    with serving(*script) as server:
        ask(trial, server)
        trial.config(candidates_per_iteration=2, iterations=4)
        model = {"name": "m", "base_url": server.url, "api": "responses", "max_output_tokens": 1000}
        trial.config(model={**model, name: BUDGETS[name]})
        judging = {"lock", "terms", "qualify", "prize", "propose", "build", "validate", "time"}
        stages = None if name == "budget_usd" else judging
        play(trial, stages, iterations=4 if stages is None else 3)
    assert len(server.seen) == 3
    first, second, *rest = (proposal["attempts"] for proposal in bodies(trial, "proposal"))
    assert [attempt["state"] for attempt in first] == ["proposed", "proposed"]
    assert [attempt["state"] for attempt in second] == ["proposed", "unusable"]
    assert second[1]["reason"] == "budget_spent"
    assert second[1]["detail"].startswith(SAID[name])
    assert rest
    assert all(attempts == [second[1]] for attempts in rest)
    done = trial.kerneltrial("ask-again", "2")
    assert done.returncode == 3
    assert "ask-again: the model's budget is spent (3 calls, 303000 tokens, 0.63 USD)" in done.stderr
    assert not list(trial.results.glob("again/*"))
    (trial.results / "signed").mkdir()
    (trial.results / "signed/seal.json").touch()
    assert "ask-again: results/tiny is sealed" in trial.kerneltrial("ask-again", "2").stderr
    if stages is None:
        summary = json.loads((trial.folder / "reports/tiny/summary.json").read_bytes())
        assert summary["stop"]["reason"] == "budget"
        assert bodies(trial, "cost")[-1]["spent"]["model_usd"] == "0.63"


# Profile, write, compile, verify, repeat: what it does next follows from what the try before it told.
AGENT = """
import json, pathlib, subprocess

def tried(name):
    done = subprocess.run(["kerneltrial", "try", name], capture_output=True, text=True)
    return done.returncode, json.loads(done.stdout)

status, told = tried("broken.json")
assert (status, told["verdict"], told["stage"]) == (1, "wrong", "build"), told
assert "error:" in told["log"] and "this is not C++" in told["log"], told
status, told = tried("wrong.json")
assert (status, told["reason"], told["entries"][0]["name"]) == (1, "wrong_values", "scale_add"), told
best, kept = 0.0, ""
for name in ("good.json", "better.json"):
    status, told = tried(name)
    assert (status, told["verdict"]) == (0, "right"), told
    for case in told["cases"].values():
        assert abs(case["ratio"] - case["baseline_score"] / case["score"]) < 1e-9, told
    if told["ratio"] > best:
        best, kept = told["ratio"], name
assert told["tries_left"] == 1, told
pathlib.Path("proposal.json").write_text(pathlib.Path(kept).read_text())
"""


def test_a_program_tries_its_drafts_and_the_trial_judges_what_it_proposes(tmp_path, make_trial):
    trial = make_trial(tmp_path / "home")
    folder = trial.folder / "agent"
    folder.mkdir()
    (folder / "agent.py").write_text(AGENT)
    drafts = {"broken": (BROKEN,), "wrong": (WRONG,), "good": (LOOP,), "better": (STRAIGHT, "ceil_div(n, 128)")}
    for name, (source, *grid) in drafts.items():
        (folder / f"{name}.json").write_text(text(source, name, *grid))
    command = {"words": ["python3", "agent.py"], "wall_s": 120, "tries": 5}
    trial.config(proposer="command", program="agent", command=command)
    trial.config(protocol__boundary_shapes=0, protocol__repeats=1)
    play(trial, set(graph.STAGES) - {"confirm", "decide", "report"}, 1)
    attempts = bodies(trial, "proposal")[0]["attempts"]
    assert [attempt["state"] for attempt in attempts] == ["tried"] * 4 + ["proposed"], attempts
    assert [a["outcome"].get("reason") for a in attempts[:2]] == ["does_not_compile", "wrong_values"]
    lines = (trial.results / "journal/propose-0001.jsonl").read_text().splitlines()
    events = [json.loads(line)["event"] for line in lines]
    tried = [(e["candidate"], e["outcome"]) for e in events if e.get("event") == "tried"]
    assert tried == [(a["candidate"]["id"], a["outcome"]) for a in attempts[:4]]  # as they came, whatever ends the run
    (timing,) = bodies(trial, "timing")[0]["candidates"]
    assert attempts[-1]["origin"]["hypothesis"] == "better"
    assert attempts[3]["outcome"] == {"verdict": "right", "ratio": timing["geometric_mean"]}
    again = len(list(trial.results.glob("measurements/*.json")))
    run_stage(read(trial.folder / "config.yaml", {}), "propose", 1, "0" * 64, trial.folder)
    assert bodies(trial, "proposal")[0]["attempts"] == attempts
    assert len(list(trial.results.glob("measurements/*.json"))) == again
    assert len(list(trial.results.glob("runs/*.json"))) == 1
