"""The proposer `command`: real programs in real confined children, with a judge that is a double."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import kerneltrial
from kerneltrial.inputs.contracts import read_contract
from kerneltrial.inputs.resolve import check_plan
from kerneltrial.propose.command.outside import Judged, Program
from kerneltrial.propose.command.run import Runs
from kerneltrial.propose.history import History
from kerneltrial.propose.proposer import Draft, TriedDraft, assemble
from kerneltrial.propose.reply_schema import draft_of
from kerneltrial.records.asking import Command
from kerneltrial.records.proposal import Proposed, Try, TryRight, TryWrong, Unusable
from kerneltrial.records.reason import Reason
from kerneltrial.store.objects import Objects

STARTER = Path(kerneltrial.__file__).parent / "commands/starter"
LAUNCH = {"entry": "f", "grid": ["n", "1", "1"], "block": ["32", "1", "1"], "args": ["x", "n"]}
GOOD = {
    "language": "cuda_cpp",
    "hypothesis": "Wider loads.",
    "pattern": "memory_access",
    "source": 'extern "C" __global__ void f(float* x, int n) {}\n',
    "plan": {"scratch": [], "variants": [{"when": "1", "launches": [LAUNCH]}]},
}
TWO_TRIES = """#!/bin/sh
cat prompt.md > seen.txt
grep -q additionalProperties schema.json || exit 9
kerneltrial try bad.json > first.txt; echo "status $?" >> first.txt
kerneltrial try good.json > second.txt && cp good.json proposal.json
kerneltrial try broken.json > third.txt
kerneltrial try good.json > fourth.txt; echo "status $?" >> fourth.txt
cat first.txt second.txt third.txt fourth.txt seen.txt
"""
ESCAPE = """
import json, os, socket, subprocess
def attempt(what):
    try:
        what()
        return "done"
    except (OSError, subprocess.SubprocessError) as error:
        return type(error).__name__
found = {
    "read": attempt(lambda: open("PLACE").read()),
    "write": attempt(lambda: open("PLACE", "w")),
    "network": attempt(lambda: socket.create_connection(("127.0.0.1", 9), 1)),
    "home": attempt(lambda: os.listdir("/root")),
    "processes": attempt(lambda: [open(f"/proc/{p}/environ").read() for p in ("self", os.getppid())]),
    "secrets": sorted(name for name in os.environ if "KEY" in name),
}
draft = json.load(open("good.json"))
draft["hypothesis"] = json.dumps(found)
json.dump(draft, open("proposal.json", "w"))
"""


def judge(draft: Draft) -> Judged:
    if "wrong" in draft.origin.hypothesis:
        return Judged(TryWrong(stage="validate", reason=Reason.WRONG_VALUES, detail="3 of 7 elements are wrong"))
    return Judged(TryRight(ratio=1.25), {"cases": {"c": {"ratio": 1.25}}, "verdict": "it is the outcome's to say"})


@pytest.fixture
def program(tmp_path: Path):
    files = {
        "good.json": json.dumps(GOOD).encode(),
        "bad.json": json.dumps({**GOOD, "hypothesis": "wrong"}).encode(),
        "broken.json": b"{",
        "agent.sh": TWO_TRIES.encode(),
    }

    def make(words: list[str], more: dict[str, bytes] | None = None, **bounds: int) -> Program:
        command = Command(words=tuple(words), **{"wall_s": 30, "tries": 3, **bounds})
        return Program(command, {**files, **(more or {})}, ("cuda_cpp",), Runs(tmp_path / "runs"))

    return make


def test_a_program_tries_proposes_and_is_not_run_twice(program, tmp_path, capfd):
    asked = program(["sh", "agent.sh"])
    run = asked.propose("The prompt.", 0, judge)
    assert run.problem == ""
    assert [type(one) for one in run.tries] == [TriedDraft, TriedDraft, Unusable]
    assert [one.outcome for one in run.tries[:2]] == [judge(run.tries[0].draft).outcome, TryRight(ratio=1.25)]
    draft = asked.draft(run, ("a" * 64,))
    assert isinstance(draft, Draft)
    assert draft.source.decode() == GOOD["source"]
    again = asked.propose("The prompt.", 0, lambda draft: pytest.fail("it was run again"))
    assert again == run
    objects = Objects(tmp_path / "objects")
    attempts = assemble("command", [*run.tries, draft], History(0, 0, ()), objects).attempts
    assert [type(attempt) for attempt in attempts] == [Try, Try, Unusable, Proposed]
    assert objects.get(attempts[0].candidate.source).decode() == GOOD["source"]


def test_what_a_try_prints_and_its_status(program):
    talk = 'kerneltrial try bad.json > out.txt; echo "status $?" >> out.txt; kerneltrial try good.json >> out.txt; '
    talk += 'echo "status $?" >> out.txt; kerneltrial try good.json >> out.txt; echo "status $?"; cat out.txt'
    run = program(["sh", "-c", talk], tries=2).propose("p", 0, judge)
    said = run.problem
    assert '"detail":"3 of 7 elements are wrong"' in said
    assert '"tries_left":1' in said
    assert 'status 1 {"cases":{"c":{"ratio":1.25}},"ratio":1.25' in said
    assert '"verdict":"right"' in said
    assert "status 0" in said
    assert "no tries are left" in said
    assert "status 2" in said
    assert len(run.tries) == 2


def test_a_program_reaches_nothing_of_the_host(program, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "not-for-programs")
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    asked = program([sys.executable, "agent.py"], {"agent.py": ESCAPE.replace("PLACE", str(secret)).encode()})
    run = asked.propose("p", 0, judge)
    draft = asked.draft(run, ())
    assert isinstance(draft, Draft), run.problem
    found = json.loads(draft.origin.hypothesis)
    assert found == {"read": "PermissionError", "write": "PermissionError", "network": "PermissionError",
                     "home": "PermissionError", "processes": "PermissionError", "secrets": []}  # fmt: skip
    assert secret.read_text() == "secret"


def test_a_try_needs_no_package_of_the_parent(program, tmp_path):
    """Where packages come by PYTHONPATH alone, the confined program does not see them."""
    folders = [str(Path(kerneltrial.__file__).parents[1]), *filter(None, sys.path)]
    code = (
        "from test_propose_command import *\n"
        "files = {'good.json': json.dumps(GOOD).encode()}\n"
        "command = Command(words=('sh', '-c', 'python3 -c \"import msgspec\" && exit 9; kerneltrial try good.json'), "
        "wall_s=30, tries=1)\n"
        f"run = Program(command, files, ('cuda_cpp',), Runs(Path({str(tmp_path)!r}))).propose('p', 0, judge)\n"
        "print(run.problem); assert len(run.tries) == 1\n"
    )
    bare = subprocess.run(
        [os.path.realpath(sys.executable), "-c", code],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *folders])},
        capture_output=True,
        text=True,
    )
    assert bare.returncode == 0, bare.stdout + bare.stderr
    assert "ended with status 0 and left no proposal.json" in bare.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["sh", "-c", "echo sorry; exit 3"], "ended with status 3 and left no proposal.json; it said: sorry"),
        (["no-such-program"], "no-such-program: No such file or directory"),
        (["sh", "-c", "sleep 60"], "was still running at its limit"),
    ],
)
def test_a_program_that_leaves_nothing_is_an_unusable_attempt(program, words, says):
    asked = program(words, wall_s=1)
    draft = asked.draft(asked.propose("p", 0, judge), ())
    assert isinstance(draft, Unusable)
    assert says in draft.detail
    assert "/tmp" not in draft.detail


def test_a_proposal_of_another_form_is_fed_back(program):
    asked = program(["sh", "-c", "echo '{\"language\": 5}' > proposal.json"])
    draft = asked.draft(asked.propose("p", 0, judge), ())
    assert isinstance(draft, Unusable)
    assert "not of the form" in draft.detail


def test_another_prompt_sample_or_file_is_another_run(program, tmp_path):
    copy = ["cp", "good.json", "proposal.json"]
    program(copy).propose("p", 0, judge)
    program(copy).propose("q", 0, judge)
    program(copy).propose("p", 1, judge)
    program(copy, {"more.txt": b"x"}).propose("p", 0, judge)
    assert len(list((tmp_path / "runs").glob("*.json"))) == 4


def planned(launch, **more):
    return {"plan": {"variants": [{"launches": [launch], **more}]}}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"pattern": "warp"}, "pattern: 'warp' is not allowed; allowed: one of algebra, fusion, hardware, library, "),
        ({"language": "ptx"}, "language: 'ptx' is not allowed; allowed: one of cuda_cpp, numba_cuda"),
        ({"hypotesis": "x"}, "unknown key 'hypotesis'; did you mean 'hypothesis'?"),
        (
            {"plan": {"variants": [{"when": "", "launches": [LAUNCH]}]}},
            "plan.variants.#1.when: '' is not allowed; allowed: ",
        ),
        (
            {"plan": {"variants": [{"launches": [{**LAUNCH, "grid": ["n"]}]}]}},
            "grid: ['n'] is not allowed; allowed: a list of 3",
        ),
    ],
)
def test_what_is_wrong_with_a_proposal_says_what_is_allowed(changes, told):
    draft = draft_of({**GOOD, **changes}, ("cuda_cpp",))
    assert isinstance(draft, Unusable)
    assert told in draft.detail


def test_the_agent_in_the_documentation_leaves_a_proposal_that_can_be_used(program):
    page = (Path(__file__).parents[3] / "docs/proposers.md").read_text()
    agent = page.split("```python\n")[1].split("```")[0]
    asked = program(["python3", "agent.py"], {"agent.py": agent.encode()})
    run = asked.propose("The prompt.", 0, judge)
    assert run.problem == ""
    assert [type(one) for one in run.tries] == [TriedDraft]
    draft = asked.draft(run, ())
    assert isinstance(draft, Draft)
    check_plan(draft.plan, read_contract(STARTER / "kernels/scale_add/contract.yaml"))


DEEP = """
import os, shutil
shutil.copy("good.json", "proposal.json")
for _ in range(1500):
    os.mkdir("d")
    os.chdir("d")
"""
SAFE = "; cp good.json proposal.json"


@pytest.mark.parametrize(
    ("talk", "says"),
    [
        ("mkfifo proposal.json", "left no proposal.json"),
        ("ln -s /etc/passwd proposal.json", "left no proposal.json"),
        ("mkdir proposal.json", "left no proposal.json"),
        ("rm .kerneltrial/output.txt; mkfifo .kerneltrial/output.txt" + SAFE, ""),
        ("mkfifo .kerneltrial/try-1.json" + SAFE, ""),
        ("rm -r .kerneltrial" + SAFE, ""),
        ("chmod 0 .", "left no proposal.json"),
        ("printf '\\033[31mred'", r"it said: \x1b[31mred"),
        (f"{sys.executable} deep.py", ""),
    ],
)
def test_whatever_a_program_leaves_is_read_at_once_or_not_at_all_and_is_gone(
    program, tmp_path, monkeypatch, talk, says
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    run = program(["sh", "-c", talk], {"deep.py": DEEP.encode()}, wall_s=600).propose("p", 0, judge)
    assert says in run.problem
    assert bool(run.problem) == bool(says), run.problem
    assert "Traceback" not in run.problem
    assert not list((tmp_path / "scratch").iterdir())


def test_a_pipe_in_the_place_of_an_answer_is_not_waited_for(program):
    talk = (
        "mkfifo .kerneltrial/try-1.part; cp good.json .kerneltrial/.try; mv .kerneltrial/.try .kerneltrial/try-1.json; "
    )
    talk += "until [ -f .kerneltrial/try-1.result ]; do sleep 0.1; done" + SAFE
    run = program(["sh", "-c", talk], wall_s=600).propose("p", 0, judge)
    assert (run.problem, len(run.tries)) == ("", 1)
